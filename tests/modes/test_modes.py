"""A mode's claim: what it may say, which flags go together, where it can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from stages.core.build import build
from stages.core.errors import UserError
from stages.core.protocols import Mode

FOLDER = Path(__file__).parents[2] / "conf" / "mode"
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml"))
REPLAYING = {
    "cuda_graph",
    "compile_cuda_graph",
    "cudagraph_trees",
    "cudagraph_trees_partition_off",
    "cudagraph_trees_partition_on",
    "cudagraphs_backend",
    "max_autotune_cuda_graph",
}


def built(name: str, **changes: Any) -> Any:
    mode: Mode = build({**yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")), **changes}, "mode")
    return mode


@pytest.mark.parametrize("name", NAMES)
def test_mode_builds_under_its_file_name_and_names_where_it_is_documented(name: str) -> None:
    mode = built(name)
    assert mode.name == name
    assert mode.documented_at.startswith("https://")
    assert mode.configuration.strip()


@pytest.mark.parametrize("name", NAMES)
def test_configuration_that_a_user_copies_is_python(name: str) -> None:
    compile(built(name).configuration, name, "exec")


@pytest.mark.parametrize("name", NAMES)
def test_only_modes_that_replay_are_unavailable_on_a_cpu(name: str) -> None:
    assert (built(name).unavailable("cpu") != "") == (name in REPLAYING)
    assert built(name).unavailable("cuda") == ""


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "dynamo",
            {"compile_mode": "reduce-overhead"},
            "mode.compile_mode: is ignored by torch unless backend is inductor; got backend=eager",
        ),
        ("compile", {"backend": "cudagraphs", "compile_mode": "default"}, "mode.compile_mode: is ignored by torch"),
        ("compile", {"compile_mode": "fastest"}, "mode.compile_mode: must be one of default, .*; got fastest"),
        ("compile", {"compile_mode": "reduce-overhead"}, "mode.replay: must be trees exactly with compile_mode .*; got none"),
        ("max_autotune_no_cudagraphs", {"compile_mode": "max-autotune"}, "mode.replay: must be trees exactly with compile_mode"),
        ("max_autotune_cuda_graph", {"compile_mode": "max-autotune"}, "mode.replay: must be trees exactly with compile_mode"),
        ("cudagraph_trees", {"compile_mode": None}, "mode.replay: must be trees exactly with compile_mode .*; got trees"),
        ("compile", {"replay": "manual"}, "mode.replay: must be one of none, trees; got manual"),
        ("eager", {"replay": "manual"}, "mode.replay: must be one of none; got manual"),
        ("cuda_graph", {"replay": "trees"}, "mode.replay: must be one of manual; got trees"),
        ("compile_cuda_graph", {"replay": "none"}, "mode.replay: must be one of manual; got none"),
        ("eager", {"transform": "inductor"}, "mode.transform: must be one of none; got inductor"),
        ("compile", {"transform": "none"}, "mode.transform: must be one of inductor; got none"),
        ("compile", {"compile_mode": "max-autotune-no-cudagraphs"}, "mode.transform: must be one of inductor_autotune; got inductor"),
        ("dynamo", {"transform": "inductor"}, "mode.transform: must be one of dynamo; got inductor"),
        ("compile", {"transform": "magic"}, "mode.transform: must be one of inductor; got magic"),
        ("cudagraphs_backend", {"replay": "none"}, "mode.replay: must be trees exactly with .* or backend cudagraphs; got none"),
        ("cudagraphs_backend", {"transform": "inductor"}, "mode.transform: must be one of aot; got inductor"),
        ("compile", {"graph_partition": True}, "mode.graph_partition: does something only with Inductor and CUDAGraph Trees"),
        ("eager", {"stability": "stable"}, "mode.stability: must be one of public, prototype, private; got stable"),
    ],
)
def test_claim_that_the_configuration_cannot_keep_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        built(name, **changes)


def test_eager_runs_the_function_itself() -> None:
    def step() -> int:
        return 1

    mode = built("eager")
    assert mode.transformed(step, 4) is step
    assert mode.held(step, None) is step


@pytest.fixture
def compiler_config() -> Any:
    import torch._dynamo.config as dynamo_config
    import torch.compiler.config as config  # its two names are aliases of Dynamo's

    with dynamo_config.patch(recompile_limit=8, fail_on_recompile_limit_hit=False):
        yield config
    torch._dynamo.reset()


def test_shape_that_was_not_planned_is_an_error_and_not_eager_in_silence(compiler_config: Any) -> None:
    step = built("dynamo").transformed(lambda x: x + 1, 2)
    assert (compiler_config.recompile_limit, compiler_config.fail_on_recompile_limit_hit) == (3, True)
    for size in (2, 3, 4):
        step(torch.ones(size))
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="recompile_limit"):
        step(torch.ones(5))


def test_partition_is_an_option_beside_those_that_the_compile_mode_stands_for() -> None:
    asked = {name: built(f"cudagraph_trees_partition_{name}").compile_options() for name in ("on", "off")}
    assert asked["on"] == {"options": {"triton.cudagraphs": True, "graph_partition": True}}
    assert asked["off"] == {"options": {"triton.cudagraphs": True, "graph_partition": False}}
    assert built("cudagraph_trees").compile_options() == {"mode": "reduce-overhead"}


def test_dynamic_mode_compiles_one_graph_for_every_size_above_one(compiler_config: Any) -> None:
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    mode = built("dynamo", dynamic=True)
    mode.backend = counter
    step = mode.transformed(lambda x: x + 1, 2)
    for size in (5, 3, 4, 1):
        step(torch.ones(size))
    assert counter.frame_count == 2


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.inner(x))


class Layered(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Layer() for _ in range(5))

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_regional_mode_compiles_the_layers_once_and_leaves_the_step_alone(compiler_config: Any) -> None:
    from torch._dynamo.testing import CompileCounter

    counter, module = CompileCounter(), Layered()
    mode = built("compile_regional", backend="eager", transform="dynamo")
    mode.backend = counter
    step = mode.transformed(module.decode, 2)
    assert step == module.decode
    with torch.no_grad():
        torch.testing.assert_close(step(torch.ones(3, 2)), Layered.decode(module, torch.ones(3, 2)))
    assert counter.frame_count == 1


def test_regional_mode_needs_layers() -> None:
    with pytest.raises(UserError, match="mode: needs a model with its layers in `blocks`; got compile_regional"):
        built("compile_regional").transformed(torch.ones(2).add, 2)


@pytest.mark.gpu
def test_capture_replays_on_new_inputs() -> None:
    static = torch.zeros(4, device="cuda")
    mode = built("cuda_graph")
    replay = mode.held(lambda: static * 2, torch.cuda.graph_pool_handle())
    for value in (1.0, 2.0):
        static.fill_(value)
        torch.testing.assert_close(replay(), torch.full((4,), 2 * value, device="cuda"))
