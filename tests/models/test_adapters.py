"""A LoRA adapter in static buffers computes what merged weights compute, and switching it keeps what was compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from stages.core.errors import UserError
from stages.models.adapters import adapter_buffers, switch_adapter
from stages.models.decoder import LlamaDecoder
from stages.models.random_llama import RandomLlama

RANK, LAYERS = 3, 2


def model(rank: int = RANK) -> RandomLlama:
    sizes: dict[str, Any] = {"hidden_size": 32, "num_heads": 4, "num_kv_heads": 2, "head_size": 8, "ffn_size": 24, "vocab_size": 40}
    serving: dict[str, Any] = {"context_tokens": 16, "max_batch": 2, "capture_sizes": [1, 2], "prompt_sizes": [8]}
    return RandomLlama(name="small", num_layers=LAYERS, rope_theta=1e4, tied=True, seed=1, adapter_rank=rank, **sizes, **serving)


def loaded(rank: int = RANK) -> LlamaDecoder:
    decoder = model(rank).load("cpu", "fp64")
    for weight in decoder.parameters():
        weight.mul_(10 if weight.dim() > 1 else 1)
    return decoder


def adapter_of(decoder: LlamaDecoder, seed: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {name: torch.randn(b.shape, dtype=b.dtype, generator=draw) / 10 for name, b in adapter_buffers(decoder).items()}


@torch.no_grad()
def outcome(decoder: LlamaDecoder, decode: Callable[..., tuple[Tensor, Tensor]] | None = None) -> Tensor:
    """Logits of a prefill and two decode steps."""
    keys, values = model().new_cache("cpu", "fp64")
    tokens, positions = torch.zeros(2, 2, dtype=torch.int64)
    prompt, length, slot = torch.arange(8)[None], torch.tensor([5]), torch.tensor([0])
    rows = [decoder.prefill(prompt, length, slot, tokens, positions, keys, values)[0]]
    step = decode or decoder.decode
    return torch.cat(rows + [step(tokens[:1], positions[:1], keys, values)[0].clone() for _ in range(2)])


def test_without_an_adapter_the_logits_are_those_of_a_model_that_takes_none() -> None:
    assert torch.equal(outcome(loaded(RANK)), outcome(loaded(0)))


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_an_adapter_equals_its_merged_weights(scale: float) -> None:
    decoder, merged = loaded(RANK), loaded(0)
    adapter = adapter_of(decoder, seed=7)
    switch_adapter(decoder, adapter, scale)
    weights = dict(merged.named_parameters())
    for name in {name.rpartition(".")[0] for name in adapter}:
        weights[f"{name}.weight"].add_(scale * adapter[f"{name}.up"] @ adapter[f"{name}.down"])
    torch.testing.assert_close(outcome(decoder), outcome(merged))
    assert not torch.allclose(outcome(decoder), outcome(loaded(0)))


def test_all_matrices_of_all_layers_are_adapted() -> None:
    names = {name.rpartition(".")[0] for name in adapter_buffers(loaded())}
    assert names == {f"blocks.{layer}.{matrix}" for layer in range(LAYERS) for matrix in ("qkv", "output", "gate_up", "down")}


def test_a_switch_keeps_addresses_and_what_was_compiled() -> None:
    from torch._dynamo.backends.debugging import aot_eager

    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        graphs.append(graph)
        return aot_eager(graph, inputs)

    torch._dynamo.reset()
    decoder = loaded()
    addresses = [buffer.data_ptr() for buffer in adapter_buffers(decoder).values()]
    decode = torch.compile(decoder.decode, backend=backend, fullgraph=True, dynamic=False)
    for adapter in (None, adapter_of(decoder, 1), adapter_of(decoder, 2), None):
        switch_adapter(decoder, adapter)
        torch.testing.assert_close(outcome(decoder, decode), outcome(decoder))
    assert len(graphs) == 1
    assert [buffer.data_ptr() for buffer in adapter_buffers(decoder).values()] == addresses
    torch._dynamo.reset()


def test_an_adapter_that_does_not_fit_changes_nothing() -> None:
    decoder = loaded()
    switch_adapter(decoder, adapter_of(decoder, 1))
    before, wrong = outcome(decoder), adapter_of(decoder, 2)
    wrong["blocks.1.down.up"] = wrong["blocks.1.down.up"][:, :2]
    with pytest.raises(UserError, match=r"blocks\.1\.down\.up must have shape \(32, 3\); got \(32, 2\)"):
        switch_adapter(decoder, wrong)
    with pytest.raises(UserError, match=r"must have shape None; got \(1,\)"):
        switch_adapter(decoder, adapter_of(decoder, 2) | {"head.up": torch.zeros(1)})
    assert torch.equal(outcome(decoder), before)


def test_a_model_without_room_refuses_an_adapter() -> None:
    with pytest.raises(UserError, match=r"model\.adapter_rank: must be above 0"):
        switch_adapter(loaded(0), adapter_of(loaded(), 1))


def test_a_negative_rank_is_a_user_error() -> None:
    with pytest.raises(UserError, match=r"model\.adapter_rank: must be 0 \(no adapters\) or more; got -1"):
        model(-1)


def test_step_bytes_count_the_adapter_once_a_step() -> None:
    elements = sum(buffer.numel() for buffer in adapter_buffers(loaded()).values())
    assert model().step_bytes(2, 5, "bf16") - model(0).step_bytes(2, 5, "bf16") == 2 * elements
    assert model().step_operations(2, 5) - model(0).step_operations(2, 5) == 2 * 2 * elements


@pytest.mark.gpu
@torch.no_grad()
def test_a_replayed_graph_follows_a_switch() -> None:
    decoder = model().load("cuda", "fp32")
    keys, values = model().new_cache("cuda", "fp32")
    tokens, positions = torch.tensor([3], device="cuda"), torch.tensor([0], device="cuda")
    decoder.decode(tokens, positions, keys, values)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits, _ = decoder.decode(tokens, positions, keys, values)
    adapter = {name: torch.randn_like(buffer) for name, buffer in adapter_buffers(decoder).items()}
    for chosen in (None, adapter, None):
        switch_adapter(decoder, chosen)
        tokens.fill_(3)
        positions.fill_(1)
        graph.replay()
        replayed = logits.clone()
        tokens.fill_(3)
        positions.fill_(1)
        torch.testing.assert_close(replayed, decoder.decode(tokens, positions, keys, values)[0])


@pytest.mark.gpu
@torch.no_grad()
def test_a_replayed_graph_is_stale_after_a_switch_by_pointer() -> None:
    layer = torch.nn.Linear(8, 8, bias=False, device="cuda").requires_grad_(False)
    adapters = [torch.randn(8, 8, device="cuda") for _ in range(2)]
    x = torch.randn(2, 8, device="cuda")
    layer.weight.data = adapters[0]
    layer(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x)
    layer.weight.data = adapters[1]
    graph.replay()
    torch.testing.assert_close(y, x @ adapters[0].t())  # still the adapter of the capture
    assert not torch.allclose(y, layer(x))
