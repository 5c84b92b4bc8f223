"""Which blocks ran under conditions that do not count, by a rule that cannot empty the result.

A marked block is left out, unless two cells of its shape would then share under half of their rotations, or not all of
their sets: then all blocks of the shape are kept, and the shape is said to have run under that regime throughout (nvbench
drops whatever is below 75 % of the clock, and never ends on a device that is power-capped for good). Differences are taken
inside rotations and repeat over sets, so that marks that fall on one cell each would cost them all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from statistics import median

from stages.core.host_readings import LARGEST_SLOWDOWN, num_slow, readings, usual_us
from stages.core.records.steps import Block, Conditions, Rotations, Settling

LEAST_CLOCK_SHARE = 0.75  # nvbench's limit, of the largest SM clock
LARGEST_QUEUE_SHARE = 0.05
LEAST_CPU_SHARE = 0.9
FULL_CLOCK_SHARE = 0.95
LARGEST_OTHER_GROWTH_BYTES = 256 << 20
LEAST_KEPT_SHARE = 0.5
HELD_DOWN = ("thermal", "hardware_thermal", "power_brake")  # a power cap alone shows in the clock


def marks(block: Block, device: str) -> list[str]:
    """What speaks against a block: `throttled: ...` and `contended: ...` with their numbers; empty for a good one."""
    found = block.conditions
    return [] if found is None else [*_throttled(found), *_contended(found, device)]


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


def timed(rotations: Rotations, shape: str) -> list[Block]:
    """The blocks of one shape that were timed and not voided."""
    return [block for block in rotations.blocks if block.shape == shape and not block.voided and block.wall_us]


def kept(blocks: Sequence[Block], device: str) -> list[Block]:
    """The blocks of one shape that count: those with no mark, or all, where two cells would lose a set or half their rotations."""
    good = [block for block in blocks if not marks(block, device)]
    total, left = _turns(blocks), _turns(good)
    pairs = combinations_with_replacement(total, 2)
    return list(blocks) if any(_too_few(left[a] & left[b], total[a] & total[b]) for a, b in pairs) else good


def _turns(blocks: Sequence[Block]) -> Mapping[str, set[tuple[int, int]]]:
    """Sets and rotations in which a cell has a block."""
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for block in blocks:
        found[block.cell].add((block.set_index, block.rotation_index))
    return found


def _too_few(left: set[tuple[int, int]], total: set[tuple[int, int]]) -> bool:
    lost_a_set = {set_index for set_index, _ in left} != {set_index for set_index, _ in total}
    return lost_a_set or len(left) < LEAST_KEPT_SHARE * len(total)


def sentences(rotations: Rotations) -> list[str]:
    """What a reader must know: blocks left out, shapes under a regime throughout, cells that did not settle."""
    out: Counter[str] = Counter()
    regimes: list[str] = []
    num_timed = 0
    for shape in dict.fromkeys(block.shape for block in rotations.blocks):
        blocks = timed(rotations, shape)
        num_timed += len(blocks)
        bad = [block for block in blocks if marks(block, rotations.device)]
        if len(kept(blocks, rotations.device)) == len(blocks):
            regimes += [f"{shape} ({_listed(_kinds(bad, rotations.device))} of {len(blocks)})"] if bad else []
        else:
            out += _kinds(bad, rotations.device)
    said = [f"blocks left out: {_listed(out)} of {num_timed}"] if out else []
    if regimes:
        said.append(f"blocks kept although marked, because too few others are left: {', '.join(regimes)}")
    return said + _power_capped(rotations) + _host_speeds(rotations) + _not_settled(rotations)


def _power_capped(rotations: Rotations) -> list[str]:
    """Shapes in which the device drew all the power that it may: no throttling by the rule above, and a clock that follows the load."""
    found = []
    for shape in dict.fromkeys(block.shape for block in rotations.blocks):
        blocks = timed(rotations, shape)
        capped = [block.conditions for block in blocks if block.conditions and block.conditions.event_us.get("power_cap", 0.0) > 0]
        clocks = [one.sm_clock_mhz for one in capped if one.sm_clock_mhz]
        if len(capped) > LEAST_KEPT_SHARE * len(blocks) and clocks and min(clocks) < FULL_CLOCK_SHARE * _full_clock(capped):
            found.append(f"{shape} (SM clock {min(clocks)} to {max(clocks)} of {_full_clock(capped)} MHz)")
    if not found:
        return []
    return [
        f"the power cap held the clock down in {', '.join(found)}: calls take longer the longer the device is busy,"
        " so that a burst may be slower than single calls"
    ]


def _full_clock(conditions: Sequence[Conditions]) -> int:
    return max((one.max_sm_clock_mhz or 0 for one in conditions), default=0)


def _host_speeds(rotations: Rotations) -> list[str]:
    """How the host's speed went, where it changed, and how many blocks were measured again for it."""
    found = readings([*rotations.blocks, *rotations.slowed])
    found += [us for run in rotations.sequences for us in run.host_loop_us]
    usually_us = usual_us(found) if found else 0.0
    if not (slow := num_slow(found, usually_us)):
        return []
    num_calls = sum(len(times) for block in rotations.blocks for times in block.repeated_us.values())
    num_calls += sum(len(run.repeated_s) for run in rotations.sequences)
    repeated = {"calls or bursts were made": num_calls, "blocks were measured": len(rotations.slowed)}
    again = "".join(f"; {num} {what} again for it" for what, num in repeated.items() if num)
    return [
        f"the host's processor took {min(found):.0f} to {max(found):.0f} us for the same loop of Python beside the timed steps,"
        f" in {slow} of {len(found)} readings over {LARGEST_SLOWDOWN} times its usual {usually_us:.0f} us{again}:"
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


def _kinds(blocks: Iterable[Block], device: str) -> Counter[str]:
    """Marked blocks by kind; a block may have both."""
    return Counter(kind for block in blocks for kind in {mark.split(":")[0] for mark in marks(block, device)})


def _listed(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
