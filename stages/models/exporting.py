"""Write a decoder as a Llama-format folder: python -m stages.models.exporting --out FOLDER

config.json and model.safetensors in the layout of transformers' `LlamaForCausalLM`, so that other engines can be scored
on the same tasks. Our fused matrices are split back; the rotary halves are laid out as there already. Prompts are token ids:
there is no tokenizer (`stages.models.tasks`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from stages.core import atomic
from stages.core.errors import UserError, run_command
from stages.models.decoder import LlamaDecoder
from stages.models.dimensions import Dimensions
from stages.models.known_answer import DIMENSIONS, LONGEST_PROMPT, KnownAnswer
from stages.models.norms import EPSILON
from stages.models.tasks import END

CONTEXT_TOKENS = 256


def export(decoder: LlamaDecoder, size: Dimensions, context_tokens: int, folder: Path) -> None:
    """Write both files into `folder`, made where it does not exist. Raises UserError for a decoder with scaled rotary positions."""
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_json(folder / "config.json", llama_config(size, context_tokens))
    partial = folder / "model.safetensors.part"
    partial.write_bytes(save(llama_weights(decoder, size), metadata={"format": "pt"}))
    partial.replace(folder / "model.safetensors")


def llama_config(size: Dimensions, context_tokens: int) -> dict[str, Any]:
    """The keys of transformers' `LlamaConfig`. Raises UserError for scaled rotary positions."""
    if size.rope_scaling is not None:
        raise UserError("model.rope_scaling", "must be empty in an exported model", repr(size.rope_scaling), "Export known_answer.")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.hidden_size,
        "intermediate_size": size.ffn_size,
        "num_hidden_layers": size.num_layers,
        "num_attention_heads": size.num_heads,
        "num_key_value_heads": size.num_kv_heads,
        "head_dim": size.head_size,
        "vocab_size": size.vocab_size,
        "max_position_embeddings": context_tokens,
        "rms_norm_eps": EPSILON,
        "rope_theta": size.rope_theta,
        "tie_word_embeddings": size.tied,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": END,
        "torch_dtype": "float32",
    }


def llama_weights(decoder: LlamaDecoder, size: Dimensions) -> dict[str, torch.Tensor]:
    """Every weight under its name in `LlamaForCausalLM`, fused matrices split; a tied head is not repeated."""
    weights = {"model.embed_tokens.weight": decoder.embedding.weight, "model.norm.weight": decoder.norm.weight}
    if decoder.head is not None:
        weights["lm_head.weight"] = decoder.head.weight
    for index, block in enumerate(decoder.blocks):
        weights |= {f"model.layers.{index}.{name}.weight": value for name, value in _layer(block, size).items()}
    return {name: weight.detach().float().contiguous().cpu().clone() for name, weight in weights.items()}


def _layer(block: Any, size: Dimensions) -> dict[str, torch.Tensor]:
    kv_rows = size.num_kv_heads * size.head_size
    query, key, value = block.qkv.weight.split((size.num_heads * size.head_size, kv_rows, kv_rows))
    gate, up = block.gate_up.weight.chunk(2)
    return {
        "input_layernorm": block.attention_norm.weight,
        "self_attn.q_proj": query,
        "self_attn.k_proj": key,
        "self_attn.v_proj": value,
        "self_attn.o_proj": block.output.weight,
        "post_attention_layernorm": block.ffn_norm.weight,
        "mlp.gate_proj": gate,
        "mlp.up_proj": up,
        "mlp.down_proj": block.down.weight,
    }


def main() -> None:
    """Export `known_answer`."""
    parser = argparse.ArgumentParser(prog="python -m stages.models.exporting", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for config.json and model.safetensors")
    folder = parser.parse_args().out
    if folder.exists() and not folder.is_dir():
        raise UserError("--out", "must name a folder", str(folder), "Give another name.")
    model = KnownAnswer("known_answer", CONTEXT_TOKENS, max_batch=1, capture_sizes=[1], prompt_sizes=[LONGEST_PROMPT])
    export(model.load("cpu", "fp32"), DIMENSIONS, CONTEXT_TOKENS, folder)
    sys.stdout.write(f"wrote {folder}: config.json, model.safetensors\n")


if __name__ == "__main__":
    run_command(main)
