"""Which blocks ran under conditions that do not count, by a rule that cannot empty the result.

A marked block is left out, unless that would leave two cells of its shape with under half of the rotations that they
share (a cell alone: of its own): then all blocks of the shape are kept, and the shape is said to have run under that
regime throughout (nvbench drops whatever is below 75 % of the clock, and never ends on a device that is power-capped
for good). Differences of cells are taken inside rotations, so that marks that fall on one cell each cost them all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from statistics import median
from typing import NamedTuple

import numpy as np

from stages.core.records.steps import Block, Conditions, Rotations, Settling

LEAST_CLOCK_SHARE = 0.75  # nvbench's limit, of the largest SM clock
LARGEST_QUEUE_SHARE = 0.05
LEAST_CPU_SHARE = 0.9
LARGEST_OTHER_GROWTH_BYTES = 256 << 20
LARGEST_SLOWDOWN = 1.15
USUAL_QUANTILE = 0.1
"""Of all readings of the host's loop: the speed that it has when nothing slows it."""
LEAST_KEPT_SHARE = 0.5
HELD_DOWN = ("thermal", "hardware_thermal", "power_brake")  # a power cap alone shows in the clock


class Usual(NamedTuple):
    """What a block is held against: the device that it ran on, and the host's loop when nothing slows it, us (None: not read)."""

    device: str
    host_loop_us: float | None = None


def usual(rotations: Rotations) -> Usual:
    """Of one record, whose sets all come from one machine."""
    readings = _host_readings(rotations)
    return Usual(rotations.device, float(np.quantile(readings, USUAL_QUANTILE)) if readings else None)


def marks(block: Block, usually: Usual) -> list[str]:
    """What speaks against a block: `throttled: ...` and `contended: ...` with their numbers; empty for a good one."""
    found = block.conditions
    return [] if found is None else [*_throttled(found), *_contended(found, usually.device), *_slowed(found, usually)]


def _throttled(found: Conditions) -> list[str]:
    reasons = [f"throttled: {name} for {found.event_us[name]:,.0f} us" for name in HELD_DOWN if found.event_us.get(name, 0.0) > 0]
    if found.sm_clock_mhz and found.max_sm_clock_mhz and found.sm_clock_mhz < LEAST_CLOCK_SHARE * found.max_sm_clock_mhz:
        reasons.append(f"throttled: SM clock {found.sm_clock_mhz} of {found.max_sm_clock_mhz} MHz")
    return reasons


def _contended(found: Conditions, device: str) -> list[str]:
    reasons = []
    if found.queue_share is not None and found.queue_share > LARGEST_QUEUE_SHARE:
        reasons.append(f"contended: waited for a processor for {found.queue_share:.0%} of the time")
    if device == "cpu" and found.cpu_share is not None and found.cpu_share < LEAST_CPU_SHARE:
        reasons.append(f"contended: had a processor for {found.cpu_share:.0%} of the time")
    if found.other_growth_bytes is not None and found.other_growth_bytes > LARGEST_OTHER_GROWTH_BYTES:
        reasons.append(f"contended: others took {found.other_growth_bytes / 2**20:,.0f} MiB of the device")
    return reasons


def _slowed(found: Conditions, usually: Usual) -> list[str]:
    """Only where steps are launched by one thread; on a CPU they run on all processors, and the loop is of one."""
    if usually.device == "cpu" or usually.host_loop_us is None or not found.host_loop_us:
        return []
    slowdown = max(found.host_loop_us) / usually.host_loop_us
    return [f"contended: the host's processor took {slowdown:.2f} times its usual time"] if slowdown > LARGEST_SLOWDOWN else []


def _host_readings(rotations: Rotations) -> list[float]:
    return [us for block in rotations.blocks if block.conditions for us in block.conditions.host_loop_us]


def timed(rotations: Rotations, shape: str) -> list[Block]:
    """The blocks of one shape that were timed and not voided."""
    return [block for block in rotations.blocks if block.shape == shape and not block.voided and block.wall_us]


def kept(blocks: Sequence[Block], usually: Usual) -> list[Block]:
    """The blocks of one shape that count: those with no mark, or all, where two cells would lose more than half of their rotations."""
    good = [block for block in blocks if not marks(block, usually)]
    total, left = _turns(blocks), _turns(good)
    pairs = combinations_with_replacement(total, 2)
    too_few = any(len(left[a] & left[b]) < LEAST_KEPT_SHARE * len(total[a] & total[b]) for a, b in pairs)
    return list(blocks) if too_few else good


def _turns(blocks: Sequence[Block]) -> Mapping[str, set[tuple[int, int]]]:
    """Sets and rotations in which a cell has a block."""
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for block in blocks:
        found[block.cell].add((block.set_index, block.rotation_index))
    return found


def sentences(rotations: Rotations) -> list[str]:
    """What a reader must know: blocks left out, shapes under a regime throughout, cells that did not settle."""
    out: Counter[str] = Counter()
    regimes: list[str] = []
    num_timed, usually = 0, usual(rotations)
    for shape in dict.fromkeys(block.shape for block in rotations.blocks):
        blocks = timed(rotations, shape)
        num_timed += len(blocks)
        bad = [block for block in blocks if marks(block, usually)]
        if len(kept(blocks, usually)) == len(blocks):
            regimes += [f"{shape} ({_listed(_kinds(bad, usually))} of {len(blocks)})"] if bad else []
        else:
            out += _kinds(bad, usually)
    said = [f"blocks left out: {_listed(out)} of {num_timed}"] if out else []
    if regimes:
        said.append(f"blocks kept although marked, because too few others are left: {', '.join(regimes)}")
    return said + _host_speeds(rotations) + _not_settled(rotations)


def _host_speeds(rotations: Rotations) -> list[str]:
    """How the host's speed went, where it did not stay within what is usual."""
    readings, usually = sorted(_host_readings(rotations)), usual(rotations).host_loop_us
    if usually is None or readings[-1] <= LARGEST_SLOWDOWN * usually:
        return []
    slow = sum(us > LARGEST_SLOWDOWN * usually for us in readings)
    return [
        f"the host's processor took {readings[0]:.0f} to {readings[-1]:.0f} us for the same loop of Python beside the blocks,"
        f" in {slow} of {len(readings)} readings over {LARGEST_SLOWDOWN} times its usual {usually:.0f} us:"
        " steps that wait for the host take that much longer then"
    ]


def switch_costs_us(rotations: Rotations) -> dict[str, float]:
    """What the first call after another cell had the device takes more than a timed one, us: the median over a mode's blocks."""
    found: dict[str, list[float]] = {}
    for block in rotations.blocks:
        if block.first_call_us is not None and block.wall_us and not block.voided:
            found.setdefault(block.mode, []).append(block.first_call_us - median(block.wall_us))
    return {mode: median(values) for mode, values in found.items()}


def _not_settled(rotations: Rotations) -> list[str]:
    """A sentence a cell, with the reason of the first shape."""
    found: dict[str, list[Settling]] = {}
    for one in rotations.settling:
        if not one.settled:
            found.setdefault(one.cell, []).append(one)
    return [
        f"not_settled: {cell} at {', '.join(dict.fromkeys(one.shape for one in some))}; {some[0].shape}: {some[0].reason}"
        for cell, some in found.items()
    ]


def _kinds(blocks: Iterable[Block], usually: Usual) -> Counter[str]:
    """Marked blocks by kind; a block may have both."""
    return Counter(kind for block in blocks for kind in {mark.split(":")[0] for mark in marks(block, usually)})


def _listed(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
