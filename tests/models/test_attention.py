"""The two decode attentions: which one a model gets, and split_kv against the definition in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from stages.core.errors import UserError
from stages.models.attention import attend_filled, attend_slots, decode_attention
from stages.models.random_llama import RandomLlama

LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def model(**changes: Any) -> RandomLlama:
    sizes: dict[str, Any] = {"hidden_size": 128, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "head_size": 32, "ffn_size": 64}
    serving: dict[str, Any] = {"context_tokens": 160, "max_batch": 4, "capture_sizes": [2, 4], "prompt_sizes": [8]}
    return RandomLlama(name="small", vocab_size=64, rope_theta=1e4, tied=True, seed=3, **{**sizes, **serving, **changes})


def test_an_unknown_attention_is_a_user_error() -> None:
    with pytest.raises(UserError, match=r"model\.attention: must be one of sdpa, split_kv; got flash"):
        model(attention="flash")


@pytest.mark.parametrize(
    ("name", "device", "dtype", "expected"),
    [
        ("sdpa", "cpu", torch.float32, attend_slots),
        ("sdpa", "cuda", torch.bfloat16, attend_slots),
        ("split_kv", "cpu", torch.float32, attend_slots),
        ("split_kv", "cuda", torch.float64, attend_slots),
        ("split_kv", "cuda", torch.bfloat16, attend_filled),
        ("split_kv", "cuda", torch.float32, attend_filled),
    ],
)
def test_a_cpu_and_float64_take_sdpa_whatever_was_asked(name: str, device: str, dtype: torch.dtype, expected: Callable[..., Any]) -> None:
    assert decode_attention(name, device, dtype) is expected


def inputs(rows: int, kv_heads: int, group: int, size: int, context: int, dtype: torch.dtype) -> list[Tensor]:
    """Query, keys, values; two slots more than rows."""
    draw = torch.Generator("cuda").manual_seed(size + context)
    shapes = [(rows, kv_heads, group, size), *[(rows + 2, kv_heads, context, size)] * 2]
    return [torch.randn(shape, device="cuda", generator=draw).to(dtype) for shape in shapes]


def expected_result(query: Tensor, positions: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Row by row in float64."""
    query, keys, values = query.double(), keys.double(), values.double()
    rows = []
    for row, position in enumerate(positions.tolist()):
        weights = (query[row] @ keys[row, :, : position + 1].mT / query.shape[-1] ** 0.5).softmax(-1)
        rows.append((weights @ values[row, :, : position + 1]).flatten())
    return torch.stack(rows)


# every shape compiles two kernels for each type: all shapes in the type that is served, and where the types differ most
SHAPES = [(8, 4, 64, 2048), (3, 1, 32, 256), (2, 3, 8, 24), (1, 2, 80, 130), (8, 4, 128, 8192), (64, 2, 64, 1024)]
TYPED_SHAPES = [(torch.bfloat16, shape) for shape in SHAPES]
TYPED_SHAPES += [(dtype, shape) for dtype in (torch.float32, torch.float16) for shape in ((1, 2, 80, 130), (8, 4, 128, 8192))]


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "shape"), TYPED_SHAPES, ids=str)
@torch.no_grad()
def test_split_kv_is_attention_over_the_filled_part(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    from stages.models.split_kv import decode_attention as split_kv

    kv_heads, group, size, context = shape
    places = sorted({0, 1, 15, 63, 64, 65, 127, 255, 256, 1000, context // 2, context - 2, context - 1})
    positions = torch.tensor([place for place in places if place < context], device="cuda")
    query, keys, values = inputs(len(positions), kv_heads, group, size, context, dtype)
    result = expected_result(query, positions, keys, values)
    got = split_kv(query, positions, keys, values)
    assert (got.double() - result).abs().max() < LARGEST_ERROR[dtype] * result.abs().max()


@pytest.mark.gpu
@torch.no_grad()
def test_what_lies_behind_a_position_is_never_read() -> None:
    from stages.models.split_kv import decode_attention as split_kv

    query, keys, values = inputs(3, 2, 4, 64, 512, torch.bfloat16)
    positions = torch.tensor([0, 100, 300], device="cuda")
    for row, position in enumerate(positions.tolist()):
        keys[row, :, position + 1 :], values[row, :, position + 1 :] = float("nan"), float("nan")
    assert split_kv(query, positions, keys, values).isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@torch.no_grad()
def test_a_capture_replayed_across_splits_equals_eager_bit_for_bit(precision: str) -> None:
    """From position 60 a sequence crosses the border of its first split; the graph's grid was fixed before."""
    small = model(attention="split_kv")
    decoder = small.load("cuda", precision)
    runs = []
    for captured in (False, True):
        keys, values = small.new_cache("cuda", precision)
        tokens, positions = torch.tensor([3, 9], device="cuda"), torch.tensor([60, 125], device="cuda")
        step = replaying(decoder, tokens, positions, keys, values) if captured else decoder.decode
        runs.append([step(tokens, positions, keys, values)[0].clone() for _ in range(8)])
    torch.testing.assert_close(runs[1], runs[0], rtol=0, atol=0)


def replaying(decoder: Any, *buffers: Any) -> Callable[..., Any]:
    """A capture of one step whose warm-up leaves the buffers as they were."""
    tokens, positions = buffers[0].clone(), buffers[1].clone()
    decoder.decode(*buffers)
    buffers[0].copy_(tokens)
    buffers[1].copy_(positions)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = decoder.decode(*buffers)

    def step(*_: Any) -> Any:
        graph.replay()
        return outputs

    return step


@pytest.mark.gpu
@torch.no_grad()
def test_both_attentions_decode_alike_eagerly_and_compiled() -> None:
    outcomes = []
    for attention, compiled in (("sdpa", False), ("split_kv", False), ("split_kv", True)):
        small = model(attention=attention)
        decoder = small.load("cuda", "fp32")
        decode = torch.compile(decoder.decode, fullgraph=True, dynamic=False) if compiled else decoder.decode
        keys, values = small.new_cache("cuda", "fp32")
        tokens, positions = torch.tensor([3, 9], device="cuda"), torch.tensor([0, 40], device="cuda")
        outcomes.append(torch.stack([decode(tokens, positions, keys, values)[0].clone() for _ in range(4)]))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(outcomes[2], outcomes[0], rtol=1e-4, atol=1e-5)
