"""Every conf/model file builds; a wrong one is refused with the key, the rule and the value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from stages.core.build import build
from stages.core.errors import UserError
from stages.core.protocols import Model

FOLDER = Path(__file__).parents[2] / "conf" / "model"
BUILT_IN = ["known_answer", "llama_1b", "tiny"]


def node(name: str, **changes: Any) -> dict[str, Any]:
    return {**yaml.safe_load((FOLDER / f"{name}.yaml").read_text()), **changes}


def built(name: str, **changes: Any) -> Model:
    model: Model = build(node(name, **changes), "model")
    return model


@pytest.mark.parametrize("name", BUILT_IN)
def test_configuration_builds_under_its_file_name(name: str) -> None:
    assert built(name).name == name


def test_building_models_imports_no_torch() -> None:
    code = (
        "import json, sys; from stages.core.build import build\n"
        "for node in json.loads(sys.argv[1]): build(node, 'model').step_bytes(1, 1, 'bf16')\n"
        "assert 'torch' not in sys.modules"
    )
    nodes = json.dumps([node(name) for name in BUILT_IN])
    done = subprocess.run([sys.executable, "-c", code, nodes], cwd=FOLDER.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_headz": 2}, "model.num_headz"),
        ({"num_heads": "two"}, "model.num_heads"),
        ({"num_heads": 3}, r"model\.head_size: num_heads \* head_size must equal hidden_size"),
        ({"num_heads": 4, "head_size": 16, "num_kv_heads": 3}, r"model\.num_kv_heads: must divide num_heads; got '?4 and 3"),
        ({"hidden_size": 63, "num_heads": 3, "head_size": 21}, "must be even"),
        ({"num_layers": 0}, r"model\.num_layers: must be positive; got 0"),
        ({"rope_theta": float("nan")}, r"model\.rope_theta: must be positive"),
        ({"capture_sizes": [2, 1]}, "ascending positive sizes"),
        ({"capture_sizes": []}, "ascending positive sizes"),
        ({"capture_sizes": [0, 2]}, "ascending positive sizes"),
        ({"capture_sizes": [1]}, "must end with max_batch"),
        ({"prompt_sizes": [32, 32]}, "ascending positive sizes"),
        ({"prompt_sizes": [65]}, "must fit context_tokens"),
        ({"max_batch": 0}, r"model\.max_batch: must be 1 or more"),
        ({"seed": -1}, r"model\.seed"),
        ({"rope_scaling": {"factor": 8.0}}, r"model\.rope_scaling"),
        ({"rope_scaling": {"factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 4, "original_context": 64}}, "low_freq_factor < high"),
    ],
    ids=str,
)
def test_a_wrong_key_is_a_user_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        built("tiny", **changes)


def test_a_missing_key_is_named() -> None:
    incomplete = node("tiny")
    del incomplete["vocab_size"]
    with pytest.raises(UserError, match=r"model\.vocab_size: must be given"):
        build(incomplete, "model")


def test_an_unknown_precision_is_a_user_error() -> None:
    with pytest.raises(UserError, match="precision: must be one of fp64, fp32, bf16, fp16; got int8"):
        built("tiny").load("cpu", "int8")


def test_seeded_weights_repeat_and_differ_by_seed() -> None:
    first, again, other = (built("tiny", seed=seed).load("cpu", "fp32") for seed in (5, 5, 6))
    state = {name: weight.clone() for name, weight in first.state_dict().items()}
    assert all(torch.equal(weight, state[name]) for name, weight in again.state_dict().items())
    assert not torch.equal(other.state_dict()["embedding.weight"], state["embedding.weight"])
    assert not any(weight.requires_grad for weight in first.parameters())
    assert not first.training
    assert state["embedding.weight"].std().item() == pytest.approx(0.02, rel=0.05)


def test_the_cache_is_one_zeroed_tensor_a_layer() -> None:
    model = built("tiny", num_layers=3)
    caches = [tensor for part in model.new_cache("cpu", "bf16") for tensor in part]
    assert [tuple(cache.shape) for cache in caches] == [(2, 1, 64, 32)] * 6
    assert all(cache.dtype == torch.bfloat16 and not cache.any() for cache in caches)
    assert len({cache.untyped_storage().data_ptr() for cache in caches}) == 6


@pytest.mark.parametrize("tied", [True, False])
def test_step_bytes_are_the_parameters_once_and_the_cache_read(tied: bool) -> None:
    model = built("tiny", num_layers=2, tied=tied)
    parameters = sum(weight.numel() for weight in model.load("cpu", "fp32").parameters())
    read = parameters if tied else parameters - 128 * 64  # rows of a separate embedding are looked up
    cached = sum(cache[:, :, :10].numel() for part in model.new_cache("cpu", "fp32") for cache in part)
    assert model.step_bytes(2, 10, "fp32") == 4 * (read + cached)
    assert model.step_bytes(2, 10, "bf16") == 2 * (read + cached)


def test_llama_1b_reads_the_bytes_that_are_published() -> None:
    model = built("llama_1b")
    assert model.step_bytes(1, 0, "bf16") == pytest.approx(2.472e9, rel=1e-3)
    assert model.step_bytes(1, 1, "bf16") - model.step_bytes(1, 0, "bf16") == 32 * 1024


def test_step_operations_equal_those_that_torch_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = built("tiny", num_layers=2)
    decoder, (keys, values) = model.load("cpu", "fp32"), model.new_cache("cpu", "fp32")
    tokens, positions = torch.zeros(2, 2, dtype=torch.int64)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        decoder.decode(tokens, positions, keys, values)
    linear = sum(count for operator, count in counter.get_flop_counts()["Global"].items() if "mm" in str(operator))
    assert model.step_operations(2, 0) == linear
    assert model.step_operations(2, 64) - linear == 2 * 2 * 2 * 2 * 2 * 64 * 32  # 2 rows, layers, heads, products, mult-add
