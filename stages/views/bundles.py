"""Where a bug report of a mode comes from: the command that writes its bundle, and where that lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, baseline, dig, label, mode_names, part

FAULTS = ("failed", "refuted", "wrong")


def of_faults(study: Study) -> list[str]:
    """A sentence a mode that failed, was refuted or answered wrong."""
    return [_sentence(name, label(study, name)) for name in mode_names(study) if label(study, name) in FAULTS]


def of_slower(study: Study) -> list[str]:
    """A sentence a mode that may be ranked and is slower than the baseline somewhere, with the points."""
    found = []
    for name in mode_names(study):
        points = _slower(part(study, "modes", name, "steady_state"))
        if points and label(study, name) not in FAULTS:
            found.append(_sentence(name, f"slower than {baseline(study)} at {', '.join(points)}"))
    return found


def _slower(steady: Mapping[str, Any]) -> list[str]:
    shapes = [(f"{phase} {size}", times) for phase in ("decode", "prefill") for size, times in part(steady, phase).items()]
    return [shape for shape, times in [*shapes, ("the sequence", dig(steady, "sequence"))] if _is_slower(times)]


def _is_slower(times: Any) -> bool:
    return bool(dig(times, "vs_baseline", "verdict") == "slower")


def _sentence(name: str, what: str) -> str:
    return words.clean(f"{name}, {what}: `python -m stages.bundle --mode {name}` writes a script that shows it to build/bundles/{name}/")
