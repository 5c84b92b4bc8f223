"""A batch of a size that was never prepared, handed to the mode's function itself."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, random_tokens, relative_error
from stages.workers.probes.held_function import refusal
from stages.workers.probes.probe import Document, Probe, held_to, not_run
from stages.workers.service import Service

NAME = "unplanned_size"


def unplanned(sizes: list[int]) -> int | None:
    """The smallest batch from 2 on that is not planned, below the largest one."""
    return next((size for size in range(2, sizes[-1]) if size not in sizes), None)


def _run(bench: Bench) -> Iterator[Document]:
    service, rows = bench.service, unplanned(bench.sizes)
    mode = service.mode
    if mode.replay != "none":
        yield not_run(NAME, "a replay reads its static inputs: no other batch reaches it")
    elif mode.transform.startswith("inductor") and not getattr(mode, "dynamic", False):
        yield not_run(NAME, "Dynamo guards every size: another one compiles, which the recompile limit bounds")
    elif rows is None:
        yield not_run(NAME, "every size up to the largest is planned")
    else:
        yield _compared(bench, rows)


def _compared(bench: Bench, rows: int) -> Document:
    exact, own = (_step(service, rows) for service in (bench.reference, bench.eager))
    error = relative_error(own, exact)
    subject, limit = f"{rows} sequences", bench.error_limit(error, len(exact))
    try:
        seen = _step(bench.service, rows)
    except Exception as refused:  # noqa: BLE001 - a mode may refuse with whatever it has
        return held_to(NAME, subject, 0, limit, 1, f"refused: {refusal(refused)}")
    if seen.shape != exact.shape:
        return held_to(NAME, subject, float("inf"), limit, 1, f"logits {list(seen.shape)} instead of {list(exact.shape)}")
    return held_to(NAME, subject, relative_error(seen, exact), limit, 1, f"eager's own error {error:.3g}")


def _step(service: Service, rows: int) -> torch.Tensor:
    """Logits [rows, v] of one decode step on tensors of that size. What reads on past them finds zeros, which are valid."""
    admit(service, rows, seed=rows)
    tokens, positions = torch.zeros(2, service.model.max_batch, dtype=torch.int64, device=service.device)
    tokens[:rows], positions[:rows] = random_tokens(service, rows, 6), service.positions[:rows]
    return service.step_on(tokens[:rows], positions[:rows])[0].clone()


PROBE = Probe(
    name="unplanned_size",
    hazards=("a package takes another batch and answers wrong (pytorch#195604)",),
    about="a decode step on a batch between the planned sizes, by call: as right as eager, or a refusal",
    run=_run,
)
