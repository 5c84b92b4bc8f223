"""How far the built-in decoder is from the hardware's floor: python -m benchmarks.decoder [--quick] [--model NAME] ...

Every cell (a mode with one attention and one kind of norm) runs in a process of its own, one after the other: decode steps at each
batch size around `--context` tokens a sequence, and whole tokens (the host reads each) from 128 tokens on. The floor
is the bytes that the model counts over the bandwidth of a copy measured in the same process. Then the kernels of
the best cell, and peers in the same run: `transformers` (static cache, its default compilation) and vLLM, where
they can be imported. Prints tables; writes everything to build/benchmarks/decoder.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.decoder_tables import report
from benchmarks.prepared import conf_node
from stages.core import paths
from stages.core.atomic import write_json
from stages.core.errors import UserError, run_command
from stages.instruments import assembler
from stages.models.dimensions import ATTENTIONS, NORMS

MODES = ["eager", "cuda_graph", "compile", "compile_cuda_graph", "cudagraph_trees", "max_autotune_cuda_graph"]
VARIANTS, VARIANTS_MODES = ("sdpa/written_out", "split_kv/torch"), ("cuda_graph", "compile_cuda_graph")
QUICK_MODES = ["cuda_graph", "compile_cuda_graph"]
PEERS = ("transformers", "transformers_eager", "vllm")
CELL_LIMIT_S = 240
PROMPT_TOKENS, NUM_TOKENS = 128, 64
OPERATORS = [f"{attention}/{norms}" for attention in ATTENTIONS for norms in NORMS]
TUNED = ("split_kv",)
LEAST_SLOT_TOKENS = PROMPT_TOKENS + NUM_TOKENS + 2


def main() -> int:
    """Measure cell after cell, write after each, print. Status 1 when no cell could be measured."""
    chosen = _arguments()
    result: dict[str, Any] = {"settings": vars(chosen) | {"out": str(chosen.out)}, "cells": {}, "peers": {}}
    for mode, operators in [*itertools.product(chosen.modes, chosen.operators), *itertools.product(VARIANTS_MODES, chosen.variants)]:
        result["cells"][f"{mode} {operators}"] = run_cell(chosen, mode, operators)
        write_json(chosen.out, result)
    for peer in chosen.peers:
        result["peers"][peer] = _child("benchmarks.peers", _order(chosen, "sdpa/torch") | {"peer": peer}, chosen.out)
        write_json(chosen.out, result)
    sys.stdout.write("\n".join(report(result, chosen.batches)) + "\n")
    return 0 if any("steps" in cell for cell in result["cells"].values()) else 1


def run_cell(chosen: argparse.Namespace, mode: str, operators: str) -> dict[str, Any]:
    """The cell's result, or `error` with the last lines of its process."""
    return _child("benchmarks.decoder_cell", _order(chosen, operators) | {"mode": conf_node("mode", mode)}, chosen.out)


def _order(chosen: argparse.Namespace, operators: str) -> dict[str, Any]:
    keys = ("device", "precision", "batches", "inductor", "constants", "blocks")
    model = read_model(chosen) | dict(zip(("attention", "norms"), operators.split("/"), strict=True))
    tokens = {"context_tokens": chosen.context, "prompt_tokens": PROMPT_TOKENS, "num_tokens": NUM_TOKENS}
    return {"model": model, **tokens, **{key: getattr(chosen, key) for key in keys}}


def read_model(chosen: argparse.Namespace) -> dict[str, Any]:
    """The conf/model node for these batch sizes."""
    return {
        **conf_node("model", chosen.model),
        "max_batch": chosen.batches[-1],
        "capture_sizes": chosen.batches,
        "adapter_rank": chosen.adapter_rank,
    }


