"""What a step waits for: wall = busy + idle, and idle split by what the host did then.

Busy comes from profiled device intervals (operator self time on a CPU), wall from unprofiled runs, because tracing
slows the host: idle is their difference, and the profiled host times only say how to divide it.
"""

from __future__ import annotations

from typing import NamedTuple

from stages.core.records.answer import Bottleneck
from stages.core.records.path import ProfiledStep

LEAST_SHARE_SAID = 0.005
DEVICE_BOUND_SHARE = 0.6


class Words(NamedTuple):
    """How a device type names its shares: the busy part, its verdict, and what its operators are called in a sentence."""

    busy: str
    bound: str
    text: str
    idle: tuple[str, ...]


GPU = Words("busy", "device_bound", "the device was busy", ("compile", "launch", "python", "wait", "other"))
CPU = Words("operators", "operator_bound", "operators ran", ("compile", "python", "other"))


def words_for(device: str) -> Words:
    """The words of a device type (`cpu`, `cuda`)."""
    return {"cpu": CPU}.get(device, GPU)


def bottleneck(profile: ProfiledStep, wall_us: float, words: Words, num_graph_breaks: int = 0) -> Bottleneck:
    """The shares of one shape's unprofiled wall time; they sum to 1. `num_graph_breaks`: those that the evidence counted."""
    assert wall_us > 0, "a step takes time"
    busy_us = min(profile.busy_us, wall_us)
    shares = {words.busy: busy_us / wall_us}
    shares |= {name: share * (1 - busy_us / wall_us) for name, share in _idle_shares(profile, words).items()}
    name = _name(shares, words)
    return Bottleneck(
        name=name,
        wall_us=wall_us,
        busy_us=busy_us,
        shares=shares,
        dilation=profile.wall_us / wall_us,
        sentence=_sentence(profile, name, wall_us, shares, words) + _cut(profile, num_graph_breaks),
    )


def _idle_shares(profile: ProfiledStep, words: Words) -> dict[str, float]:
    host_us = {
        "compile": profile.host_compile_us,
        "launch": profile.host_launch_us,
        "python": profile.host_python_us,
        "wait": profile.host_wait_us,
        "other": 0.0,
    }
    host_us["other"] = max(0.0, profile.wall_us - profile.busy_us - sum(host_us.values()))
    hidden_us = sum(value for name, value in host_us.items() if name not in words.idle)
    named_us = {name: host_us[name] for name in words.idle}
    named_us["other"] += hidden_us
    total_us = sum(named_us.values())
    if total_us <= 0:
        return {name: float(name == "other") for name in words.idle}
    return {name: value / total_us for name, value in named_us.items()}


def _name(shares: dict[str, float], words: Words) -> str:
    if shares[words.busy] >= DEVICE_BOUND_SHARE:
        return words.bound
    largest = max(words.idle, key=lambda name: shares[name])
    return "other" if largest == "other" else f"{largest}_bound"


def _sentence(profile: ProfiledStep, name: str, wall_us: float, shares: dict[str, float], words: Words) -> str:
    largest = max(words.idle, key=lambda idle: shares[idle])
    shape = f"decode at batch {profile.size}" if profile.phase == "decode" else f"prefill of {profile.size} tokens"
    said = (
        f"{shape} is {name.replace('_', '-').replace('python', 'Python')}: of {wall_us:,.0f} µs {words.text} for {shares[words.busy]:.0%}"
    )
    if shares[largest] < LEAST_SHARE_SAID:
        return said
    return f"{said}; the largest idle share is {largest.replace('python', 'Python')} with {shares[largest]:.0%}"


def _cut(profile: ProfiledStep, num_graph_breaks: int) -> str:
    """More compiled functions a call than one, though nobody asked for more: graph breaks cut the step."""
    regions = profile.compiled_regions_per_call or 0.0
    return f"; graph breaks cut each call into {regions:,.0f} compiled functions" if num_graph_breaks and regions > 1 else ""
