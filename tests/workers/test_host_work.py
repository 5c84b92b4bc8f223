"""The serving loop's own work a decode step, which must stay small beside a replayed step; and what the loop counts besides."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from stages.core.build import build
from stages.core.records.load import HostWork, Percentiles
from stages.instruments.compile_phases import CompilePhases
from stages.instruments.row_copies import RowCopies
from stages.workers.loop_clock import LoopClock
from stages.workers.service import Service
from stages.workers.serving import serve
from tests.workers.conftest import MakeService, node, plan_for

BATCH = 64
MOST_US = 100.0


def make(device: str) -> Service:
    """64 slots of a model whose step is short, of as many layers as a small LLM has where a layer costs nothing."""
    torch.set_num_threads(1)
    changes = {"max_batch": BATCH, "capture_sizes": [BATCH], "num_layers": 16 if device == "cuda" else 1}
    model = build({**node("model", "tiny"), **changes}, "model")
    plan = plan_for([BATCH], [32], model.context_tokens)
    made = Service(model.load(device, "fp32"), model, build(node("mode", "eager"), "mode"), plan, device, "fp32")
    made.instruments = {"phases": CompilePhases()}
    return made


@pytest.fixture(scope="module")
def service() -> Service:
    return make("cpu")


def full_batch(output_tokens: int) -> list[dict[str, Any]]:
    return [{"request_id": index, "arrival_s": 0.0, "prompt_tokens": 5, "output_tokens": output_tokens} for index in range(BATCH)]


def test_loop_takes_at_most_100_us_a_decode_step_at_batch_64(service: Service) -> None:
    found = [HostWork(**serve(service, full_batch(40), 1.0, 1.0, 60.0)["host_work"]) for _ in range(3)]
    assert min(one.by_batch[str(BATCH)] for one in found) <= MOST_US, found


@pytest.mark.gpu
def test_loop_takes_at_most_100_us_a_decode_step_at_batch_64_on_a_gpu() -> None:
    on_gpu = make("cuda")
    found = [HostWork(**serve(on_gpu, full_batch(40), 1.0, 1.0, 60.0)["host_work"]) for _ in range(3)]
    assert min(one.by_batch[str(BATCH)] for one in found) <= MOST_US, found


@pytest.mark.gpu
def test_tokens_that_follow_the_step_to_the_host_are_those_of_the_device() -> None:
    on_gpu = make("cuda")
    on_gpu.tokens.copy_(torch.arange(BATCH) * 3)
    on_gpu.send_tokens(BATCH)
    on_gpu.tokens.zero_()  # the next step must not change what was sent
    on_gpu.synchronize()
    assert on_gpu.sent_tokens(BATCH) == [3 * index for index in range(BATCH)]


def test_slow_bookkeeping_is_seen(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "sent_tokens", lambda size: (time.sleep(0.001), [0] * size)[1])
    found = HostWork(**serve(service, full_batch(5), 1.0, 1.0, 60.0)["host_work"])
    assert found.sampling_us > 1000
    assert found.by_batch[str(BATCH)] > 1000


def test_mode_and_waiting_are_not_the_loops_own_work(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    step = service.steps[f"decode/{BATCH}"]
    monkeypatch.setitem(service.steps, f"decode/{BATCH}", lambda: (time.sleep(0.005), step())[1])
    monkeypatch.setattr(service, "synchronize", lambda: time.sleep(0.005))
    found = HostWork(**serve(service, full_batch(5), 1.0, 1.0, 60.0)["host_work"])
    assert found.by_batch[str(BATCH)] < 5000


def test_laps_are_added_to_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 1e-6, 11e-6, 13e-6, 113e-6, 116e-6, 120e-6])
    monkeypatch.setattr("stages.workers.loop_clock.time.perf_counter", lambda: next(moments))
    clock = LoopClock()
    clock.start()
    for _ in range(5):
        clock.lap()
    clock.finish(7)
    found = clock.found()
    assert found is not None
    assert (found.scheduling_us, found.sampling_us, found.bookkeeping_us) == pytest.approx((1, 2 + 3, 4))
    assert found.by_batch == {"7": pytest.approx(10)}
    assert LoopClock().found() is None


def test_rows_of_every_layer_are_copied_at_once() -> None:
    tensors = [torch.arange(12.0).reshape(4, 3) + 100 * index for index in range(3)]
    expected = [tensor.clone() for tensor in tensors]
    rows = RowCopies(tensors)
    for source, target in ((3, 0), (2, 1), (3, 0)):
        rows.copy(source, target)
        for tensor in expected:
            tensor[target] = tensor[source]
    assert all(torch.equal(tensor, wanted) for tensor, wanted in zip(tensors, expected, strict=True))


def test_gaps_between_tokens_are_those_of_every_request(make_service: MakeService) -> None:
    service = make_service("tiny")
    decode = service.steps["decode/2"]
    service.steps["decode/2"] = lambda: (time.sleep(0.02), decode())[1]
    requests = [{"request_id": index, "arrival_s": 0.0, "prompt_tokens": 4, "output_tokens": 6} for index in range(2)]
    document = serve(service, requests, 1.0, 0.5, 60.0)
    found = Percentiles(**document["itl_ms"])
    assert found.n == 2 * 5
    assert found.p50 is not None
    assert found.p50 >= 20
    whole_ms = sum(one["e2el_ms"] - one["ttft_ms"] for one in document["requests"])
    assert found.mean is not None
    assert found.mean * found.n == pytest.approx(whole_ms)


def test_never_more_sequences_in_flight_than_the_memory_holds(service: Service) -> None:
    document = serve(service, full_batch(4), 1.0, 1.0, 60.0, max_sequences=5)
    assert document["max_active"] == 5
    assert max(int(size) for size in document["batch_histogram"]) == 5
    assert all(one["completed"] for one in document["requests"])
    assert serve(service, full_batch(2), 1.0, 1.0, 60.0, max_sequences=1000)["max_active"] == BATCH


def test_recording_is_told_from_compiling_and_marks_the_request_that_it_ended(make_service: MakeService) -> None:
    service = make_service("tiny")
    decode, calls = service.steps["decode/1"], iter(["", "", "record_s"])

    def recording() -> Any:
        if phase := next(calls):
            service.instruments["phases"].seconds[phase] += 1
        return decode()

    service.steps["decode/1"] = recording
    (one,) = serve(service, [{"request_id": 0, "arrival_s": 0, "prompt_tokens": 4, "output_tokens": 4}], 1.0, 0.1, 60.0)["requests"]
    assert (one["hit_by"], one["completed"]) == ("recording", True)
