"""The parent's side of one set: cells alive together, warmed up by evidence, then timed one at a time in balanced order.

Between two blocks no cell runs; there the machine's condition is read, and kept with the block before.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial as bind
from typing import Any

from pydantic import Field

from stages.core.composed import Settings
from stages.core.host_readings import NUM_RECENT, num_slow, readings, usual_us
from stages.core.records.base import Document
from stages.core.records.steps import Block, Ceilings, SequenceRun, Settling, TimerCheck
from stages.instruments.conditions import Watch
from stages.workers.measurement import Study
from stages.workers.process import Worker, WorkerFailed
from stages.workers.stopping import enough

FILL_SHARE = 2  # decode starts with slots filled to context / 2
MOST_ATTEMPTS = 3  # at a block on a GPU whose host is slow meanwhile; the last one counts as it is
LARGEST_SLOW_SHARE = 0.25  # of a block's readings of the host


class Set(Document):
    """What one set of processes measured, and the cells that broke in it."""

    blocks: list[Block]
    sequences: list[SequenceRun]
    failed: dict[str, str]
    settling: list[Settling] = Field(default_factory=list)
    ceilings: Ceilings | None = None
    timer: TimerCheck | None = None
    stopped: str = ""
    slowed: list[Block] = Field(default_factory=list)


class Rotation:
    """One set: workers by cell, and why others did not become ready. `watch` was made before they were spawned."""

    def __init__(
        self,
        study: Study,
        settings: Mapping[str, Settings],
        set_index: int,
        ready: tuple[dict[str, Worker], dict[str, str]],
        watch: Watch,
    ) -> None:
        """Nothing runs yet."""
        self.study, self.settings, self.set_index, self.watch = study, settings, set_index, watch
        self.workers, self.failed = ready
        self.context_tokens = study.plan.context_tokens // FILL_SHARE
        self.blocks: list[Block] = []
        self.slowed: list[Block] = []
        self.sequences: list[SequenceRun] = []
        self.settling: list[Settling] = []
        self.ceilings: Ceilings | None = None
        self.timer: TimerCheck | None = None
        self._recent_us: dict[str, deque[float]] = defaultdict(bind(deque, maxlen=NUM_RECENT))

    def run(self) -> Set:
        """The ceilings and the clocks (first set only), the warm-up, then every shape and the sequence, rotation by rotation."""
        first = next(iter(self.workers), "")
        if self.set_index == 0:
            self._attempt(first, self._measure_ceilings)
            self._attempt(first, self._check_timers)
        self._settle_all()
        self.watch.own()
        self.watch.read()  # events of the warm-up belong to no block
        options = next(iter(self.settings.values())).measure.steady_state
        stopped = f"cap: {options.num_rotations} rotations"
        for rotation_index in range(options.num_rotations):
            self._rotate(rotation_index)
            if reason := enough(self.blocks, rotation_index + 1, options.target_width, first):
                stopped = reason
                break
        measured = {"blocks": self.blocks, "slowed": self.slowed, "sequences": self.sequences, "settling": self.settling}
        return Set(**measured, failed=self.failed, ceilings=self.ceilings, timer=self.timer, stopped=stopped)

    def heat(self, num_rotations: int) -> Set:
        """Only passes over the sequence, to see which cells are fastest."""
        self._settle_all()
        for rotation_index in range(num_rotations):
            self._sequences(rotation_index)
        return Set(blocks=[], sequences=self.sequences, failed=self.failed)

    def _settle_all(self) -> None:
        for cell in self.workers:
            self._attempt(cell, self._settle)

    def _rotate(self, rotation_index: int) -> None:
        for shape in self._shapes():
            for order_index, cell in enumerate(balanced_order(list(self.workers), rotation_index)):
                self._attempt(cell, bind(self._block, shape=shape, rotation_index=rotation_index, order_index=order_index))
        self._sequences(rotation_index)

    def _sequences(self, rotation_index: int) -> None:
        for cell in balanced_order(list(self.workers), rotation_index):
            self._attempt(cell, bind(self._sequence, rotation_index=rotation_index))

    def _shapes(self) -> list[str]:
        plan = self.study.plan
        return [f"decode/{size}" for size in plan.capture_sizes] + [f"prefill/{size}" for size in plan.prompt_sizes]

    def _attempt(self, cell: str, measure: Callable[[str], None]) -> None:
        """A cell that breaks leaves the rotation; the others go on."""
        if cell not in self.workers or cell in self.failed:
            return
        try:
            measure(cell)
        except WorkerFailed as error:
            self.failed[cell] = error.reason

    def _measure_ceilings(self, cell: str) -> None:
        found = self.workers[cell].ask("stages.workers.ceilings:measure_ceilings")
        self.ceilings = Ceilings(**found) if found else None

    def _check_timers(self, cell: str) -> None:
        """A Triton that does not compile is no fault of the cell."""
        try:
            found = self.workers[cell].ask("stages.workers.timer_check:check_timers")
        except WorkerFailed as error:
            found = {"agrees": None, "reason": error.reason}
        self.timer = TimerCheck(**found) if found else None

    def _settle(self, cell: str) -> None:
        found = self.workers[cell].ask("stages.workers.settling:settle", shapes=self._shapes(), context_tokens=self.context_tokens)
        self.settling += [Settling(cell=cell, set_index=self.set_index, **one) for one in found]

    def _block(self, cell: str, shape: str, rotation_index: int, order_index: int) -> None:
        """One block that counts; before it those that ran on a slow processor. Only the first has a call after another cell."""
        at = {"set_index": self.set_index, "rotation_index": rotation_index, "order_index": order_index}
        block = self._timed(cell, shape, **at)
        for _ in range(MOST_ATTEMPTS - 1):
            if not self._is_slowed(block):
                break
            self.slowed.append(block)
            block = self._timed(cell, shape, **at).model_copy(update={"first_call_us": None})
        self.blocks.append(block)

    def _is_slowed(self, block: Block) -> bool:
        """Whether its steps waited for a slow processor; on a CPU they run on all, and the loop is of one. A voided one stays."""
        if self.study.environment["device"] != "cuda" or block.voided:
            return False
        found = readings([block])
        return num_slow(found, usual_us(self._recent_us[block.cell])) > LARGEST_SLOW_SHARE * len(found)

    def _timed(self, cell: str, shape: str, **at: int) -> Block:
        options = self.settings[cell].measure.steady_state
        timed = self.workers[cell].ask(
            "stages.workers.timing:time_block",
            shape=shape,
            num_calls=options.calls_per_block,
            pipelined_calls=options.pipelined_calls,
            context_tokens=self.context_tokens,
        )
        conditions = self.watch.read(**{name: timed.pop(name) for name in ("cpu_share", "queue_share", "host_loop_us")})
        self._recent_us[cell] += conditions.host_loop_us
        return Block(**self._named(cell), shape=shape, conditions=conditions, **at, **timed)

    def _sequence(self, cell: str, rotation_index: int) -> None:
        measure = self.settings[cell].measure
        timed = self.workers[cell].ask(
            "stages.workers.timing:time_sequence",
            requests=self.study.requests,
            num_steps=measure.steady_state.sequence_steps,
            plan_settings=measure.plan,
            context_tokens=self.context_tokens,
        )
        self.sequences.append(SequenceRun(**self._named(cell), set_index=self.set_index, rotation_index=rotation_index, **timed))

    def _named(self, cell: str) -> dict[str, Any]:
        return {"cell": cell, "mode": self.settings[cell].mode["name"]}


def balanced_order(cells: Sequence[str], rotation_index: int) -> list[str]:
    """The order of one rotation: rotations 0, 2, ... start one cell later each, 1, 3, ... are the reverse of the one before."""
    if not cells:
        return []
    shift = (rotation_index // 2) % len(cells)
    order = [*cells[shift:], *cells[:shift]]
    return order[::-1] if rotation_index % 2 else order
