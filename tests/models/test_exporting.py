"""The exported folder holds the same model: a plain Llama, written here from its published definition, answers as ours does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from stages.core.errors import UserError
from stages.models.dimensions import RopeScaling
from stages.models.exporting import llama_config
from stages.models.known_answer import DIMENSIONS, KnownAnswer
from stages.models.training import collated, teacher_forced

ROOT = Path(__file__).resolve().parents[2]
MODEL = KnownAnswer("known_answer", context_tokens=256, max_batch=1, capture_sizes=[1], prompt_sizes=[64])


class PlainLlama:
    """Names and formulas of transformers' `modeling_llama.py`: separate projections, no cache, one sequence."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = load_file(folder / "model.safetensors")

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return x * scale * self.weights[name]

    def heads(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return (x @ self.weights[name].T).view(len(x), -1, self.config["head_dim"]).transpose(0, 1)

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        half = self.config["head_dim"] // 2
        frequencies = self.config["rope_theta"] ** -(torch.arange(half) / half)
        angles = torch.outer(torch.arange(x.shape[1]).float(), frequencies)
        cos, sin = angles.cos(), angles.sin()
        low, high = x[..., :half], x[..., half:]
        return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)

    def layer(self, x: torch.Tensor, name: str) -> torch.Tensor:
        seen = self.norm(x, f"{name}.input_layernorm.weight")
        query, key = (self.rotated(self.heads(seen, f"{name}.self_attn.{part}_proj.weight")) for part in "qk")
        value = self.heads(seen, f"{name}.self_attn.v_proj.weight")
        shared = self.config["num_attention_heads"] // self.config["num_key_value_heads"]
        key, value = key.repeat_interleave(shared, 0), value.repeat_interleave(shared, 0)
        scores = query @ key.transpose(1, 2) / self.config["head_dim"] ** 0.5
        scores += torch.full_like(scores, float("-inf")).triu(1)
        mixed = (scores.softmax(-1) @ value).transpose(0, 1).flatten(1)
        x = x + mixed @ self.weights[f"{name}.self_attn.o_proj.weight"].T
        seen = self.norm(x, f"{name}.post_attention_layernorm.weight")
        gate, up = (seen @ self.weights[f"{name}.mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        return x + (F.silu(gate) * up) @ self.weights[f"{name}.mlp.down_proj.weight"].T

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.weights["model.embed_tokens.weight"][tokens]
        for index in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"model.layers.{index}")
        head = "model.embed_tokens.weight" if self.config["tie_word_embeddings"] else "lm_head.weight"
        return self.norm(x, "model.norm.weight") @ self.weights[head].T


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "known-answer"
    command = [sys.executable, "-m", "stages.models.exporting", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return out


def test_plain_reference_has_the_decoders_logits(folder: Path) -> None:
    plain, decoder = PlainLlama(folder), MODEL.load("cpu", "fp32")
    for task in MODEL.tasks():
        inputs, _ = collated(task.examples(4, 5))
        with torch.no_grad():
            ours = teacher_forced(decoder, inputs)
        theirs = torch.stack([plain.logits(row) for row in inputs])
        torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-3)


def test_plain_reference_answers_the_tasks(folder: Path) -> None:
    plain = PlainLlama(folder)
    for task in MODEL.tasks():
        for prompt, answer in task.examples(20, 6):
            chosen = plain.logits(torch.tensor([*prompt, *answer[:-1]])).argmax(-1)[len(prompt) - 1 :]
            assert chosen.tolist() == answer


def test_folder_has_every_weight_once_under_llamas_names(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    assert len(weights) == 2 + 9 * DIMENSIONS.num_layers
    assert sum(weight.numel() for weight in weights.values()) == sum(p.numel() for p in MODEL.load("cpu", "fp32").parameters())
    assert weights["model.layers.1.self_attn.k_proj.weight"].shape == (DIMENSIONS.num_kv_heads * DIMENSIONS.head_size, 96)


def test_scaled_rotary_positions_are_refused() -> None:
    scaled = replace(DIMENSIONS, rope_scaling=RopeScaling(32.0, 1.0, 4.0, 8192))
    with pytest.raises(UserError, match="must be empty in an exported model"):
        llama_config(scaled, 256)


def test_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "stages.models.exporting", "--out", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "must name a folder" in done.stderr
