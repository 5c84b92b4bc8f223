# mypy: disable-error-code="import-not-found, untyped-decorator, no-untyped-def, no-untyped-call, no-any-return"
"""Decode attention in Triton over what the cache holds, one query position a sequence.

Split-KV ("Flash-Decoding", Dao et al., 2023; online softmax: Milakov and Gimelshein, arXiv 1805.02867). A slot is cut
into splits of fixed size; one program attends with the queries of one key head to one split, and a second kernel
combines. Where the rows alone fill the device there is one split, and no second kernel. The grid follows from shapes
alone, so a captured graph stays valid; lengths are read from `positions` on the device, and programs past a sequence's
end return at once. torch.compile traces the kernels as they stand: the same ones run in every mode.

Needs Triton and a CUDA device: `stages.models.attention` imports this file only there.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

MIN_SPLIT_TOKENS = 64
MAX_PROGRAMS = 512  # four on each of an H200's 132 multiprocessors
TILE_BYTES, MAX_TILE_TOKENS = 16_384, 128  # of keys that a program holds at once; as many of values
NUM_STAGES, NUM_WARPS = 2, 4
MIN_DOT_ROWS = 16  # what a tensor core takes


def decode_attention(query: Tensor, positions: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Query [b, g, h / g, d] of slots 0..b-1 over keys and values [B, g, c, d] up to `positions` [b], included: [b, h * d].

    fp32, bf16 or fp16; sums are taken in fp32.
    """
    batch, num_kv_heads, group, size = query.shape
    context, num_queries = keys.shape[2], num_kv_heads * group
    split = split_tokens(batch * num_kv_heads, context)
    num_splits = -(-context // split)
    mixed = query.new_empty((batch, num_queries * size))
    partial = mixed if num_splits == 1 else query.new_empty((batch, num_queries, num_splits, size), dtype=torch.float32)
    # one split writes no sums: any pointer does, and one that no kernel writes has no alias among the results
    logsum = positions if num_splits == 1 else query.new_empty((batch, num_queries, num_splits), dtype=torch.float32)
    padded_size = power_of_two(max(size, MIN_DOT_ROWS))
    tile = min(MAX_TILE_TOKENS, TILE_BYTES // (padded_size * keys.element_size()))
    decode_attention_split[(batch, num_kv_heads, num_splits)](
        *(query.contiguous(), positions, keys, values, partial, logsum),
        *(group, num_kv_heads, size, padded_size, context, num_splits, split, math.log2(math.e) / math.sqrt(size)),
        PADDED_GROUP=power_of_two(max(group, MIN_DOT_ROWS)),
        TILE=tile,
        num_stages=NUM_STAGES,
        num_warps=NUM_WARPS,
    )
    if num_splits > 1:
        decode_attention_combine[(batch, num_queries)](
            *(positions, partial, logsum, mixed, num_queries, size, padded_size, num_splits, split, power_of_two(num_splits)),
        )
    return mixed


def split_tokens(num_rows: int, context_tokens: int) -> int:
    """Positions a program reads at most: the smallest power of two that keeps programs within their limit."""
    num_splits = max(1, MAX_PROGRAMS // num_rows)
    return max(MIN_SPLIT_TOKENS, power_of_two(-(-context_tokens // num_splits)))


def power_of_two(least: int) -> int:
    """The smallest power of two that is `least` or more."""
    return 1 << (least - 1).bit_length()


@triton.jit
def decode_attention_split(
    queries,
    positions,
    keys,
    values,
    partial,
    logsum,
    GROUP: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    PADDED_SIZE: tl.constexpr,
    CONTEXT: tl.constexpr,
    NUM_SPLITS: tl.constexpr,
    SPLIT: tl.constexpr,
    SCALE: tl.constexpr,
    PADDED_GROUP: tl.constexpr,
    TILE: tl.constexpr,
):
    """One split of one slot, for the GROUP queries of one key head: normalised result, and log2 of the sum of weights."""
    row, kv_head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    position = tl.load(positions + row).to(tl.int32)
    start = split * SPLIT
    if start > position:
        return
    lane, member = tl.arange(0, PADDED_SIZE), tl.arange(0, PADDED_GROUP)
    inside, asked = lane < SIZE, member < GROUP
    asked_lanes = asked[:, None] & inside[None, :]
    head = (row * NUM_KV_HEADS + kv_head) * GROUP + member
    query = tl.load(queries + head[:, None] * SIZE + lane[None, :], mask=asked_lanes, other=0.0)
    slot = (row * NUM_KV_HEADS + kv_head) * CONTEXT * SIZE
    peak = tl.full((PADDED_GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((PADDED_GROUP,), tl.float32)
    mixed = tl.zeros((PADDED_GROUP, PADDED_SIZE), tl.float32)
    # each tile holds a position that counts: `peak` is finite after the first
    for first in range(start, tl.minimum(start + SPLIT, position + 1), TILE):
        place = first + tl.arange(0, TILE)
        cached = (place <= position) & (place < start + SPLIT)
        offsets = slot + place[:, None] * SIZE + lane[None, :]
        there = cached[:, None] & inside[None, :]
        tile_keys = tl.load(keys + offsets, mask=there, other=0.0)
        tile_values = tl.load(values + offsets, mask=there, other=0.0)
        scores = tl.dot(query, tl.trans(tile_keys), input_precision="ieee") * SCALE
        scores = tl.where(cached[None, :], scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        kept = tl.exp2(peak - higher)
        total = total * kept + tl.sum(weights, axis=1)
        mixed = tl.dot(weights.to(keys.dtype.element_ty), tile_values, mixed * kept[:, None], input_precision="ieee")
        peak = higher

    result = head * NUM_SPLITS + split
    tl.store(partial + result[:, None] * SIZE + lane[None, :], (mixed / total[:, None]).to(partial.dtype.element_ty), mask=asked_lanes)
    if NUM_SPLITS > 1:
        tl.store(logsum + result, peak + tl.log2(total), mask=asked)


@triton.jit
def decode_attention_combine(
    positions,
    partial,
    logsum,
    mixed,
    NUM_QUERIES: tl.constexpr,
    SIZE: tl.constexpr,
    PADDED_SIZE: tl.constexpr,
    NUM_SPLITS: tl.constexpr,
    SPLIT: tl.constexpr,
    PADDED_SPLITS: tl.constexpr,
):
    """One query head of one row: the splits up to its position, weighted by their sums."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    used = tl.load(positions + row).to(tl.int32) // SPLIT + 1
    split, lane = tl.arange(0, PADDED_SPLITS), tl.arange(0, PADDED_SIZE)
    result = (row * NUM_QUERIES + head) * NUM_SPLITS + split
    sums = tl.load(logsum + result, mask=split < used, other=float("-inf"))
    weights = tl.exp2(sums - tl.max(sums, axis=0))
    there = (split < used)[:, None] & (lane < SIZE)[None, :]
    parts = tl.load(partial + result[:, None] * SIZE + lane[None, :], mask=there, other=0.0)
    combined = (tl.sum(parts * weights[:, None], axis=0) / tl.sum(weights, axis=0)).to(mixed.dtype.element_ty)
    tl.store(mixed + (row * NUM_QUERIES + head) * SIZE + lane, combined, mask=lane < SIZE)
