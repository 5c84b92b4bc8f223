# mypy: disable-error-code="import-not-found, import-untyped"
"""Whole tokens of other engines for `benchmarks.decoder`: same sizes, random weights, 128-token prompts, greedy.

A token's time is the difference between a long and a short generation over the difference of their lengths: prefill
and fixed costs cancel. Order (JSON) from stdin, result (JSON) to the file that the order names.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMPT_TOKENS, SHORT_TOKENS, LONG_TOKENS = 128, 32, 160
REPEATS = 2


def main() -> None:
    """Measure one peer, write."""
    order = json.load(sys.stdin)
    peers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "transformers": lambda order: transformers_tokens(order, "static"),
        "transformers_eager": lambda order: transformers_tokens(order, "dynamic"),
        "vllm": vllm_tokens,
    }
    Path(order["out"]).write_text(json.dumps(peers[order["peer"]](order)), encoding="utf-8")


def transformers_tokens(order: dict[str, Any], cache: str) -> dict[str, Any]:
    """`generate` of LlamaForCausalLM: `static` compiles by its own default on a GPU, `dynamic` runs eagerly."""
    import torch
    import transformers

    torch.manual_seed(0)
    with torch.device(order["device"]):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama_config(order["model"]))).to(_dtype(order)).eval()

    def generate(batch: int, num_tokens: int) -> None:
        prompt = torch.randint(order["model"]["vocab_size"], (batch, PROMPT_TOKENS), device=order["device"])
        lengths = {"max_new_tokens": num_tokens, "min_new_tokens": num_tokens}
        tokens = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, cache_implementation=cache, pad_token_id=0, **lengths
        )
        tokens[:, -1].tolist()

    return {"version": transformers.__version__, "token_us": {batch: token_us(generate, batch) for batch in order["batches"]}}


def vllm_tokens(order: dict[str, Any]) -> dict[str, Any]:
    """vLLM's own defaults (compiled, CUDA graphs) on dummy weights of the same sizes."""
    import vllm

    with tempfile.TemporaryDirectory() as folder:
        node = llama_config(order["model"]) | {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
        Path(folder, "config.json").write_text(json.dumps(node), encoding="utf-8")
        engine = vllm.LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            max_model_len=order["model"]["context_tokens"],
            max_num_seqs=order["batches"][-1],
            gpu_memory_utilization=0.4,
            enable_prefix_caching=False,
        )

        def generate(batch: int, num_tokens: int) -> None:
            prompts = [{"prompt_token_ids": [(7 * row + place) % 1000 for place in range(PROMPT_TOKENS)]} for row in range(batch)]
            sampling = vllm.SamplingParams(temperature=0, max_tokens=num_tokens, ignore_eos=True, detokenize=False)
            engine.generate(prompts, sampling, use_tqdm=False)

        return {"version": vllm.__version__, "token_us": {batch: token_us(generate, batch) for batch in order["batches"]}}


def token_us(generate: Callable[[int, int], None], batch: int) -> float:
    """Microseconds a step of `batch` sequences; the least difference over the repeats, after one of each length."""

    def seconds(num_tokens: int) -> float:
        began_s = time.perf_counter()
        generate(batch, num_tokens)
        return time.perf_counter() - began_s

    for num_tokens in (SHORT_TOKENS, LONG_TOKENS):
        generate(batch, num_tokens)
    differences = [seconds(LONG_TOKENS) - seconds(SHORT_TOKENS) for _ in range(REPEATS)]
    return min(differences) / (LONG_TOKENS - SHORT_TOKENS) * 1e6


def llama_config(model: dict[str, Any]) -> dict[str, Any]:
    """The keys that Llama's configuration has in these engines."""
    return {
        "hidden_size": model["hidden_size"],
        "num_hidden_layers": model["num_layers"],
        "num_attention_heads": model["num_heads"],
        "num_key_value_heads": model["num_kv_heads"],
        "head_dim": model["head_size"],
        "intermediate_size": model["ffn_size"],
        "vocab_size": model["vocab_size"],
        "tie_word_embeddings": model["tied"],
        "rope_theta": model["rope_theta"],
        "max_position_embeddings": model["context_tokens"],
    }


def _dtype(order: dict[str, Any]) -> Any:
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[order["precision"]]


if __name__ == "__main__":
    main()
