"""A kernel's name as the first screen shows it."""

from __future__ import annotations

import pytest

from stages.views.kernels import LONGEST, family


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("decode_attention_split", "split-KV over the filled part"),
        ("decode_attention_combine", "split-KV over the filled part"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "cuDNN fused attention"),
        ("void pytorch_flash::flash_fwd_splitkv_kernel<Flash>", "FlashAttention"),
        ("my_attention", "my_attention"),
    ],
)
def test_a_kernel_is_shown_by_its_family(name: str, shown: str) -> None:
    assert family(name) == shown


def test_an_unknown_long_name_is_cut() -> None:
    assert family("x" * 100) == "x" * (LONGEST - 1) + "…"
