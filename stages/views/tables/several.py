"""One pair of modes in several factorials, and the choice along a worker's life."""

from __future__ import annotations

from stages.analysis.lifetimes import CACHES
from stages.analysis.spans import LEAST_SHARE
from stages.analysis.wording import seconds
from stages.views import words
from stages.views.document import Study, baseline, dig, mode_names, part, sort_numeric, why_not
from stages.views.figures.waterfall import describe
from stages.views.tables.table import Table, versus

RULE = (
    "Where several factorials timed a mode, its times and speed-ups are those of the factorial that also holds the recommended mode; of"
    " several, of the one declared first."
)


def repeats(study: Study) -> Table:
    """The speed-up that is used everywhere else, beside that of each other factorial."""
    rows = []
    for mode in mode_names(study):
        found = {} if why_not(study, mode) else part(study, "modes", mode, "repeats")
        points = sorted(sort_numeric(found), key=lambda point: point != "sequence")
        rows += [_row(study, mode, point) for point in points]
    note = (
        f"{baseline(study)} / mode, measured again in other sets of processes: a check of the measurement. Agree: the intervals"
        f" overlap, or, with one set and so no interval, the ratios lie within 5 %. {RULE}"
    )
    columns = ["mode, point", "used", "from", "in another", "from it", "check"]
    return Table("The same pair in several factorials", columns, rows, note, frozenset({"from", "from it", "check"}))


def _row(study: Study, mode: str, point: str) -> list[str]:
    found = part(study, "modes", mode, "repeats", point)
    used, *others = ({"vs_baseline": one} for one in found.get("speedups") or [{}])
    names = [str(dig(one, "vs_baseline", "factorial")) for one in (used, *others)]
    shown = "; ".join(versus(one) for one in others)
    check = "agree" if found.get("agree") else "disagree"
    return [f"{mode}, {describe(point)}", versus(used), names[0], shown, ", ".join(names[1:]), check]


def disagreeing(study: Study, mode: str) -> list[tuple[str, str]]:
    """(factorial, speed-up) of the others that give another speed-up of the mode over the sequence."""
    found = part(study, "modes", mode, "repeats", "sequence")
    if not found or found.get("agree"):
        return []
    return [(str(one["factorial"]), versus({"vs_baseline": one})) for one in found["speedups"][1:]]


def along_a_life(study: Study) -> Table:
    """The verdict's rule between the lifetimes of params.yaml."""
    rows = []
    found = part(study, "verdict", "spans")
    for rate in sort_numeric(found):
        for state in [name for name in CACHES if name in found[rate]]:
            chain = ", ".join(f"{dig(span, 'mode')} from {seconds(float(span['from_s']))}" for span in found[rate][state])
            rows.append([words.rate(rate), state, chain])
    sliver = f"a choice that holds for under {LEAST_SHARE * 100:g} % of a lifetime, and at none of those above, is left out"
    note = f"The same rule at every lifetime up to the longest tested; {sliver}."
    return Table("Along a worker's life", ["arrivals", "caches", "choice"], rows, note, frozenset({"caches", "choice"}))
