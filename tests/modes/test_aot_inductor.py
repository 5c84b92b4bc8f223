"""Packages built ahead of time: shared weights and caches, another shape on the baseline path, nothing stale."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from stages.core import atomic
from stages.core.build import build
from stages.environment import describe
from stages.instruments.compiled_regions import PACKAGE_MARK, share_outside
from stages.instruments.path_counters import PathCounters
from stages.modes.aot_inductor import AotInductor, PackagedStep, exported_module, give_constants
from stages.modes.package_identity import Layouts, identity
from stages.workers.service import Service
from tests.ahead import FEW_BYTES
from tests.workers.conftest import node
from tests.workers.small_study import SmallStudy, write_study

pytestmark = [
    pytest.mark.usefixtures("needs_packages"),
    *(pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("DeprecationWarning", "FutureWarning")),  # torch's own
]


class Scaled(nn.Module):
    """A step with a matrix, weights of few elements, a buffer, a constant of its own, and a cache that it writes."""

    table: Tensor

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.linspace(-1, 1, width * width).reshape(width, width))
        self.few = nn.Parameter(torch.ones(4))
        self.one = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("table", torch.ones(3), persistent=False)
        self.cap = 30.0

    def step(self, x: Tensor, caches: list[Tensor]) -> Tensor:
        """x [b, w] becomes x + 1, the first column of the cache [b, w] the result's."""
        y = self.cap * torch.tanh(x @ self.matrix * self.one * self.few[0] * self.table[0] / self.cap)
        caches[0][:, 0] = y[:, 1]
        x.add_(1)
        return y


def inputs(rows: int) -> tuple[Tensor, list[Tensor]]:
    return torch.linspace(0, 1, rows * 8).reshape(rows, 8), [torch.zeros(rows, 8)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def _own_caches(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache / "inductor"))
    torch.set_num_threads(1)
    with torch.no_grad():
        yield


@pytest.fixture
def mode() -> AotInductor:
    made: AotInductor = build(node("mode", "aot_inductor"), "mode")
    return made


@pytest.fixture
def module(cache: Path) -> Scaled:
    """A module whose step for four rows has a package in the folder (built by the first test that asks)."""
    made = Scaled()
    PackagedStep(made.step)(*inputs(4))
    return made


def assert_same(step: Callable[..., Tensor], module: Scaled, rows: int) -> None:
    (x, caches), (expected_x, expected_caches) = inputs(rows), inputs(rows)
    torch.testing.assert_close(step(x, caches), module.step(expected_x, expected_caches))
    torch.testing.assert_close(x, expected_x)
    torch.testing.assert_close(caches, expected_caches)
    assert caches[0][1, 0] != 0


def test_package_writes_the_callers_own_cache_and_follows_new_weights(mode: AotInductor, module: Scaled) -> None:
    step = mode.transformed(module.step, 1)
    assert_same(step, module, 4)
    for weight in (*module.parameters(), *module.buffers()):
        weight.detach().mul_(1.5)
        assert_same(step, module, 4)
    module.matrix.data = module.matrix.data * 2
    mode.weights_changed()
    assert_same(step, module, 4)
    assert dict(mode.counts()) == {"package_loaded": 1}


def test_another_shape_takes_the_baseline_path_and_is_counted(mode: AotInductor, module: Scaled) -> None:
    step = mode.transformed(module.step, 1)
    assert_same(step, module, 4)
    mode.warmed_up()
    for _ in range(2):
        assert_same(step, module, 3)
    assert_same(step, module, 4)
    assert dict(mode.counts()) == {"package_loaded": 1, "unsupported_call": 2, "unsupported_call:[3, 8]": 2}


def test_strided_and_misaligned_inputs_and_another_type_are_not_the_packages(mode: AotInductor, module: Scaled) -> None:
    step = mode.transformed(module.step, 1)
    assert_same(step, module, 4)
    mode.warmed_up()
    strided = torch.zeros(8, 4).t()
    misaligned = torch.zeros(33)[1:].view(4, 8)
    for number, x in enumerate((strided, misaligned), 1):
        torch.testing.assert_close(step(x, [torch.zeros(4, 8)]), module.step(torch.zeros(4, 8), [torch.zeros(4, 8)]))
        assert mode.counts()["unsupported_call"] == number
    assert Layouts().key((torch.zeros(2),)) != Layouts().key((torch.zeros(2, dtype=torch.float64),))


