"""The simulated scheduler: which steps a trace makes, in virtual time, the same for every mode.

Sequences live in slots and the active ones are a prefix: slots 0..n-1. Policy `prefill_first`: while a request waits
and n < max_batch, the next step is its prefill, into slot n, and gives its first token (an output of one token ends
there); otherwise it is a decode step that gives each active sequence one token. With nothing active the clock jumps
to the next arrival. A decode step takes `virtual_decode_step_ms`, a prefill `virtual_prefill_us_per_token` times its
padded prompt.

Compaction, after a step in which sequences finished: their slots are taken from the highest to the lowest, and each
time the last active slot moves into the hole (`compaction_moves`). Who drives real slots by these steps must do the
same, or slot numbers diverge.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stages.core.records.path import Phase
from stages.core.records.plan import Request
from stages.traces.checks import require, require_between

POLICIES = ("prefill_first",)


@dataclass(frozen=True)
class PlanSettings:
    """How a trace becomes a plan: virtual durations, the policy, and whether lengths are scaled to the context."""

    virtual_decode_step_ms: float = 5.0
    virtual_prefill_us_per_token: float = 10.0
    policy: str = "prefill_first"
    scale_lengths: bool = True

    def __post_init__(self) -> None:
        """Raise UserError for a duration out of range or an unknown policy."""
        require_between("measure.plan.virtual_decode_step_ms", self.virtual_decode_step_ms, 1e-3, 1e6)
        require_between("measure.plan.virtual_prefill_us_per_token", self.virtual_prefill_us_per_token, 0, 1e6)
        known = ", ".join(POLICIES)
        require(self.policy in POLICIES, "measure.plan.policy", f"must be one of {known}", self.policy, "Use one of these.")


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """One step. `size`: prompt tokens of `request_id` (prefill) or active sequences before the step (decode).

    `finished`: slots whose sequence ended in this step, highest first. `end_s`: virtual time after the step.
    """

    phase: Phase
    size: int
    request_id: int | None
    finished: tuple[int, ...]
    end_s: float


def simulate(
    requests: Sequence[Request], max_batch: int, settings: PlanSettings, padded_prompt: Callable[[int], int]
) -> Iterator[ScheduledStep]:
    """The steps that serve `requests` (sorted by arrival), first come first served, in time linear in their number.

    `padded_prompt`: prompt tokens -> prompt tokens after padding.
    """
    assert max_batch >= 1, "max_batch must be positive"
    slots = _Slots()
    clock_s, served = 0.0, 0
    while served < len(requests) or slots.num_active:
        if not slots.num_active:
            clock_s = max(clock_s, requests[served].arrival_s)
        if served < len(requests) and requests[served].arrival_s <= clock_s and slots.num_active < max_batch:
            request = requests[served]
            clock_s += padded_prompt(request.prompt_tokens) * settings.virtual_prefill_us_per_token * 1e-6
            finished = slots.admit(served, request.output_tokens)
            yield ScheduledStep("prefill", request.prompt_tokens, request.request_id, finished, clock_s)
            served += 1
        else:
            clock_s += settings.virtual_decode_step_ms * 1e-3
            size = slots.num_active
            yield ScheduledStep("decode", size, None, slots.decode(), clock_s)


def compaction_moves(num_active: int, finished: Sequence[int]) -> list[tuple[int, int]]:
    """Moves (source slot, target slot), in order, that make `num_active` slots a prefix again without `finished`."""
    moves: list[tuple[int, int]] = []
    for hole in sorted(finished, reverse=True):
        num_active -= 1
        if hole != num_active:
            moves.append((num_active, hole))
    return moves


@dataclass
class _Slots:
    """Who sits where, and at which decode step each sequence ends; a decode step costs only what finishes in it."""

    sequences: list[int] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    slot_of: dict[int, int] = field(default_factory=dict)
    num_decodes: int = 0

    @property
    def num_active(self) -> int:
        return len(self.sequences)

    def admit(self, sequence: int, output_tokens: int) -> tuple[int, ...]:
        self.slot_of[sequence] = len(self.sequences)
        self.sequences.append(sequence)
        heapq.heappush(self.ends, (self.num_decodes + output_tokens - 1, sequence))
        return self._finish()

    def decode(self) -> tuple[int, ...]:
        self.num_decodes += 1
        return self._finish()

    def _finish(self) -> tuple[int, ...]:
        finished: list[int] = []
        while self.ends and self.ends[0][0] <= self.num_decodes:
            finished.append(self.slot_of.pop(heapq.heappop(self.ends)[1]))
        finished.sort(reverse=True)
        for source, target in compaction_moves(self.num_active, finished):
            self.sequences[target] = self.sequences[source]
            self.slot_of[self.sequences[target]] = target
        del self.sequences[len(self.sequences) - len(finished) :]
        return tuple(finished)
