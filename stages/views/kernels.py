"""Names of device kernels as a reader can take them in; the full name stays in the model's table."""

from __future__ import annotations

_OURS = "decode_attention_"  # stages.models.split_kv
_FAMILIES = (
    ("cudnn", "cuDNN fused attention"),
    ("fmha_cutlass", "memory-efficient attention (CUTLASS)"),
    ("flash", "FlashAttention"),
    ("triton", "Triton"),
    ("cutlass", "CUTLASS"),
)
LONGEST = 32


def family(name: str) -> str:
    """What a kernel belongs to where its name is ours or longer than 32 characters; an unknown long name is cut."""
    if name.startswith(_OURS):
        return "split-KV over the filled part"
    if len(name) <= LONGEST:
        return name
    found = (words for mark, words in _FAMILIES if mark in name.lower())
    return next(found, f"{name[: LONGEST - 1]}…")
