"""Two studies of the same work: which path the steps took, what fell back, what the release supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from stages.analysis.comparison_rules import PROOF, Difference, Study, at, counted, number, ranked
from stages.core.records.path import claimed_path

FALLBACKS, PATHS, SUPPORT = "fallbacks", "paths", "support"
_STATUS = {"ok": 1, "failed": 0, "skipped": 0, "unavailable": 0}


def support(before: Study, after: Study) -> Iterator[Difference]:
    """What the two torch releases can do, fact by fact."""
    first, second = at(before, "environment", "support"), at(after, "environment", "support")
    for name in sorted({*first, *second}):
        yield ranked(SUPPORT, "", name, _supported(at(first, name)), _supported(at(second, name)), {"yes": 1, "no": 0})


def _supported(fact: Mapping[str, Any]) -> str:
    return "not stated" if "supported" not in fact else "yes" if fact["supported"] else "no"


def status(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Whether the mode ran. One that ran in A and does not in B fell back as a whole."""
    row = ranked(FALLBACKS, mode, "status", before.get("status"), after.get("status"), _STATUS)
    section = FALLBACKS if row.judgement == "worse" else PATHS
    return Difference(section, mode, row.subject, row.before, row.after, row.judgement, str(after.get("reason") or ""))


def paths(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Fallbacks by path, the verdict on the claim, breaks and recompiles, and the share of steps on the claimed path."""
    first, second = at(before, "evidence"), at(after, "evidence")
    claimed = claimed_path(at(after, "claim") or at(before, "claim"))
    yield from _fallbacks(mode, claimed, before, after)
    yield ranked(PATHS, mode, "claim", first.get("verdict"), second.get("verdict"), PROOF)
    for name in ("num_graph_breaks", "num_recompiles"):
        yield from counted(PATHS, mode, name, (first.get(name), second.get(name)))
    covered = _share(first, claimed), _share(second, claimed)
    yield from counted(PATHS, mode, f"share of steps {claimed}", covered, higher_is_better=True, why=_walked(before, after))


def _fallbacks(mode: str, claimed: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """One row for each path that is not the claimed one and that a step of either study took."""
    first, second = at(before, "evidence"), at(after, "evidence")
    others = {*at(first, "path_counts"), *at(second, "path_counts")} - {claimed}
    for path in sorted(others):
        shares = _share(first, path), _share(second, path)
        if shares != (0.0, 0.0):
            why = _where(after, path) or _where(before, path)
            yield from counted(FALLBACKS, mode, f"share of steps {path}, not {claimed}", shares, why=why)


def _share(evidence: Mapping[str, Any], path: str) -> float | None:
    num_steps = number(evidence.get("num_steps"))
    return (number(at(evidence, "path_counts").get(path)) or 0.0) / num_steps if num_steps else None


def _where(mode: Mapping[str, Any], path: str) -> str:
    """The shapes at which steps took a path, from the strip; empty where the strip has none."""
    runs = at(mode, "coverage", "strip").get("runs")
    shapes: Counter[str] = Counter()
    for run in runs if isinstance(runs, list) else []:
        if isinstance(run, list) and len(run) == 4 and run[0] == path:
            shapes[f"{run[1]}/{run[2]}"] += int(number(run[3]) or 0)
    return ", ".join(f"{count} at {shape}" for shape, count in shapes.most_common(6))


def _walked(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    walked = [at(side, "coverage").get("steps_walked") for side in (before, after)]
    return f"{walked[0]} and {walked[1]} steps walked" if all(walked) else ""
