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
_MARKS = {"pass": "✓ pass", "fail": "✗ fail", "not_run": "– not run"}


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
            rows.append([name, _claim(claim), evidence_word(study, name), taken, *counts, reasons, str(claim.get("documented_at") or "")])
    numbers = [key.removeprefix("num_").replace("_", " ") for key in _COUNTS]
    columns = ["mode", "claim", "path", "steps by path", *numbers, "reasons", "documented at"]
    return dropped_empty(Table("Evidence", columns, rows, texts=frozenset(columns) - frozenset(numbers)))


def _claim(claim: Mapping[str, Any]) -> str:
    return ", ".join(str(claim[key]) for key in ("family", "transform", "replay", "stability") if key in claim) or words.ABSENT


def correctness(study: Study) -> Table:
    """Checks down, modes across."""
    modes = {name: _checks(study, name) for name in mode_names(study)}
    modes = {name: found for name, found in modes.items() if found}
    keys = list(dict.fromkeys(key for found in modes.values() for key in found))
    rows = [[key, *(_mark(found.get(key)) for found in modes.values())] for key in keys]
    verdicts = ["verdict", *(str(dig(study, "modes", name, "correctness", "verdict")) for name in modes)]
    columns = ["check, subject", *modes]
    return Table("Checks", columns, [*rows, verdicts] if rows else [], texts=frozenset(modes))


def _checks(study: Study, name: str) -> dict[str, Any]:
    found = part(study, "modes", name, "correctness").get("checks") or []
    return {f"{dig(check, 'name')}, {dig(check, 'subject')}": check for check in found}


def _mark(check: Any) -> str:
    if check is None:
        return words.ABSENT
    value, limit = words.number(dig(check, "value")), words.number(dig(check, "limit"))
    mark = _MARKS.get(str(dig(check, "verdict")), str(dig(check, "verdict")))
    numbers = "" if value is None else f" ({words.plain(value)}{'' if limit is None else f', limit {words.plain(limit)}'})"
    reason = f": {dig(check, 'reason')}" if dig(check, "reason") else ""
    return mark + numbers + reason


def twins(study: Study) -> list[Any]:
    """All A/A pairs of all factorials."""
    return [pair for answer in part(study, "attribution").values() for pair in dig(answer, "twins", "pairs") or []]


def quiet(study: Study) -> Table:
    """The A/A pairs: one mode twice in a rotation; a difference is the machine's."""
    rows = []
    for pair in twins(study):
        ratio = words.speedup(dig(pair, "ratio")) + words.interval(dig(pair, "low"), dig(pair, "high"))
        rows.append([str(dig(pair, "mode")), describe(str(dig(pair, "point"))), ratio, "different" if dig(pair, "different") else "same"])
    return Table("A/A pairs", ["mode twice", "point", "ratio", "called"], rows, texts=frozenset({"point", "called"}))
