"""The same values at new addresses."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, difference, prompt_lengths, random_tokens
from stages.workers.probes.probe import Document, Probe, held_to, not_run
from stages.workers.service import Service, random_prompts


def _run(bench: Bench) -> Iterator[Document]:
    yield held_to("new_prompt_addresses", "prefill", _moved_prompts(bench.service), bench.repeat_noise, 3)
    if bench.service.mode.replay != "none":
        yield not_run("new_input_addresses", "a replay reads its static inputs: values are copied into them")
        return
    rows = bench.sizes[-1]
    yield held_to("new_input_addresses", f"decode/{rows}", _moved_inputs(bench.service, rows), bench.repeat_noise, 2)


def _moved_prompts(service: Service) -> float:
    """One prompt from a tensor of its own, from the middle of a larger one, and with a stride of two."""
    length = prompt_lengths(service, 1)[0]
    prompt = random_prompts(service, [length], seed=3)[0]
    wide = torch.zeros(length + 64, dtype=prompt.dtype, device=prompt.device)
    wide[7 : 7 + length] = prompt
    places = [wide[7 : 7 + length], prompt.repeat_interleave(2)[::2]]
    first = service.prefill(0, prompt)[0].clone()
    return max(difference(service.prefill(0, place)[0].clone(), first) for place in places)


def _moved_inputs(service: Service, rows: int) -> float:
    """A step on the service's own buffers, and the same step called with new tensors for tokens and positions."""
    admit(service, rows, seed=rows)
    start, tokens = service.positions.clone(), random_tokens(service, rows, 4)
    service.tokens[:rows].copy_(tokens)
    first = service.decode(rows)[0].clone()
    padding = torch.zeros(12_345, device=service.device)
    moved = service.step_on(tokens.to(service.device), start[:rows].clone())[0].clone()
    assert len(padding) == 12_345, "held, so that the new tensors lie elsewhere"
    return difference(moved, first)


PROBE = Probe(
    name="new_addresses",
    hazards=("stale input: the address of the capture is read, not the argument (CUDA graphs notes)",),
    about="the same prompt from other tensors and strides; where the mode takes its inputs by call, new tensors for tokens and positions",
    run=_run,
)
