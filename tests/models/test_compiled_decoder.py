"""Compiled whole, without graph breaks, the decoder computes what it computes eagerly, one graph a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from stages.models.decoder import LlamaDecoder
from stages.models.random_llama import RandomLlama

SLOTS = 2
MODEL = RandomLlama(
    name="small",
    context_tokens=16,
    max_batch=SLOTS,
    capture_sizes=[1, SLOTS],
    prompt_sizes=[4, 8],
    hidden_size=32,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_size=8,
    ffn_size=16,
    vocab_size=40,
    rope_theta=10_000.0,
    tied=True,
    seed=1,
)


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class CountingBackend:
    """AOTAutograd without code generation: functionalises as Inductor does, compiles in no time."""

    def __init__(self) -> None:
        self.num_graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        from torch._dynamo.backends.debugging import aot_eager

        self.num_graphs += 1
        compiled: Callable[..., Any] = aot_eager(graph, inputs)
        return compiled


def state() -> tuple[Any, ...]:
    keys, values = MODEL.new_cache("cpu", "fp32")
    draw = torch.Generator().manual_seed(2)
    for cache in keys + values:
        cache.normal_(generator=draw)
    return torch.tensor([3, 9]), torch.tensor([5, 2]), keys, values


def flat(result: tuple[Tensor, Tensor], buffers: tuple[Any, ...]) -> list[Tensor]:
    tokens, positions, keys, values = buffers
    return [*result, tokens, positions, *keys, *values]


@torch.no_grad()
def decoded(decode: Callable[..., tuple[Tensor, Tensor]], batch: int) -> list[Tensor]:
    buffers = tokens, positions, keys, values = state()
    return flat(decode(tokens[:batch], positions[:batch], keys, values), buffers)


@torch.no_grad()
def prefilled(prefill: Callable[..., tuple[Tensor, Tensor]], padded: int) -> list[Tensor]:
    buffers = state()
    prompt = torch.arange(padded)[None]
    return flat(prefill(prompt, torch.tensor([3]), torch.tensor([1]), *buffers), buffers)


def compiled(function: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    return torch.compile(function, fullgraph=True, dynamic=False, backend=backend)


@pytest.mark.usefixtures("fresh_dynamo")
def test_every_size_is_one_graph_and_equals_eager() -> None:
    decoder, backend = MODEL.load("cpu", "fp32"), CountingBackend()
    decode, prefill = compiled(decoder.decode, backend), compiled(decoder.prefill, backend)
    for _ in range(2):
        for batch in MODEL.capture_sizes:
            torch.testing.assert_close(decoded(decode, batch), decoded(decoder.decode, batch))
        for padded in MODEL.prompt_sizes:
            torch.testing.assert_close(prefilled(prefill, padded), prefilled(decoder.prefill, padded))
    assert backend.num_graphs == len(MODEL.capture_sizes) + len(MODEL.prompt_sizes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch's own
@pytest.mark.usefixtures("fresh_dynamo")
def test_inductor_equals_eager() -> None:
    decoder: LlamaDecoder = MODEL.load("cpu", "fp32")
    torch.testing.assert_close(decoded(compiled(decoder.decode, "inductor"), 2), decoded(decoder.decode, 2))
    torch.testing.assert_close(prefilled(compiled(decoder.prefill, "inductor"), 4), prefilled(decoder.prefill, 4))


@pytest.mark.usefixtures("fresh_dynamo")
def test_layers_compiled_one_by_one_share_one_graph() -> None:
    decoder, backend = MODEL.load("cpu", "fp32"), CountingBackend()
    expected = decoded(decoder.decode, 2)
    for block in decoder.blocks:
        block.compile(fullgraph=True, dynamic=False, backend=backend)
    torch.testing.assert_close(decoded(decoder.decode, 2), expected)
    assert backend.num_graphs == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@torch.no_grad()
def test_a_replayed_capture_goes_on_decoding(precision: str) -> None:
    decoder = MODEL.load("cuda", precision)
    runs = []
    for captured in (False, True):
        keys, values = MODEL.new_cache("cuda", precision)
        tokens, positions = torch.tensor([3, 9], device="cuda"), torch.tensor([0, 0], device="cuda")
        step = decoder.decode if not captured else replaying(decoder, tokens, positions, keys, values)
        runs.append([step(tokens, positions, keys, values)[0].clone() for _ in range(5)])
    torch.testing.assert_close(runs[1], runs[0], rtol=0, atol=0)


def replaying(decoder: LlamaDecoder, tokens: Tensor, positions: Tensor, *cache: Any) -> Callable[..., tuple[Tensor, Tensor]]:
    start = tokens.clone(), positions.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        decoder.decode(tokens, positions, *cache)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs: tuple[Tensor, Tensor] = decoder.decode(tokens, positions, *cache)
    tokens.copy_(start[0])
    positions.copy_(start[1])

    def step(*_: Any) -> tuple[Tensor, Tensor]:
        graph.replay()
        return outputs

    return step
