"""Evidence of the path, correctness of the answers, and the quiet of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, mode_names, part
from stages.views.figures.waterfall import describe
from stages.views.tables.modes import evidence_word
from stages.views.tables.table import Table, dropped_empty, pairs

_COUNTS = ("num_graph_breaks", "num_recompiles", "num_captures", "num_recordings", "num_replays")
_GIVEN_UP = "steps by the baseline path"
_QUIET = 1.05
_MARKS = {"pass": "✓", "fail": "✗ fail", "not_run": "– not run", "reported": "reported"}


def paths(study: Study) -> Table:
    """What was claimed, what run-time evidence says, and the counts behind it."""
    rows = []
    for name in mode_names(study):
        found = part(study, "modes", name, "evidence")
        claim = part(study, "modes", name, "claim")
        if found:
            reasons = "; ".join(str(reason) for reason in found.get("reasons") or [])
            counts = [words.count(found.get(key)) for key in _COUNTS]
            taken = pairs(part(found, "path_counts"), words.count)
            given_up = words.percent(dig(study, "modes", name, "coverage", "baseline_share", "num_steps"))
            rows.append(
                [name, _claim(claim), evidence_word(study, name), taken, given_up, *counts, reasons, str(claim.get("documented_at") or "")]
            )
    numbers = [key.removeprefix("num_").replace("_", " ") for key in _COUNTS]
    columns = ["mode", "claim", "path", "steps by path", _GIVEN_UP, *numbers, "reasons", "documented at"]
    return dropped_empty(Table("Evidence", columns, rows, texts=frozenset(columns) - frozenset(numbers)))


def _claim(claim: Mapping[str, Any]) -> str:
    return ", ".join(str(claim[key]) for key in ("family", "transform", "replay", "stability") if key in claim) or words.ABSENT


def probes(study: Study) -> Table:
    """Probes down, modes across, with the hazards that each looks for; empty for a study without probes."""
    modes = {name: _probes(study, name) for name in mode_names(study)}
    modes = {name: found for name, found in modes.items() if found}
    every: dict[str, Any] = {key: run for found in modes.values() for key, run in found.items()}
    rows = []
    for key, run in every.items():
        marks = (_probe_mark(found.get(key)) for found in modes.values())
        hazards = "; ".join(str(hazard) for hazard in dig(run, "hazards") or [])
        rows.append([key, *marks, hazards, str(dig(run, "about") or "")])
    if rows:
        rows.append(["executed", *(_executed(found) for found in modes.values()), "", ""])
    return dropped_empty(Table("Probes", ["probe", *modes, "looks for", "how"], rows, texts=frozenset([*modes, "looks for", "how"])))


def _probe_mark(run: Any) -> str:
    """The worst verdict of its checks; where it made none, whether there was nothing to check."""
    verdict = str(dig(run, "verdict") or words.ABSENT)
    if verdict == "not_run" and str(dig(run, "reason") or "").startswith("not applicable"):
        return "– not applicable"
    return _MARKS.get(verdict, verdict)


def _executed(found: Mapping[str, Any]) -> str:
    return f"{sum((words.number(dig(run, 'num_checks')) or 0) > 0 for run in found.values())} of {len(found)}"


def _probes(study: Study, name: str) -> dict[str, Any]:
    return {str(dig(run, "name")): run for run in part(study, "modes", name, "correctness").get("probes") or []}


def correctness(study: Study) -> Table:
    """Checks down, modes across; the limit and what a check says of itself once, where all modes share them."""
    modes = {name: _checks(study, name) for name in mode_names(study)}
    modes = {name: found for name, found in modes.items() if found}
    keys = list(dict.fromkeys(key for found in modes.values() for key in found))
    rows = [_check_row(key, [found.get(key) for found in modes.values()]) for key in keys]
    verdicts = ["verdict", *(str(dig(study, "modes", name, "correctness", "verdict")) for name in modes), "", ""]
    columns = ["check, subject", *modes, "limit", "note"]
    note = "The value seen; a check passes up to its limit. Shapes are padded batch sizes (decode) and prompt lengths in tokens (prefill)."
    return dropped_empty(Table("Checks", columns, [*rows, verdicts] if rows else [], note, frozenset([*modes, "note"])))


def _checks(study: Study, name: str) -> dict[str, Any]:
    found = part(study, "modes", name, "correctness").get("checks") or []
    return {f"{dig(check, 'name')}, {dig(check, 'subject')}": check for check in found}


def _check_row(key: str, checks: list[Any]) -> list[str]:
    limits = {words.plain(dig(check, "limit")) for check in checks if check}
    notes = dict.fromkeys(str(dig(check, "reason")) for check in checks if dig(check, "verdict") == "pass" and dig(check, "reason"))
    limit = limits.pop() if len(limits) == 1 else ""
    return [key, *(_mark(check, shared_limit=bool(limit)) for check in checks), limit, "; ".join(notes)]


def _mark(check: Any, shared_limit: bool) -> str:
    """`✓ 0.0274`; the reason only of a check that did not pass."""
    if check is None:
        return words.ABSENT
    verdict = str(dig(check, "verdict"))
    value, limit = words.number(dig(check, "value")), words.number(dig(check, "limit"))
    number = "" if value is None else f" {words.plain(value)}"
    against = "" if value is None or limit is None or shared_limit else f", limit {words.plain(limit)}"
    reason = f": {dig(check, 'reason')}" if dig(check, "reason") and verdict != "pass" else ""
    return _MARKS.get(verdict, verdict) + number + against + reason


def twins(study: Study) -> list[Any]:
    """All A/A pairs of all factorials."""
    return [pair for answer in part(study, "attribution").values() for pair in dig(answer, "twins", "pairs") or []]


def quiet(study: Study) -> Table:
    """The A/A pairs: one mode twice in a rotation; a difference is the machine's."""
    rows = []
    for pair in twins(study):
        ratio = words.speedup(dig(pair, "ratio")) + words.interval(dig(pair, "low"), dig(pair, "high"))
        rows.append([str(dig(pair, "mode")), describe(str(dig(pair, "point"))), ratio, called(pair)])
    note = (
        "The same mode measured twice in one rotation: what differs is the machine. “within 5 %”: so quiet that a difference of 5 %"
        " between modes would be seen; “not told apart”: the interval is too wide to say."
    )
    return Table("A/A pairs", ["mode twice", "point", "ratio", "called"], rows, note, frozenset({"point", "called"}))


def called(pair: Any) -> str:
    """`different`, `within 5 %` (its interval, or without one its ratio), or `not told apart`."""
    if dig(pair, "different"):
        return "different"
    ratio = words.number(dig(pair, "ratio"))
    low, high = (words.number(dig(pair, key)) for key in ("low", "high"))
    ends = (ratio if low is None else low, ratio if high is None else high)
    return "within 5 %" if all(end is not None and 1 / _QUIET <= end <= _QUIET for end in ends) else "not told apart"
