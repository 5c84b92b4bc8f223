"""Random admissions and finishes in slots, against the same decoder run without cache or slots, one text at a time."""

from __future__ import annotations

from functools import cache

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.core.records.plan import Plan
from stages.models.decoder import LlamaDecoder
from stages.models.random_llama import RandomLlama
from stages.models.training import teacher_forced
from stages.modes.eager import Eager
from stages.traces.scheduling import compaction_moves
from stages.workers.service import Service

VOCAB, CONTEXT, SLOTS = 31, 12, 4
MODEL = RandomLlama(
    name="small",
    context_tokens=CONTEXT,
    max_batch=SLOTS,
    capture_sizes=[1, 2, SLOTS],
    prompt_sizes=[3, 8],
    hidden_size=24,
    num_layers=2,
    num_heads=3,
    num_kv_heads=1,
    head_size=8,
    ffn_size=16,
    vocab_size=VOCAB,
    rope_theta=10_000.0,
    tied=False,
    seed=5,
)
PLAN = Plan(
    trace="none",
    num_requests=0,
    span_s=1,
    recorded_rate_per_s=1,
    context_tokens=CONTEXT,
    max_batch=SLOTS,
    length_factor=1,
    capture_sizes=MODEL.capture_sizes,
    prompt_sizes=MODEL.prompt_sizes,
    num_steps=0,
    num_decode_steps=0,
    runs=[],
    statistics={},
    scheduler={},
)
prompts = st.tuples(st.integers(1, 8), st.integers(0, 5))
"""(length, seed) of a prompt."""
admissions = st.lists(prompts, max_size=3)
finishes = st.sets(st.integers(0, SLOTS - 1), max_size=2)


@cache
def decoder() -> LlamaDecoder:
    """Weights scaled up, so that attention and gates are far from their trivial values."""
    loaded = MODEL.load("cpu", "fp64")
    for weight in loaded.parameters():
        weight.mul_(12 if weight.dim() > 1 else 1)
    return loaded


def prompt_of(length: int, seed: int) -> list[int]:
    return torch.randint(VOCAB, (length,), generator=torch.Generator().manual_seed(97 * seed + length)).tolist()


@cache
def continued(length: int, seed: int) -> list[int]:
    """The prompt and its greedy continuation to the end of a slot, every token from a recompute of the whole text."""
    text = prompt_of(length, seed)
    while len(text) <= CONTEXT:
        text.append(int(teacher_forced(decoder(), torch.tensor([text]))[0, -1].argmax()))
    return text


@torch.no_grad()
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(admissions, finishes), min_size=1, max_size=8), st.integers(0, CONTEXT - 1), st.integers(0, VOCAB - 1))
def test_every_active_slot_follows_its_own_text(
    rounds: list[tuple[list[tuple[int, int]], set[int]]], padding_position: int, padding_token: int
) -> None:
    service = Service(decoder(), MODEL, Eager(name="eager", documented_at="", stability="public", configuration=""), PLAN, "cpu", "fp64")
    service.positions.fill_(padding_position)
    service.tokens.fill_(padding_token)
    texts: list[list[int]] = []
    places: list[int] = []
    """Of each slot: what it must say, and the place of its newest token."""
    for admitted, finished in rounds:
        for length, seed in admitted[: SLOTS - len(texts)]:
            service.prefill(len(texts), torch.tensor(prompt_of(length, seed)))
            texts.append(continued(length, seed))
            places.append(length)
        if texts:
            assert service.read_tokens(len(texts)) == [text[place] for text, place in zip(texts, places, strict=True)]
            service.decode(len(texts))
            places = [place + 1 for place in places]
            full = {slot for slot, place in enumerate(places) if place > CONTEXT}
            leaving = sorted(full | {slot for slot in finished if slot < len(texts)})
            moves = compaction_moves(len(texts), leaving)
            service.compact(moves)
            for source, target in moves:
                texts[target], places[target] = texts[source], places[source]
            del texts[len(texts) - len(leaving) :], places[len(places) - len(leaving) :]
