"""What a user copies from the report: it runs as pasted, on a small module with a KV cache, and answers as eager does."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn

from stages.modes.linking import driver_can_be_linked, no_shared_cxx

FOLDER = Path(__file__).parents[2] / "conf" / "mode"
SNIPPETS = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8"))["configuration"] for file in sorted(FOLDER.glob("*.yaml"))}
ON_A_CPU = ("eager", "compile", "compile_dynamic", "compile_regional", "dynamo", "max_autotune_no_cudagraphs", "aot_inductor")
GIVEN = {"model", "inputs"}


class Cached(nn.Module):
    """A step that writes a row of its cache in place and reads all rows up to it."""

    cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.register_buffer("cache", torch.zeros(8, 16))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        self.cache.index_copy_(0, position, x)
        seen = torch.arange(8, device=x.device) <= position
        return (self.cache * seen[:, None]).sum(0)


def undefined(text: str) -> set[str]:
    """Names that a snippet reads and neither defines nor says that it is given."""
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            defined |= {alias.name for alias in node.names}
        if isinstance(node, ast.FunctionDef):
            arguments = (*node.args.args, node.args.vararg)
            defined |= {node.name} | {argument.arg for argument in arguments if argument}
    comments = {name for name in GIVEN if "# given: " in text and name in text.partition("# given: ")[2].partition("\n")[0]}
    return {node.id for node in names} - defined - comments - set(dir(builtins))


def pasted(name: str, device: str) -> tuple[Tensor, Tensor]:
    """The output of the snippet and that of eager, from equal weights and caches; both caches must have been written alike."""
    if name == "aot_inductor" and (why := no_shared_cxx()):
        pytest.skip(why)
    torch.manual_seed(0)
    model, reference = Cached().to(device), Cached().to(device)
    reference.load_state_dict(model.state_dict())
    inputs = torch.randn(1, 16, device=device), torch.tensor([3], device=device)
    with torch.no_grad():
        expected = reference(*inputs)
    scope: dict[str, Any] = {"model": model, "inputs": inputs}
    exec(compile(SNIPPETS[name], name, "exec"), scope)
    assert torch.allclose(model.cache, reference.cache, atol=1e-5)
    return scope["output"], expected


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_defines_every_name_that_it_uses(name: str) -> None:
    compile(SNIPPETS[name], name, "exec")
    assert undefined(SNIPPETS[name]) == set()


def test_a_name_that_is_nowhere_defined_is_noticed() -> None:
    assert undefined("import torch\nstep = torch.compile(model)\nstep(*static_inputs)") == {"model", "static_inputs"}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, in its export
@pytest.mark.parametrize("name", ON_A_CPU)
def test_a_snippet_runs_as_pasted_and_answers_as_eager(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.compiler.reset()
    output, expected = pasted(name, "cpu")
    assert torch.allclose(output, expected, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_runs_as_pasted_on_a_gpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autotuning has one way to choose from, the processor's vector units are not tried, and the linker finds the driver."""
    import torch._inductor.config as inductor

    monkeypatch.chdir(tmp_path)
    torch.compiler.reset()
    torch.zeros(1, device="cuda")  # loads the driver
    with driver_can_be_linked(), inductor.patch({"max_autotune_gemm_backends": "ATEN", "cpp.vec_isa_ok": True}):
        output, expected = pasted(name, "cuda")
    assert torch.allclose(output, expected, atol=1e-3)
