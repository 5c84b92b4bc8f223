"""Products with norm, gate and residual: what a model gets, and the fused kernel against float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stages.core.errors import UserError
from stages.models.matrices import added, fuses, gated, normed
from stages.models.random_llama import RandomLlama

LARGEST_ERROR = {torch.bfloat16: 1.5e-2, torch.float16: 2e-3}
SIZES = {"hidden_size": 256, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "head_size": 64, "ffn_size": 300, "vocab_size": 500}
SERVING: dict[str, Any] = {"context_tokens": 160, "max_batch": 32, "capture_sizes": [1, 8, 32], "prompt_sizes": [8]}


def model(**changes: Any) -> RandomLlama:
    return RandomLlama(name="small", rope_theta=1e4, tied=True, seed=3, **{**SIZES, **SERVING, **changes})


@pytest.mark.parametrize(
    ("name", "device", "dtype", "expected"),
    [
        ("torch", "cuda", torch.bfloat16, False),
        ("fused", "cuda", torch.bfloat16, True),
        ("fused", "cuda", torch.float16, True),
        ("fused", "cuda", torch.float32, False),
        ("fused", "cpu", torch.bfloat16, False),
    ],
)
def test_only_half_precision_on_cuda_fuses(name: str, device: str, dtype: torch.dtype, expected: bool) -> None:
    assert fuses(name, device, dtype) is expected


def test_unknown_linears_are_a_user_error() -> None:
    with pytest.raises(UserError, match=r"model\.linears: must be one of torch, fused; got cublas"):
        model(linears="cublas")


def test_adapters_and_fused_linears_exclude_each_other() -> None:
    with pytest.raises(UserError, match=r"model\.linears: must be torch where adapter_rank is above 0"):
        model(linears="fused", adapter_rank=4)


def layers(inputs: int, outputs: int, dtype: torch.dtype) -> tuple[nn.RMSNorm, nn.Linear, nn.Linear]:
    """A norm with weights around one, a layer, and one twice as wide for the gate."""
    torch.manual_seed(inputs)
    norm = nn.RMSNorm(inputs, 1e-5, device="cuda", dtype=dtype)
    norm.weight.uniform_(0.5, 1.5)
    plain, wide = (nn.Linear(inputs, width, bias=False, device="cuda", dtype=dtype) for width in (outputs, 2 * outputs))
    return norm, plain, wide


def near(got: Tensor, expected: Tensor) -> None:
    assert (got.double() - expected).abs().max() < LARGEST_ERROR[got.dtype] * expected.abs().max()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LARGEST_ERROR, ids=str)
@pytest.mark.parametrize("rows", [1, 8, 16])
@pytest.mark.parametrize(("inputs", "outputs"), [(2048, 3072), (8192, 2048), (300, 500), (257, 100)])
@torch.no_grad()
def test_the_fused_product_is_the_definition(rows: int, inputs: int, outputs: int, dtype: torch.dtype) -> None:
    norm, plain, wide = layers(inputs, outputs, dtype)
    x, residual = torch.randn(rows, inputs, device="cuda").to(dtype), torch.randn(rows, outputs, device="cuda").to(dtype)
    scaled = F.rms_norm(x.double(), (inputs,), norm.weight.double(), 1e-5)
    gate, up = (scaled @ wide.weight.double().T).chunk(2, dim=-1)
    near(normed(x, norm, plain, fused=True), scaled @ plain.weight.double().T)
    near(gated(x, norm, wide, fused=True), F.silu(gate) * up)
    near(added(x, plain, residual, fused=True), residual.double() + x.double() @ plain.weight.double().T)


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 8, 32])
@torch.no_grad()
def test_a_decoder_of_fused_kernels_decodes_as_one_of_torch(batch: int) -> None:
    """32 rows are more than the kernel takes: both are torch's there."""
    outcomes = []
    for changes, compiled in (({}, False), ({"linears": "fused", "attention": "split_kv"}, False), ({"linears": "fused"}, True)):
        small = model(**changes)
        decoder = small.load("cuda", "bf16")
        decode = torch.compile(decoder.decode, fullgraph=True, dynamic=False) if compiled else decoder.decode
        keys, values = small.new_cache("cuda", "bf16")
        tokens, positions = torch.arange(batch, device="cuda"), torch.arange(batch, device="cuda")
        outcomes.append(decode(tokens, positions, keys, values)[0])
    for other in outcomes[1:]:
        assert (other.double() - outcomes[0].double()).norm() < 3e-2 * outcomes[0].double().norm()
