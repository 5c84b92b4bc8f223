"""The continuous-batching loop of a run under load: prefill first, one decode step over all active sequences.

Tokens stay on the device, where the next step takes them; when a step ends the host reads a copy, which it needs to answer.
How many steps a sequence will take is known when it is admitted, so a step costs no work a sequence unless one ends.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from stages.instruments import memory_in_use
from stages.instruments.gc_pauses import GcPauses
from stages.traces.scheduling import compaction_moves
from stages.workers.loop_clock import LoopClock
from stages.workers.served_sequence import Sequence, note_tokens
from stages.workers.service import Service

IDLE_SLEEP_S = 0.0005
RECORDING = "record_s"
"""The phase of CUDAGraph Trees' recordings; all others are of the compiler."""


@dataclass
class Loop:
    """The state of one run. `max_active`: sequences in flight at most. `ends`: decode step -> the sequences whose last token it makes."""

    service: Service
    began_s: float
    waiting: deque[Sequence]
    max_active: int
    queue: deque[Sequence] = field(default_factory=deque)
    active: list[Sequence] = field(default_factory=list)
    ends: dict[int, list[Sequence]] = field(default_factory=lambda: defaultdict(list))
    histogram: Counter[int] = field(default_factory=Counter)
    gaps: list[tuple[float, int]] = field(default_factory=list)
    clock: LoopClock = field(default_factory=LoopClock)
    num_decode_steps: int = 0
    num_prefill_steps: int = 0
    last_end_s: float = 0.0
    num_new: int = 0
    host_s: float = 0.0
    num_compiles: int = 0
    busy_s: float = 0.0
    sample_every_s: float = 1.0
    memory_samples: list[tuple[float, int]] = field(default_factory=list)
    has_sample: bool = False
    pauses: GcPauses = field(default_factory=GcPauses)

    def now_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began_s

    def step(self) -> None:
        """Notice arrivals, then one prefill, one decode step, or a short sleep until the next arrival."""
        self.clock.start()
        now_s = self.now_s()
        while self.waiting and self.waiting[0].arrival_s <= now_s:
            self.waiting[0].noticed_s = now_s
            self.queue.append(self.waiting.popleft())
        self._sample_memory(now_s)
        phases = self.service.instruments["phases"]
        worked_s, compiled_s, here = phases.total_s(), phases.total_s(without=RECORDING), self.active.copy()
        if self.queue and len(self.active) < self.max_active:
            here.append(self.queue[0])
            self._prefill(self.queue.popleft())
        elif self.active:
            self._decode()
        elif self.waiting:
            time.sleep(min(IDLE_SLEEP_S, max(0.0, self.waiting[0].arrival_s - now_s)))
            return
        self.busy_s += self.now_s() - now_s
        if self.pauses.notable_since():
            self._mark("garbage_collection", here)
        if phases.total_s() > worked_s:
            self.num_compiles += 1
            self._mark("compile" if phases.total_s(without=RECORDING) > compiled_s else "recording", here)

    def _sample_memory(self, now_s: float) -> None:
        if not self.memory_samples or now_s - self.memory_samples[-1][0] >= self.sample_every_s:
            self.memory_samples.append((now_s, memory_in_use.present_bytes()))

    def _prefill(self, sequence: Sequence) -> None:
        sequence.begun_s = self.now_s()
        slot = len(self.active)
        self.service.prefill(slot, sequence.prompt)
        sequence.note(self.service.read_tokens(slot + 1)[slot])
        sequence.first_token_s = self.now_s()
        self.active.append(sequence)
        self.num_prefill_steps += 1
        rest = sequence.request.output_tokens - 1
        if rest:
            self.ends[self.num_decode_steps + rest].append(sequence)
            self.num_new += 1
        else:
            self._retire([sequence], sequence.first_token_s)

    def _decode(self) -> None:
        num_active = len(self.active)
        self.clock.lap()
        self.service.decode(num_active)
        self.clock.lap()
        self.service.send_tokens(num_active)
        self.clock.lap()
        self.service.synchronize()
        self.clock.lap()
        tokens = self.service.sent_tokens(num_active)
        self.clock.lap()
        served = time.perf_counter()
        now_s = served - self.began_s
        self._note_gaps(num_active, now_s)
        if self.has_sample:
            note_tokens(self.active, tokens)
        self.num_decode_steps += 1
        self.histogram[num_active] += 1
        if finished := self.ends.pop(self.num_decode_steps, None):
            self._retire(finished, now_s)
        self.host_s += time.perf_counter() - served
        self.clock.finish(num_active)

    def _note_gaps(self, num_active: int, now_s: float) -> None:
        """Time since the token before: of those that were there in the last step, and of each new one since its first."""
        if num_active > self.num_new:
            self.gaps.append((now_s - self.last_end_s, num_active - self.num_new))
        for sequence in self.active[num_active - self.num_new :]:
            self.gaps.append((now_s - (sequence.first_token_s or now_s), 1))
        self.last_end_s, self.num_new = now_s, 0

    def _retire(self, finished: list[Sequence], now_s: float) -> None:
        for sequence in finished:
            sequence.last_token_s = now_s
        slots = [slot for slot, sequence in enumerate(self.active) if sequence.last_token_s is not None]
        moves = compaction_moves(len(self.active), slots)
        self.service.compact(moves)
        for source, target in moves:
            self.active[target] = self.active[source]
        del self.active[len(self.active) - len(slots) :]

    def _mark(self, what: str, here: list[Sequence]) -> None:
        """The requests that were in the step, and those that waited for it, were hit."""
        for sequence in (*here, *self.queue):
            sequence.hit_by = what
