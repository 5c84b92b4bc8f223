"""A small continuous-batching loop: real arrivals, prefill first, one decode step over all active sequences.

A request's clock starts at its scheduled arrival, not when the loop noticed it, so a stalled loop shows in the tails.
Every token is read by the host when its step ends.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import torch

from stages.core.records.plan import Request
from stages.instruments import hardware, memory, memory_in_use
from stages.traces.scheduling import compaction_moves
from stages.workers.service import Service, random_prompts

IDLE_SLEEP_S = 0.0005
MEMORY_SAMPLES = 60  # along the time in which arrivals are sent


@dataclass
class Sequence:
    """One request on its way; times in seconds since the run began."""

    request: Request
    arrival_s: float
    prompt: torch.Tensor
    noticed_s: float | None = None
    begun_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    num_tokens: int = 0
    hit_by: str = ""

    def done(self) -> bool:
        """Every output token was given."""
        return self.num_tokens >= self.request.output_tokens

    def document(self) -> dict[str, Any]:
        """The `ServedRequest` document; ms from the arrival."""
        completed = self.done()
        return {
            "request_id": self.request.request_id,
            "arrival_s": self.arrival_s,
            "prompt_tokens": self.request.prompt_tokens,
            "output_tokens": self.request.output_tokens,
            "queue_ms": self._since_arrival(self.begun_s),
            "ttft_ms": self._since_arrival(self.first_token_s),
            "tpot_ms": self._tpot_ms() if completed else None,
            "e2el_ms": self._since_arrival(self.last_token_s) if completed else None,
            "completed": completed,
            "hit_by": self.hit_by,
        }

    def _tpot_ms(self) -> float | None:
        """Mean time of the tokens after the first; None for an answer of one token."""
        rest = self.request.output_tokens - 1
        if not rest or self.first_token_s is None or self.last_token_s is None:
            return None
        return 1e3 * (self.last_token_s - self.first_token_s) / rest

    def _since_arrival(self, moment_s: float | None) -> float | None:
        return None if moment_s is None else 1e3 * (moment_s - self.arrival_s)


@dataclass
class Loop:
    """The state of one run."""

    service: Service
    began_s: float
    waiting: deque[Sequence]
    queue: deque[Sequence] = field(default_factory=deque)
    active: list[Sequence] = field(default_factory=list)
    histogram: Counter[int] = field(default_factory=Counter)
    num_prefill_steps: int = 0
    host_s: float = 0.0
    num_compiles: int = 0
    busy_s: float = 0.0
    sample_every_s: float = 1.0
    memory_samples: list[tuple[float, int]] = field(default_factory=list)

    def now_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began_s

    def step(self) -> None:
        """Notice arrivals, then one prefill, one decode step, or a short sleep until the next arrival."""
        now_s = self.now_s()
        while self.waiting and self.waiting[0].arrival_s <= now_s:
            self.waiting[0].noticed_s = now_s
            self.queue.append(self.waiting.popleft())
        self._sample_memory(now_s)
        compiled_s = self.service.instruments["phases"].total_s()
        if self.queue and len(self.active) < self.service.model.max_batch:
            self._prefill(self.queue.popleft())
        elif self.active:
            self._decode()
        elif self.waiting:
            time.sleep(min(IDLE_SLEEP_S, max(0.0, self.waiting[0].arrival_s - now_s)))
            return
        self.busy_s += self.now_s() - now_s
        if self.service.instruments["phases"].total_s() > compiled_s:
            self._mark_compile()

    def _sample_memory(self, now_s: float) -> None:
        if not self.memory_samples or now_s - self.memory_samples[-1][0] >= self.sample_every_s:
            self.memory_samples.append((now_s, memory_in_use.present_bytes()))

    def _prefill(self, sequence: Sequence) -> None:
        sequence.begun_s = self.now_s()
        self.service.prefill(len(self.active), sequence.prompt)
        self.service.read_tokens(len(self.active) + 1)
        sequence.first_token_s = sequence.last_token_s = self.now_s()
        sequence.num_tokens = 1
        self.active.append(sequence)
        self.num_prefill_steps += 1
        self._retire()

    def _decode(self) -> None:
        num_active = len(self.active)
        self.service.decode(num_active)
        self.service.read_tokens(num_active)
        served = time.perf_counter()
        now_s = self.now_s()
        for sequence in self.active:
            sequence.num_tokens += 1
            sequence.last_token_s = now_s
        self.histogram[num_active] += 1
        self._retire()
        self.host_s += time.perf_counter() - served

    def _retire(self) -> None:
        finished = [slot for slot, sequence in enumerate(self.active) if sequence.done()]
        moves = compaction_moves(len(self.active), finished)
        self.service.compact(moves)
        for source, target in moves:
            self.active[target] = self.active[source]
        del self.active[len(self.active) - len(finished) :]

    def _mark_compile(self) -> None:
        self.num_compiles += 1
        for sequence in (*self.active, *self.queue):
            sequence.hit_by = "compile"


def serve(service: Service, requests: list[dict[str, Any]], rate_factor: float, duration_s: float, grace_s: float) -> dict[str, Any]:
    """Send what arrives within `duration_s` (arrival times divided by `rate_factor`), wait `grace_s` for the rest."""
    parsed = [Request.model_validate(request) for request in requests]
    sent = [request for request in parsed if request.arrival_s / rate_factor <= duration_s]
    prompts = random_prompts(service, [request.prompt_tokens for request in sent], seed=1)
    sequences = [Sequence(request, request.arrival_s / rate_factor, prompt) for request, prompt in zip(sent, prompts, strict=True)]
    service.synchronize()
    energy_j = hardware.energy_j() if service.device == "cuda" else None
    loop = Loop(service, time.perf_counter(), deque(sequences), sample_every_s=duration_s / MEMORY_SAMPLES)
    while (loop.waiting or loop.queue or loop.active) and loop.now_s() < duration_s + grace_s:
        loop.step()
    num_decode_steps = sum(loop.histogram.values())
    return {
        "requests": [sequence.document() for sequence in sequences],
        "lateness_ms": [1e3 * (sequence.noticed_s - sequence.arrival_s) for sequence in sequences if sequence.noticed_s is not None],
        "num_decode_steps": num_decode_steps,
        "num_prefill_steps": loop.num_prefill_steps,
        "batch_histogram": {str(size): count for size, count in sorted(loop.histogram.items())},
        "host_us_per_decode_step": 1e6 * loop.host_s / max(1, num_decode_steps),
        "num_compiles_during": loop.num_compiles,
        "energy_j": None if energy_j is None else (hardware.energy_j() or energy_j) - energy_j,
        "peak_bytes": memory.peak_bytes(),
        "busy_s": loop.busy_s,
        "memory_samples": loop.memory_samples,
    }
