"""Each measured gain beside its ceiling, beside the naive product, and beside what the profile says was saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stages.analysis.reconciling import reconciled as agree
from stages.views import words
from stages.views.document import Study, baseline, dig, part, points, sort_numeric
from stages.views.figures.waterfall import describe
from stages.views.tables.table import Table, dropped_empty, estimate


class _Point(NamedTuple):
    factorial: str
    key: str
    contrasts: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.factorial}, {describe(self.key)}"


def _all_points(study: Study) -> Iterator[_Point]:
    for factorial, answer in sorted(part(study, "attribution").items()):
        found = points(answer)
        yield from (_Point(factorial, key, found[key]) for key in sort_numeric(found))


def ceilings(study: Study) -> Table:
    """What replay and kernels saved, and the most that each could have saved of the baseline's step."""
    rows = []
    for point in _all_points(study):
        most = part(study, "modes", baseline(study), "bottleneck", point.key, "ceilings")
        replay, kernels = point.contrasts.get("replay_alone"), point.contrasts.get("kernels_given_replay")
        cells = [*_against(replay, most.get("replay_us")), *_against(kernels, most.get("kernels_us"))]
        if most and any(cell != words.ABSENT for cell in cells):
            rows.append([point.name, *cells])
    columns = ["factorial, point", "saved by replay alone", "at most: idle", "share", "saved by kernels", "at most: busy − floor", "share "]
    note = (
        f"Replay can save no more than the device is idle in a step of {baseline(study)} (wall − busy); kernels no more than it is busy"
        " above the floor of the device. A share above 100 % is a baseline that drifts: the saving is a mean"
        " over rotations, the ceiling comes from the median."
    )
    return dropped_empty(Table("Gains and their ceilings", columns, rows, note))


def _against(saved: Any, most_us: Any) -> list[str]:
    value, most = words.number(dig(saved, "value")), words.number(most_us)
    if value is None or most is None:
        return [words.ABSENT] * 3
    shown, unit = estimate(saved), words.microsecond_unit(most)
    unit = (1e3, "ms") if " ms" in shown else unit
    return [shown, words.plain(most / unit[0], unit[1]), words.percent(value / most) if most > 0 else words.ABSENT]


def products(study: Study) -> list[str]:
    """A sentence a factorial: the measured speed-up, the product of the separate ones, and why they differ."""
    found = []
    for factorial, answer in sorted(part(study, "attribution").items()):
        at = points(answer)
        key = next((key for key in ["sequence", *sort_numeric(at)] if words.number(dig(at, key, "product_of_speedups")) is not None), None)
        measured, product = (words.number(dig(at, key or "", name)) for name in ("measured_speedup", "product_of_speedups"))
        if key and measured and product:
            said = f"measured {words.speedup(measured)}, product of the separate speed-ups {words.speedup(product)}"
            found.append(f"{factorial}, {describe(key)}: {said}. {_why(measured, product)}")
    return found


def _why(measured: float, product: float) -> str:
    if product > 1.05 * measured:
        return "They differ because compiling and replaying remove partly the same overhead, which a product counts twice."
    if measured > 1.05 * product:
        return "Together they save more than the product says: what one leaves over, the other removes."
    return "The two act on different parts of a step, so their product comes near."


def reconciled(study: Study) -> Table:
    """What the profile says was saved, against the contrast that should say the same."""
    rows = [row for point in _all_points(study) for row in (_kernels(point), _replay(study, point)) if row]
    columns = ["factorial, point", "saving", "by the profile", "by the contrast", "agreement"]
    note = (
        "Two ways to the same saving. Busy time saved by compiled kernels (profiles) against R − CR; idle time saved by replay"
        " (unprofiled wall − busy) against E − R. “Reconciled”: equal within the interval and 5 %."
    )
    return dropped_empty(Table("Do profile and timing agree", columns, rows, note, frozenset({"saving", "agreement"})))


def _kernels(point: _Point) -> list[str]:
    return _row(point, "busy, by kernels", words.number(point.contrasts.get("busy_saved_us")), point.contrasts.get("kernels_given_replay"))


def _replay(study: Study, point: _Point) -> list[str]:
    cells = part(study, "attribution", point.factorial, "cells")
    idle = [_idle_us(study, str(cells.get(cell)), point.key) for cell in ("E", "R")]
    saved = None if idle[0] is None or idle[1] is None else idle[0] - idle[1]
    return _row(point, "idle, by replay", saved, point.contrasts.get("replay_alone"))


def _idle_us(study: Study, mode: str, key: str) -> float | None:
    wall, busy = (words.number(dig(study, "modes", mode, "bottleneck", key, name)) for name in ("wall_us", "busy_us"))
    return None if wall is None or busy is None else wall - busy


def _row(point: _Point, what: str, saved: float | None, contrast: Any) -> list[str]:
    value, low, high = (words.number(dig(contrast, key)) for key in ("value", "low", "high"))
    if saved is None or value is None:
        return []
    agreement = "reconciled" if agree(saved, value, low, high) else "not reconciled"
    return [point.name, what, words.microseconds(saved), estimate(contrast), agreement]
