"""The two ways to write RMSNorm: the same values, and a model that uses either."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from stages.core.errors import UserError
from stages.models.norms import EPSILON, norm
from stages.models.random_llama import RandomLlama

LARGEST_ERROR = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 1e-2}
SIZES = {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "head_size": 16, "ffn_size": 96, "vocab_size": 100}
SERVING: dict[str, Any] = {"context_tokens": 32, "max_batch": 2, "capture_sizes": [2], "prompt_sizes": [8]}


def model(**changes: Any) -> RandomLlama:
    return RandomLlama(name="small", rope_theta=1e4, tied=True, seed=3, **{**SIZES, **SERVING, **changes})


@pytest.mark.parametrize("dtype", LARGEST_ERROR, ids=str)
@pytest.mark.parametrize("name", ["torch", "written_out"])
@torch.no_grad()
def test_a_norm_is_the_definition_in_its_precision(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, layer = torch.randn(5, 300).to(dtype), norm(name, 300, "cpu", dtype)
    layer.weight.uniform_(0.5, 1.5)
    expected = F.rms_norm(x.double(), (300,), layer.weight.double(), EPSILON)
    got = layer(x)
    assert got.dtype == dtype
    assert (got.double() - expected).abs().max() < LARGEST_ERROR[dtype] * expected.abs().max()


@torch.no_grad()
def test_models_with_either_norm_decode_alike() -> None:
    outcomes = []
    for name in ("torch", "written_out"):
        small = model(norms=name)
        keys, values = small.new_cache("cpu", "fp32")
        tokens, positions = torch.tensor([3, 9]), torch.tensor([0, 5])
        outcomes.append(small.load("cpu", "fp32").decode(tokens, positions, keys, values)[0])
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-4, atol=1e-6)


def test_unknown_norms_are_a_user_error() -> None:
    with pytest.raises(UserError, match=r"model\.norms: must be one of torch, written_out; got layer"):
        model(norms="layer")
