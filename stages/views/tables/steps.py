"""Step times, attribution, bottlenecks and floors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, mode_names, part, points, shown_modes, sort_numeric
from stages.views.figures.waterfall import describe
from stages.views.tables.table import Table, dropped_empty, estimate, pairs, versus

_CONTRASTS = {
    "total": "total",
    "compiled_alone": "compiled alone",
    "replay_alone": "replay alone",
    "kernels_given_replay": "kernels given replay",
    "replay_given_compiled": "replay given compiled",
    "interaction": "interaction",
}


def step_times(study: Study) -> Table:
    """The three clocks at every shape, for modes that may be ranked."""
    rows = [[name, what, *_clocks(times)] for name in shown_modes(study) for what, times in _shapes(study, name)]
    columns = ["mode", "step", "wall median", "p90", "p99", "samples", "device median", "pipelined", "against baseline"]
    note = "p90 needs 20 samples, p99 459. Steady state: start-up is not included."
    return dropped_empty(Table("Step times", columns, rows, note, frozenset({"step", "against baseline"})))


def _shapes(study: Study, name: str) -> Iterator[tuple[str, Any]]:
    steps = part(study, "modes", name, "steady_state")
    for phase, unit in (("decode", "batch"), ("prefill", "tokens")):
        for size in sort_numeric(part(steps, phase)):
            yield f"{phase}, {unit} {size}", steps[phase][size]


def _clocks(times: Any) -> list[str]:
    wall = part(times, "wall_us")
    tail = [words.microseconds(wall.get(key)) for key in ("median", "p90", "p99")]
    others = [words.microseconds(dig(times, clock, "median")) for clock in ("device_us", "pipelined_us")]
    return [*tail, words.count(wall.get("n")), *others, versus(times)]


def sequence(study: Study) -> Table:
    """The headline: one pass over the step sequence."""
    rows = []
    for name in shown_modes(study):
        found = part(study, "modes", name, "steady_state", "sequence")
        seconds = found.get("sequence_s")
        value = dig(seconds, "value") if isinstance(seconds, Mapping) else seconds
        if words.number(value) is not None:
            steps = f"{words.count(found.get('num_steps'))} of {words.count(found.get('steps_in_trace'))}"
            rows.append([name, words.seconds(value), steps, words.plain(found.get("tokens_per_s")), versus(found)])
    columns = ["mode", "sequence", "steps timed", "tokens/s", "against baseline"]
    return Table("Whole step sequence", columns, rows, "Start-up is not included.", frozenset({"steps timed", "against baseline"}))


def attribution(study: Study) -> Table:
    """Each contrast of each factorial, from its own differences inside rotations."""
    rows = []
    for name, answer in sorted(part(study, "attribution").items()):
        found = points(answer)
        cells = {key: _contrast_cells(found[key]) for key in sort_numeric(found)}
        rows += [[f"{name}, {describe(key)}", *row] for key, row in cells.items() if any(cell != words.ABSENT for cell in row[:-1])]
    columns = ["factorial, point", *_CONTRASTS.values(), "closure error", "measured", "product of separate", "not known because"]
    note = "Time saved a step (the whole sequence: in one pass). Positive interaction: compiling and replaying remove the same overhead."
    return dropped_empty(Table("What saves how much", columns, rows, note, frozenset({"not known because"})))


def _contrast_cells(found: Mapping[str, Any]) -> list[str]:
    cells = [estimate(found.get(key)) for key in _CONTRASTS]
    missing = "; ".join(str(reason) for reason in found.get("missing") or [])
    speedups = [words.speedup(found.get("measured_speedup")), words.speedup(found.get("product_of_speedups"))]
    return [*cells, words.microseconds(found.get("closure_error_us")), *speedups, missing]


def bottlenecks(study: Study) -> Table:
    """wall = busy + idle, per mode and point."""
    rows = []
    for name in mode_names(study):
        found = part(study, "modes", name, "bottleneck")
        for key in sort_numeric(key for key, value in found.items() if isinstance(value, Mapping)):
            where = found[key]
            shares = pairs(part(where, "shares"), words.percent)
            times = [words.microseconds(where.get(unit)) for unit in ("wall_us", "busy_us")]
            rows.append([name, describe(key), str(where.get("name", words.ABSENT)), *times, shares, words.speedup(where.get("dilation"))])
    columns = ["mode", "point", "bottleneck", "wall", "busy", "shares of wall", "profiler's dilation"]
    return dropped_empty(Table("Bottlenecks", columns, rows, texts=frozenset({"point", "bottleneck", "shares of wall"})))


def no_floor(study: Study) -> list[str]:
    """Why no step of this study has a floor, in one sentence; nothing where one has."""
    entries = [entry for name in shown_modes(study) for entry in part(study, "modes", name, "floor").values()]
    reasons = dict.fromkeys(str(reason) for entry in entries if (reason := dig(entry, "reason")))
    if not reasons or any(words.number(dig(entry, "floor_us")) is not None for entry in entries):
        return []
    return [words.clean(f"floor of a step: {'; '.join(reasons)}")]


def floors(study: Study) -> Table:
    """How near a mode is to what the device allows; no rows where no step has a floor (`no_floor` says why)."""
    rows = []
    for name in shown_modes(study):
        found = part(study, "modes", name, "floor")
        for key in sort_numeric(found):
            cells = [
                words.microseconds(dig(found, key, "floor_us")),
                words.speedup(dig(found, key, "ratio")),
                str(dig(found, key, "reason") or ""),
            ]
            rows.append([name, describe(key), *cells])
    columns = ["mode", "point", "floor", "measured / floor", "why none"]
    note = "The floor is the larger of bytes / bandwidth and operations / rate, both measured on the device."
    return dropped_empty(Table("Floors", columns, [] if no_floor(study) else rows, note, frozenset({"point", "why none"})))