def test_a_misaligned_input_gets_no_package_even_while_warming_up(module: Scaled) -> None:
    step = PackagedStep(module.step)
    step(torch.zeros(33)[1:].view(4, 8), [torch.zeros(4, 8)])
    assert (step.counts["unsupported_call"], step.files) == (1, [])


def test_lists_of_one_layout_share_a_key_and_others_do_not() -> None:
    layouts = Layouts()
    first, same, other = [torch.zeros(2, 3)], [torch.ones(2, 3)], [torch.zeros(3, 2)]
    assert layouts.key((first,)) == layouts.key((same,)) == layouts.key((first,))
    assert layouts.key((other,)) != layouts.key((first,))


def name_of(module: Scaled) -> str:
    return json.dumps(identity(module.step, exported_module(module.step)))


def test_whatever_becomes_a_literal_of_the_package_changes_its_name(module: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    before = name_of(module)
    assert name_of(Scaled()) == before
    module.matrix.mul_(2)
    assert name_of(module) == before, "weights are given to the package, whatever their values"
    module.cap = 40.0
    assert name_of(module) != before
    wider = Scaled(width=9)
    assert name_of(wider) != before
    strided = Scaled()
    strided.matrix.data = strided.matrix.data.t()
    assert name_of(strided) != before
    changes: dict[str, Any] = {
        "torch.__version__": "9.9.9",
        "torch.get_num_threads": lambda: 7,
        "torch.backends.cpu.get_cpu_capability": str,
    }
    for name, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(name, value)
            assert name_of(Scaled()) != before, name


def test_another_constant_in_the_model_builds_again(module: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    def built(_: Any, *__: Any) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(PackagedStep, "_build", built)
    PackagedStep(module.step)(*inputs(4))
    module.cap = 40.0
    with pytest.raises(AssertionError, match="built again"):
        PackagedStep(module.step)(*inputs(4))


def test_artifact_carries_the_packages(mode: AotInductor, module: Scaled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mode.artifact() is None
    mode.transformed(module.step, 1)(*inputs(4))
    content = mode.artifact()
    assert content
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    there: AotInductor = build(node("mode", "aot_inductor"), "mode")
    assert there.load_artifact(content)
    assert_same(there.transformed(module.step, 1), module, 4)
    assert dict(there.counts()) == {"package_loaded": 1}
    assert not there.load_artifact(b"not an archive")


def test_tensor_that_is_no_parameter_is_refused_instead_of_copied(module: Scaled) -> None:
    class Package:
        def get_constant_fqns(self) -> list[str]:
            return ["owner.matrix", "_tensor_constant0"]

    with pytest.raises(RuntimeError, match="neither parameters nor buffers"):
        give_constants(Package(), exported_module(module.step))


def test_calls_of_packages_are_counted_and_marked(mode: AotInductor, module: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.export.pt2_archive._package import AOTICompiledModel

    monkeypatch.setattr(AOTICompiledModel, "__call__", AOTICompiledModel.__call__)  # put back afterwards
    counters = PathCounters()
    counters.count_packages()
    counters.also_count(mode.counts)
    step = mode.transformed(module.step, 1)
    x, caches = inputs(4)
    step(x, caches)
    mode.warmed_up()
    step(*inputs(3))
    snapshot = counters.snapshot()
    assert (snapshot["package_call"], snapshot["unsupported_call"], counters.missing) == (1, 1, [])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as session:
        step(x, caches)
    assert any(event.name == PACKAGE_MARK for event in session.events())
    mark = {"name": PACKAGE_MARK, "cat": "user_annotation", "ts": 10.0, "dur": 40.0, "args": {}}
    outside = {"name": "mm", "cat": "cpu_op", "ts": 60.0, "dur": 10.0, "args": {}}
    assert share_outside([mark], [outside], [(0.0, 100.0)], "cpu") == pytest.approx(10 / 50)


def records(small: SmallStudy, *stages: str) -> list[dict[str, Any]]:
    found = []
    for stage in stages:
        with small.start(stage, "--mode", "aot_inductor") as process:  # compilers of C++ are slow on a busy machine
            _, text = process.communicate(timeout=500)
        assert process.returncode == 0, text
        document = json.loads((small.folder / stage / "aot_inductor.json").read_text(encoding="utf-8"))
        assert document["status"] == "ok", (document["reason"], document["log_tail"])
        found.append(document["data"])
    return found


def check_study(small: SmallStudy) -> None:
    """Cold builds, warm loads, the artifact is the packages; every step ran in one; the answers are eager's."""
    warmup, capture, correctness = records(small, "warmup", "capture", "correctness")
    cold, warm, artifact = warmup["starts"]
    assert [start["verdict"] for start in (cold, warm, artifact)] == ["confirmed"] * 3, [start["proof"] for start in warmup["starts"]]
    uses = [(start["cache_use"]["num_packages_built"], start["cache_use"]["num_packages_loaded"]) for start in warmup["starts"]]
    assert uses == [(3, 3), (0, 3), (0, 3)]
    assert cold["phases"]["export_s"] > 0
    assert cold["phases"]["inductor_s"] > 0
    assert warm["phases"]["export_s"] == warm["phases"]["inductor_s"] == 0
    for start in warmup["starts"]:
        assert 0 <= start["unaccounted_s"] <= 0.05 * start["ready_s"]
    check_proof(capture)
    failed = [check for check in correctness["checks"] if check["verdict"] == "fail"]
    assert (correctness["verdict"], failed) == ("correct", [])


def check_proof(capture: dict[str, Any]) -> None:
    """Every step ran in a package, and so did most of the profiled work."""
    evidence = capture["evidence"]
    assert evidence["verdict"] == "confirmed", evidence["reasons"]
    assert evidence["path_counts"] == {"compiled": evidence["num_steps"]}
    assert evidence["counters"]["package_call"] == evidence["num_steps"]
    shares = [step["share_outside_regions"] for step in capture["profile"]]
    assert all(share is not None and share < 0.5 for share in shares), shares


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_study_of_packages_on_a_cpu(tmp_path: Path) -> None:
    check_study(write_study(tmp_path, "eager", "aot_inductor", overrides=("measure.warmup.artifact_starts=1",)))


def forced_answers(service: Service) -> list[Tensor]:
    """Logits of two prompts and of three decode steps on given tokens."""
    answers = [service.prefill(slot, torch.arange(5 + slot, device=service.device))[0].float() for slot in range(2)]
    for token in range(3):
        service.tokens.fill_(token)
        answers.append(service.decode(2)[0].float())
    return answers


@pytest.mark.gpu
@pytest.mark.slow
def test_study_of_packages_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Triton kernels of the model's own, which only an export through Dynamo takes: proved, found by another process, right.

    Two packages, and the processor's vector units are not tried: each costs seconds in a compiler of C++.
    """
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
    small = write_study(tmp_path, "eager", "aot_inductor", overrides=("model.capture_sizes=[2]",))
    atomic.write_json(small.folder / "environment.json", describe("cuda"))
    small.edit("aot_inductor", device="cuda", precision="bf16", device_memory_bytes=FEW_BYTES, model__attention="split_kv")
    (capture,) = records(small, "capture")
    check_proof(capture)
    (cache,) = (small.home / "build" / "caches").iterdir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache / "inductor"))
    settings = small.study.settings("aot_inductor")
    model, modes = build(settings.model, "model"), [build(settings.mode, "mode"), build(settings.baseline, "mode")]
    module = model.load("cuda", "bf16")
    with torch._inductor.config.patch({"cpp.vec_isa_ok": True}):
        found, expected = (forced_answers(Service(module, model, mode, small.study.plan, "cuda", "bf16")) for mode in modes)
    assert dict(modes[0].counts()) == {"package_loaded": 2}
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() < 0.05 * other.abs().max()
