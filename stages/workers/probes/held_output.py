"""An output that is held across the next call."""

from __future__ import annotations

from collections.abc import Iterator

from stages.workers.probes.bench import Bench, admit, random_tokens
from stages.workers.probes.probe import Document, Probe, held_to, reported
from stages.workers.service import Service


def _run(bench: Bench) -> Iterator[Document]:
    """Without replay outputs belong to the caller; with it they are documented to last until the next step."""
    for rows in dict.fromkeys((bench.sizes[0], bench.sizes[-1])):
        subject, replay = f"decode/{rows}", bench.service.mode.replay
        num_changed, refusal = _changed_by_next_step(bench.service, rows)
        if replay == "none":
            yield held_to("held_output", subject, num_changed, 0, 2, "logits that a later step changed")
        else:
            meaning = refusal or f"logits that the next step changed; replay {replay} promises them until then"
            yield reported("held_output", subject, num_changed, 2, meaning)


def _changed_by_next_step(service: Service, rows: int) -> tuple[int, str]:
    """How many logits of a held output the next step changed, or torch's refusal to read them."""
    admit(service, rows, seed=rows)
    service.tokens[:rows].copy_(random_tokens(service, rows, 1))
    held = service.decode(rows)[0]
    copied = held.clone()
    service.tokens[:rows].copy_(random_tokens(service, rows, 2))
    service.decode(rows)
    try:
        return int((held != copied).sum()), ""
    except RuntimeError as error:
        return 0, f"torch refuses the read: {str(error).strip().splitlines()[0][:160]}"


PROBE = Probe(
    name="held_output",
    hazards=("output overwritten by the next replay (pytorch#104435, #152887)",),
    about="holds the logits of one step without copying them, runs the next step on other tokens, reads them again",
    run=_run,
)