def _child(module: str, order: dict[str, Any], beside: Path) -> dict[str, Any]:
    """Run a module on an order; what it wrote, or `error`."""
    beside.parent.mkdir(parents=True, exist_ok=True)
    out = beside.with_suffix(".cell.json")
    out.unlink(missing_ok=True)
    began_s = time.perf_counter()
    environment = {**os.environ, **assembler.variables(), "TORCHINDUCTOR_CACHE_DIR": str(paths.build() / "benchmarks" / "inductor")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(order | {"out": str(out)}),
            cwd=paths.root(),
            env=environment,
            capture_output=True,
            text=True,
            timeout=CELL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {CELL_LIMIT_S} s"}
    if done.returncode or not out.is_file():
        return {"error": "\n".join(done.stderr.strip().splitlines()[-20:]) or f"exit status {done.returncode}"}
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    return document | {"process_s": time.perf_counter() - began_s}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"modes {', '.join(QUICK_MODES)}, no variants, no peers, one block")
    parser.add_argument("--model", default="llama_1b", help="a file in conf/model")
    parser.add_argument("--modes", nargs="+", default=None, help=f"files in conf/mode; default {' '.join(MODES)}")
    parser.add_argument(
        "--operators", nargs="+", choices=OPERATORS, default=["split_kv/written_out"], help="attention/norms, in every mode"
    )
    parser.add_argument(
        "--variants", nargs="*", choices=OPERATORS, default=None, help=f"more of them, in {', '.join(VARIANTS_MODES)} alone"
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--context", type=int, default=1024, help="tokens a sequence holds in a timed step")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--blocks", type=int, default=None, help="timed blocks a batch size (3; quick: 1)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=None)
    parser.add_argument("--inductor", nargs="*", default=[], metavar="KEY=VALUE", help="of torch._inductor.config, as JSON values")
    for module in TUNED:
        parser.add_argument(f"--{module}", nargs="*", default=[], metavar="NAME=VALUE", help=f"constants of stages.models.{module}")
    parser.add_argument("--adapter-rank", type=int, default=0, help="of a LoRA adapter on all matrices")
    parser.add_argument("--out", type=Path, default=paths.build() / "benchmarks" / "decoder.json")
    chosen = parser.parse_args()
    chosen.modes = chosen.modes or (QUICK_MODES if chosen.quick else MODES)
    chosen.blocks = (1 if chosen.quick else 3) if chosen.blocks is None else chosen.blocks
    whole = not chosen.quick and chosen.device == "cuda"
    chosen.peers = list(PEERS if whole else ()) if chosen.peers is None else chosen.peers
    chosen.variants = list(VARIANTS if whole else ()) if chosen.variants is None else chosen.variants
    chosen.batches = sorted(set(chosen.batches))
    chosen.inductor = _pairs("--inductor", chosen.inductor)
    chosen.constants = {module: _pairs(f"--{module}", vars(chosen).pop(module)) for module in TUNED}
    _check(chosen)
    return chosen


def _check(chosen: argparse.Namespace) -> None:
    for mode in chosen.modes:
        conf_node("mode", mode)
    if chosen.batches[0] < 1 or chosen.blocks < 1:
        raise UserError("--batches, --blocks", "must be 1 or more", [chosen.batches, chosen.blocks], "Give positive numbers.")
    slot = read_model(chosen)["context_tokens"]
    if slot < LEAST_SLOT_TOKENS:
        raise UserError("--model", f"must have slots of {LEAST_SLOT_TOKENS} tokens or more", f"{chosen.model} has {slot}", "Take another.")
    if not 64 <= chosen.context <= slot:
        raise UserError("--context", f"must be from 64 to the model's slot of {slot} tokens", chosen.context, "Change it.")


def _pairs(flag: str, texts: list[str]) -> dict[str, Any]:
    try:
        return {key: json.loads(value) for key, _, value in (text.partition("=") for text in texts)}
    except json.JSONDecodeError as error:
        raise UserError(flag, "must be KEY=VALUE with a JSON value", " ".join(texts), "For example KEY=true.") from error


if __name__ == "__main__":
    run_command(main)
