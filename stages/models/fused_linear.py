# mypy: disable-error-code="import-not-found, untyped-decorator, no-untyped-def, no-untyped-call"
"""One Triton kernel for the products of a decode step with few rows: norm before, gate or residual after, in the product.

With few rows a product is a stream of weights, read once. Each program takes a strip of outputs over all inputs, so it
sees the whole row: RMSNorm needs no pass of its own (the scale 1 / rms is applied after the sum; Zhang and Sennrich,
arXiv 1910.07467). torch.compile traces the kernel as it stands: the same one runs in every mode.

Needs Triton and a CUDA device: `stages.models.matrices` imports this file only there.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

PADDED_ROWS = 16  # what a tensor core takes
STRIP, WIDE_STRIP = 16, 32
WIDE_ABOVE = 8192  # outputs: enough strips for all multiprocessors
TILE = 256
NUM_STAGES = 4


def product(x: Tensor, weight: Tensor, norm: Tensor | None, epsilon: float, residual: Tensor | None, gated: bool) -> Tensor:
    """x [n, k] times weight [m, k]: [n, m], or [n, m / 2] = silu(first half) * second half where `gated`.

    `norm` [k] scales an RMSNorm of x before, `residual` [n, m] is added after. n <= 16, bf16 or fp16 (fp32 spills
    registers); sums are taken in fp32.
    """
    rows, inputs = x.shape
    outputs = weight.shape[0] // 2 if gated else weight.shape[0]
    strip = WIDE_STRIP if outputs > WIDE_ABOVE else STRIP
    result = x.new_empty((rows, outputs))
    decode_product[(-(-outputs // strip),)](
        *(x, weight, x if norm is None else norm, x if residual is None else residual, result, epsilon, rows),
        *(outputs, inputs, norm is not None, residual is not None, gated, strip, TILE, PADDED_ROWS),
        num_stages=NUM_STAGES,
    )
    return result


@triton.jit
def decode_product(
    x,
    weight,
    norm,
    residual,
    result,
    epsilon,
    rows,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    NORMED: tl.constexpr,
    ADDED: tl.constexpr,
    GATED: tl.constexpr,
    STRIP: tl.constexpr,
    TILE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """A strip of outputs for all rows, transposed: weights [STRIP, k] times x [k, ROWS]."""
    output = tl.program_id(0) * STRIP + tl.arange(0, STRIP)
    row = tl.arange(0, ROWS)
    asked = (output < OUTPUTS)[:, None]
    first_weights = weight + output.to(tl.int64)[:, None] * INPUTS
    total = tl.zeros((STRIP, ROWS), tl.float32)
    second = tl.zeros((STRIP, ROWS), tl.float32)
    squares = tl.zeros((ROWS,), tl.float32)
    for first in range(0, INPUTS, TILE):
        place = first + tl.arange(0, TILE)
        inside = place < INPUTS
        part = tl.load(x + row[None, :] * INPUTS + place[:, None], mask=inside[:, None] & (row < rows)[None, :], other=0.0)
        if NORMED:
            wide = part.to(tl.float32)
            squares += tl.sum(wide * wide, axis=0)
            part = (wide * tl.load(norm + place, mask=inside, other=0.0).to(tl.float32)[:, None]).to(part.dtype)
        there = asked & inside[None, :]
        tile = tl.load(first_weights + place[None, :], mask=there, other=0.0)
        total = tl.dot(tile, part, total, input_precision="ieee")
        if GATED:
            tile = tl.load(first_weights + OUTPUTS * INPUTS + place[None, :], mask=there, other=0.0)
            second = tl.dot(tile, part, second, input_precision="ieee")
    if NORMED:
        scale = tl.rsqrt(squares / INPUTS + epsilon)[None, :]
        total *= scale
        second *= scale
    if GATED:
        total = total * tl.sigmoid(total) * second
    places = row[None, :] * OUTPUTS + output[:, None]
    kept = asked & (row < rows)[None, :]
    if ADDED:
        total += tl.load(residual + places, mask=kept, other=0.0).to(tl.float32)
    tl.store(result + places, total.to(result.dtype.element_ty), mask=kept)
