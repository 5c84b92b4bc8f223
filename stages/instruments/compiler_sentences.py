"""From a message of torch's compiler log to one sentence with the reason and the user's line.

The texts are torch's, private, read on 2.11 and 2.13. A message of another form is kept as it is, on one line, cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

_LONGEST = 240
_RECOMPILE = re.compile(r"Recompiling function (?P<name>\S+) in (?P<file>.+?):(?P<line>\d+)\n")
_GUARD = re.compile(r"- \d+/\d+: (?P<guard>.+)")
_BREAK = re.compile(r"Graph break (?:\([^)]*\) )?in user code at (?P<file>.+?):(?P<line>\d+)\n")
_LIMIT = re.compile(r"hit config\.(?P<limit>\w+) \((?P<number>\d+)\)")
_LIMIT_PLACE = re.compile(r"function: '(?P<name>[^']+)' \((?P<file>.+?):(?P<line>\d+)\)")
_LAST_REASON = re.compile(r"last reason: (?:\d+/\d+: )?(?P<guard>.+)")
_USER_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_BREAK_REASON = re.compile(r"Graph Break Reason: (?P<reason>.+)", re.DOTALL)
_INFERENCE_MODE = "dispatch key set mismatch"


def recompile(message: str) -> str:
    """Which function recompiled, where it is, and the guard that failed last."""
    place, guard = _RECOMPILE.search(message), _GUARD.search(message)
    if not place or not guard:
        return _cut(message)
    text = f"{place['name']} at {_place(place)} recompiled: {_guard(guard)}"
    return text + (" (a tensor made outside inference_mode, or inside it before)" if _INFERENCE_MODE in text else "")


def graph_break(message: str) -> str:
    """Where the graph broke and why."""
    place, reason = _BREAK.search(message), _BREAK_REASON.search(message)
    if not place or not reason:
        return _cut(message)
    lines = [line.strip() for line in reason["reason"].splitlines() if line.strip()]
    said = next((line for line in lines if not line.startswith("Encountered graph break")), lines[0])
    return _cut(f"graph break at {_place(place)}: {said}")


def recompile_limit(message: str) -> str:
    """Which function reached the limit, by which guard, and what follows."""
    reached = limit_reached(message)
    return f"{reached}; what is new runs eagerly" if reached else _cut(message)


def limit_reached(text: str) -> str | None:
    """The first function in a text (also a whole log) that reached its limit, and by which guard."""
    limit, place, guard = _LIMIT.search(text), _LIMIT_PLACE.search(text), _LAST_REASON.search(text)
    if not limit or not place or not guard:
        return None
    return f"{place['name']} at {_place(place)} reached {limit['limit']} {limit['number']}: {_guard(guard)}"


def unknown_thread(trace: Iterable[str]) -> str | None:
    """What an assertion of CUDAGraph Trees means that has no text of its own: its state is per thread (torch 2.11)."""
    if any("_is_key_in_tls" in line for line in trace):
        return "CUDAGraph Trees was called from a thread that it does not know: this torch keeps its state in the thread that imported it"
    return None


def cudagraph_skip(message: str) -> str:
    """Why CUDA graphs were skipped, with the line that torch names."""
    reason = re.sub(r"^(skipping cudagraphs due to )+", "", message.strip()).split("Found from")[0].strip().rstrip(".")
    place = _USER_LINE.search(message)
    return _cut(f"CUDA graphs skipped: {reason}" + (f", first at {_place(place)}" if place else ""))


def plain(message: str) -> str:
    """A message as it is, on one line."""
    return _cut(message)


SENTENCES: dict[str, Callable[[str], str]] = {
    "recompile": recompile,
    "recompile_limit": recompile_limit,
    "graph_break": graph_break,
    "cudagraph_skip": cudagraph_skip,
    "rerecording": plain,
    "partition": plain,
}


def kind_of(artifact: str, message: str) -> str | None:
    """The kind of a message of a log artifact; None for what says nothing about a path."""
    if artifact != "cudagraphs":
        return {"recompiles": "recompile", "graph_breaks": "graph_break", "recompile_limits": "recompile_limit"}.get(artifact)
    lowered = message.lower()
    found = (("skipping", "cudagraph_skip"), ("re-recording", "rerecording"), ("partition", "partition"))
    return next((kind for word, kind in found if word in lowered), None)


def _place(match: re.Match[str]) -> str:
    return f"{PurePath(match['file']).name}:{match['line']}"


def _guard(match: re.Match[str]) -> str:
    """The guard with the code that torch adds, without the folders of its file."""
    return _cut(re.sub(r"(?:[^\s/]*/)+(\S+\.py:\d+)", r"\1", match["guard"]))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
