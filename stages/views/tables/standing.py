"""Who is fastest at each point, and how the two of a direct comparison were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, part, sort_numeric
from stages.views.figures.waterfall import describe
from stages.views.tables.table import Table, dropped_empty

_AGREES: dict[Any, str] = {True: "the clocks agree", False: "the clocks are off", None: "the clocks were not checked"}


def winners(study: Study) -> Table:
    """The fastest mode of each factorial at each point, or those that are not told apart."""
    rows = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        found = part(answer, "winners")
        repeated = (words.number(answer.get("num_sets")) or 0) > 1
        rows += [[f"{factorial}, {describe(point)}", *_standing(found[point], repeated)] for point in sort_numeric(found)]
    columns = ["factorial, point", "fastest", "not told apart from it", "closest other takes", "compared with", "confidence of each"]
    note = (
        "The best of several is picked by the numbers that judge it, so each comparison is at the confidence that lets all of them hold"
        " together at 95 % (Bonferroni)."
    )
    return dropped_empty(Table("Fastest at each point", columns, rows, note, frozenset({"fastest", "not told apart from it"})))


def _standing(found: Mapping[str, Any], repeated: bool) -> list[str]:
    """One set of processes has no interval, so no confidence either."""
    tied = [str(mode) for mode in found.get("tied") or []]
    fastest = str(found.get("fastest")) if not tied else f"undecided ({found.get('fastest')} in the mean)"
    cells = [
        words.speedup(found.get("least_speedup")),
        words.count(found.get("num_compared")),
        words.percent(found.get("confidence") if repeated else None),
    ]
    return [fastest, ", ".join(tied), *cells]


def heats(study: Study) -> Table:
    """Mean time of the sequence in the heat, and who went on."""
    rows = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        went_on = _went_on(answer)
        for mode, mean_s in sorted(part(answer, "heat").items(), key=lambda item: (item[1], item[0])):
            rows.append([f"{factorial}, {mode}", words.seconds(mean_s), "yes" if mode in went_on else "no"])
    note = "One set of processes, two passes each: it only chooses. What is said about those that went on comes from the sets after it."
    return Table("Heat", ["factorial, mode", "sequence", "went on"], rows, note)


def stopping(study: Study) -> Table:
    """What ended the sets of each factorial, and what a switch between processes costs a mode."""
    rows = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        reasons = Counter(str(reason) for reason in dig(answer, "stopped") or [])
        said = "; ".join(f"{count} sets: {reason}" if count > 1 else reason for reason, count in reasons.items())
        switch = ", ".join(f"{mode} {words.microseconds(us)}" for mode, us in part(answer, "switch_us").items())
        if said or switch:
            rows.append([factorial, words.count(answer.get("num_sets")), said, switch])
    note = (
        "The first call after another process had the device is made before the timed ones; what it takes more than one of them is the"
        " cost of the switch."
    )
    columns = ["factorial", "sets", "what ended them", "a switch costs"]
    return dropped_empty(Table("How it was timed", columns, rows, note, frozenset(columns[2:])))


def direct(study: Study) -> list[str]:
    """A sentence a heat: the modes that went on, and which of them is faster over the sequence."""
    found = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        heat, winner = part(answer, "heat"), part(answer, "winners", "sequence")
        if not heat or not winner:
            continue
        usable = {str(mode) for cell, mode in part(answer, "cells").items() if not part(answer, "cell_reasons").get(cell)}
        others, unusable = usable - {str(winner.get("fastest"))}, _went_on(answer) - usable
        pair = f"{winner.get('fastest')} and {', '.join(sorted(others))}"
        by = words.speedup(winner.get("least_speedup"))
        said = f"are not told apart ({by})" if winner.get("tied") else f"differ by {by}, the first is faster"
        met = f"of {len(heat)} modes in a heat, {pair} met directly in fresh processes" + _beside(unusable)
        found.append(words.clean(f"{factorial}: {met}: over the sequence they {said}."))
    return found


def _went_on(answer: Mapping[str, Any]) -> set[str]:
    return set(map(str, dig(answer, "went_on") or []))


def _beside(unusable: set[str]) -> str:
    """Those that went on and get no gain: their path or answers were objected to."""
    return f" ({', '.join(sorted(unusable))} went on too and cannot be credited)" if unusable else ""


def conditions(study: Study) -> list[str]:
    """Sentences on the clocks and on the machine while it measured, a factorial."""
    found = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        if timer := part(answer, "timer"):
            verdict = _AGREES[timer.get("agrees")]
            found.append(words.clean(f"{factorial}: {verdict}: {timer.get('reason')}"))
        found += [words.clean(f"{factorial}: {text}") for text in dig(answer, "conditions") or []]
    return found
