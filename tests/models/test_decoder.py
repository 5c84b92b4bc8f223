"""The decoder against plain Llama arithmetic without a cache, one sequence at a time, in float64."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from stages.models.decoder import LlamaDecoder, greedy
from stages.models.dimensions import RopeScaling
from stages.models.random_llama import RandomLlama

VOCAB, CONTEXT, SLOTS = 61, 24, 4
MODEL = RandomLlama(
    name="small",
    context_tokens=CONTEXT,
    max_batch=SLOTS,
    capture_sizes=[1, 2, SLOTS],
    prompt_sizes=[8, 16],
    hidden_size=48,
    num_layers=2,
    num_heads=6,
    num_kv_heads=2,
    head_size=8,
    ffn_size=40,
    vocab_size=VOCAB,
    rope_theta=10_000.0,
    tied=False,
    seed=3,
)
TIED = replace(MODEL, tied=True)
SCALED = replace(MODEL, rope_scaling=RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=16))


def loaded(model: RandomLlama, precision: str = "fp64") -> LlamaDecoder:
    """Weights scaled up, so that attention and gates are far from their trivial values."""
    decoder = model.load("cpu", precision)
    for weight in decoder.parameters():
        weight.mul_(12 if weight.dim() > 1 else 1)
    return decoder


def reference_logits(decoder: LlamaDecoder, model: RandomLlama, tokens: list[int]) -> Tensor:
    """Logits after the last token, position by position and head by head as the papers write it."""
    weights = dict(decoder.named_parameters())
    rows = weights["embedding.weight"][torch.tensor(tokens)]
    for layer in range(model.num_layers):
        rows = reference_layer({k.split(".", 2)[2]: w for k, w in weights.items() if k.startswith(f"blocks.{layer}.")}, model, rows)
    head = weights["embedding.weight" if model.tied else "head.weight"]
    return head @ normed(rows[-1], weights["norm.weight"])


def reference_layer(weights: dict[str, Tensor], model: RandomLlama, rows: Tensor) -> Tensor:
    size, queries, shared = model.head_size, model.num_heads, model.num_kv_heads
    projected = [weights["qkv.weight"] @ normed(row, weights["attention_norm.weight"]) for row in rows]
    heads = [row.view(queries + 2 * shared, size) for row in projected]
    result = []
    for place, row in enumerate(rows):
        mixed = []
        for head in range(queries):
            group = head * shared // queries
            query = turned(heads[place][head], place, model)
            scores = torch.stack([query @ turned(heads[k][queries + group], k, model) / math.sqrt(size) for k in range(place + 1)])
            mixed.append(sum(p * heads[k][queries + shared + group] for k, p in enumerate(scores.softmax(0))))
        row = row + weights["output.weight"] @ torch.cat(mixed)
        gate, up = (weights["gate_up.weight"] @ normed(row, weights["ffn_norm.weight"])).chunk(2)
        result.append(row + weights["down.weight"] @ (gate * torch.sigmoid(gate) * up))
    return torch.stack(result)


def normed(row: Tensor, weight: Tensor) -> Tensor:
    return weight * row / torch.sqrt((row * row).mean() + 1e-5)


def turned(head: Tensor, place: int, model: RandomLlama) -> Tensor:
    """Pairs (i, i + d/2) as complex numbers times exp(i * place * frequency)."""
    half = len(head) // 2
    frequencies = torch.tensor([reference_frequency(model, i) for i in range(half)], dtype=torch.float64)
    pairs = torch.complex(head[:half], head[half:]) * torch.polar(torch.ones(half, dtype=torch.float64), place * frequencies)
    return torch.cat((pairs.real, pairs.imag))


def reference_frequency(model: RandomLlama, index: int) -> float:
    frequency = model.rope_theta ** (-2 * index / model.head_size)
    scaling = model.rope_scaling
    if scaling is None:
        return frequency
    wavelength = 2 * math.pi / frequency
    if wavelength < scaling.original_context / scaling.high_freq_factor:
        return frequency
    if wavelength > scaling.original_context / scaling.low_freq_factor:
        return frequency / scaling.factor
    smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    return (1 - smooth) * frequency / scaling.factor + smooth * frequency


class Service:
    """A decoder with its static buffers."""

    def __init__(self, model: RandomLlama, decoder: LlamaDecoder, precision: str = "fp64") -> None:
        self.decoder = decoder
        self.keys, self.values = model.new_cache("cpu", precision)
        self.tokens, self.positions = torch.zeros(2, SLOTS, dtype=torch.int64)

    @torch.no_grad()
    def prefill(self, prompt: list[int], slot: int, padded: int, filler: int = 0) -> Tensor:
        row = torch.full((1, padded), filler)
        row[0, : len(prompt)] = torch.tensor(prompt)
        place, length = torch.tensor([slot]), torch.tensor([len(prompt)])
        logits, following = self.decoder.prefill(row, length, place, self.tokens, self.positions, self.keys, self.values)
        assert torch.equal(following, logits.argmax(-1))
        return logits[0]

    @torch.no_grad()
    def decode(self, batch: int) -> Tensor:
        return self.decoder.decode(self.tokens[:batch], self.positions[:batch], self.keys, self.values)[0]


def prompts() -> list[list[int]]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(VOCAB, (n,), generator=draw).tolist() for n in (8, 1, 13, 5)]


@pytest.mark.parametrize("model", [MODEL, TIED, SCALED], ids=["untied", "tied", "scaled rope"])
def test_prefill_and_decode_equal_a_full_recompute_at_ragged_positions(model: RandomLlama) -> None:
    decoder = loaded(model)
    service, texts = Service(model, decoder), prompts()
    for slot, text in enumerate(texts):
        expected = reference_logits(decoder, model, text)
        torch.testing.assert_close(service.prefill(text, slot, padded=8 if len(text) <= 8 else 16), expected)
    for _ in range(3):
        for slot, text in enumerate(texts):
            text.append(int(service.tokens[slot]))
            assert service.positions[slot] == len(text) - 1
        logits = service.decode(SLOTS)
        for slot, text in enumerate(texts):
            torch.testing.assert_close(logits[slot], reference_logits(decoder, model, text))
        assert torch.equal(service.tokens, logits.argmax(-1))


def test_what_fills_the_end_of_a_padded_prompt_changes_nothing() -> None:
    decoder, text = loaded(MODEL), prompts()[3]
    outcomes = []
    for filler, padded in ((0, 8), (VOCAB - 1, 8), (7, 16)):
        service = Service(MODEL, decoder)
        first = service.prefill(text, slot=0, padded=padded, filler=filler)
        outcomes.append(torch.stack([first, *(service.decode(1)[0] for _ in range(6))]))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=0, atol=0)
    torch.testing.assert_close(outcomes[2], outcomes[0])


def test_padding_rows_do_not_touch_real_rows() -> None:
    decoder, texts = loaded(MODEL), prompts()
    outcomes = []
    for token, position in ((0, 0), (VOCAB - 1, CONTEXT - 1), (5, 9)):
        service = Service(MODEL, decoder)
        for slot in range(2):
            service.prefill(texts[slot], slot, padded=8)
        service.tokens[2:], service.positions[2:] = token, position
        outcomes.append(torch.stack([service.decode(SLOTS)[:2] for _ in range(3)]))
    for other in outcomes[1:]:
        torch.testing.assert_close(other, outcomes[0], rtol=0, atol=0)


def test_a_prefill_leaves_the_other_slots_as_they_were() -> None:
    service, texts = Service(MODEL, loaded(MODEL)), prompts()
    service.prefill(texts[0], slot=0, padded=8)
    before = [cache[0].clone() for cache in service.keys + service.values]
    state = (int(service.tokens[0]), int(service.positions[0]))
    service.prefill(texts[2], slot=2, padded=16)
    assert all(torch.equal(cache[0], old) for cache, old in zip(service.keys + service.values, before, strict=True))
    assert (int(service.tokens[0]), int(service.positions[0])) == state
    assert not any(cache[1].any() or cache[3].any() for cache in service.keys)


def test_a_decode_of_a_prefix_leaves_the_later_slots_as_they_were() -> None:
    service, texts = Service(MODEL, loaded(MODEL)), prompts()
    for slot in range(SLOTS):
        service.prefill(texts[slot], slot, padded=16)
    before, state = [cache[2:].clone() for cache in service.keys], service.tokens[2:].clone()
    service.decode(2)
    assert all(torch.equal(cache[2:], old) for cache, old in zip(service.keys, before, strict=True))
    assert torch.equal(service.tokens[2:], state)


def test_a_used_slot_can_be_used_again() -> None:
    decoder, texts = loaded(MODEL), prompts()
    fresh, reused = Service(MODEL, decoder), Service(MODEL, decoder)
    reused.prefill(texts[2], slot=0, padded=16)
    for _ in range(4):
        reused.decode(1)
    for service in (fresh, reused):
        service.prefill(texts[1], slot=0, padded=8)
    for _ in range(4):
        torch.testing.assert_close(reused.decode(1), fresh.decode(1), rtol=0, atol=0)


def test_positions_stay_inside_a_full_slot() -> None:
    service = Service(MODEL, loaded(MODEL))
    service.positions[0] = CONTEXT - 2
    for _ in range(3):
        service.decode(1)
    assert service.positions[0] == CONTEXT - 1


def test_a_prompt_that_fills_its_slot_is_followed_by_a_position_inside_it() -> None:
    service = Service(MODEL, loaded(MODEL))
    service.prefill([3] * CONTEXT, slot=1, padded=CONTEXT)
    assert service.positions[1] == CONTEXT - 1


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_logits_have_the_precision_asked_for_and_stay_near_float64(precision: str, dtype: torch.dtype) -> None:
    exact, text = Service(MODEL, MODEL.load("cpu", "fp64")), prompts()[0]
    service = Service(MODEL, MODEL.load("cpu", precision), precision)
    service.decoder.load_state_dict(exact.decoder.state_dict())
    logits, expected = service.prefill(text, slot=0, padded=8), exact.prefill(text, slot=0, padded=8)
    assert logits.dtype == dtype
    error = (logits.double() - expected).abs().max() / expected.abs().max()
    assert error < 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("vocab", [7, 64, 501, 512, 1280])
def test_greedy_takes_the_largest_wherever_it_stands(vocab: int) -> None:
    logits = torch.randn(9, vocab, generator=torch.Generator().manual_seed(vocab))
    logits[0, vocab - 1], logits[1, 0], logits[2, vocab // 2] = 50, 50, 50
    assert torch.equal(greedy(logits), logits.argmax(-1))
