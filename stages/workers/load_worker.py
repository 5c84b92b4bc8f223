"""The parent's side of a run under load: a worker of one mode, the arrivals it is sent, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stages.core import progress
from stages.core.composed import Settings
from stages.core.errors import UserError
from stages.core.records.load import LoadRun, ServedAnswers
from stages.traces.arrivals import RECORDED, arriving, recorded_pace
from stages.workers.measurement import Study, worker
from stages.workers.process import Worker, WorkerFailed
from stages.workers.served_runs import summary


class LoadWorker:
    """A ready worker. `held`: sequences that `device_memory_bytes` holds in this mode; None without a limit."""

    def __init__(self, study: Study, settings: Settings, started: Worker) -> None:
        """Raises WorkerFailed where the limit holds no sequence."""
        self.study, self.settings, self._started = study, settings, started
        self.held = self._held()

    def serve(self, rate_per_s: float, seed: int, longest_s: float, key: str, num_sampled: int = 0) -> LoadRun:
        """One run at a rate; `key` is how it was asked for.

        `num_sampled`: requests whose tokens are compared with eager's, once the run is over and its numbers are read.
        """
        load, recorded = self.settings.measure.load, self.study.plan.recorded_rate_per_s
        factor, window_s = self._pace(rate_per_s, longest_s, key)
        requests = arriving(self.study.requests, load.process, recorded, window_s * factor, seed, load.gamma_shape)
        if not any(request["arrival_s"] / factor <= window_s for request in requests):
            raise UserError("measure.load.duration_s", "must let at least one request arrive", longest_s, "Raise it or the rate.")
        times = {"rate_factor": factor, "duration_s": window_s, "grace_s": load.grace_s}
        limits = {"max_sequences": self.held, "num_sampled": num_sampled, "freeze_gc": load.freeze_gc}
        progress.note(f"{window_s:,.1f} s of arrivals at {rate_per_s:.3g}/s, then at most {load.grace_s:g} s for what is still in flight")
        served = self._started.ask("stages.workers.serving:serve", requests=requests, **limits, **times)
        run = summary(served, key, rate_per_s, window_s, vars(self.settings.slo), load.process)
        return run.model_copy(update={"answers": self._answers(served["sampled"])}) if num_sampled else run

    def _pace(self, rate_per_s: float, longest_s: float, key: str) -> tuple[float, float]:
        """How much faster than drawn or recorded the arrivals come, and for how many seconds."""
        plan = self.study.plan
        if self.settings.measure.load.process != RECORDED:
            return rate_per_s / plan.recorded_rate_per_s, longest_s
        if key == RECORDED:  # asked for as it was, with the rate that its part happens to have
            return 1.0, min(longest_s, plan.span_s)
        return recorded_pace(self.study.requests, plan.recorded_rate_per_s, rate_per_s, longest_s)

    def _answers(self, sampled: list[dict[str, Any]]) -> ServedAnswers:
        names = {"precision": self.settings.precision, "baseline": self.settings.baseline, "sampled": sampled}
        return ServedAnswers(**self._started.ask("stages.workers.served_answers:compare", **names))

    def _held(self) -> int | None:
        """Computed as `capture` computes `max_sequences`, in this very worker."""
        limit = self.settings.device_memory_bytes
        if limit is None:
            return None
        held = int(self._started.ask("stages.workers.measuring_memory:measure_memory", device_memory_bytes=limit)["max_sequences"])
        if held < 1:
            raise WorkerFailed(f"device_memory_bytes ({limit:,}) holds no sequence in this mode", [])
        return held


@contextmanager
def load_worker(study: Study, settings: Settings) -> Iterator[LoadWorker]:
    """A fresh worker, alone on the device."""
    with worker(study, settings, "load") as started:
        started.ready()
        started.timed = True
        yield LoadWorker(study, settings, started)
