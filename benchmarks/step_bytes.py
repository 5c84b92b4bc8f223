"""The bytes that a decode step counts for itself, against what a profiler's counters saw the memory move.

Under Nsight Compute, on a GPU:

    ncu --profile-from-start off --csv --page raw --metrics dram__bytes_read.sum,dram__bytes_write.sum \
        --log-file build/step_bytes.csv python -m benchmarks.step_bytes run --batch 1
    python -m benchmarks.step_bytes read build/step_bytes.csv --batch 1

`run` makes one eager decode step inside the profiled range; `read` adds the counters of its kernels up.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.decoder_cell import ready_service
from benchmarks.prepared import conf_node
from stages.core.build import build
from stages.core.errors import UserError, run_command

UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
COUNTERS = ("dram__bytes_read.sum", "dram__bytes_write.sum")


def main() -> int:
    """One step, or the sums."""
    chosen = _arguments()
    if chosen.command == "run":
        run_step(chosen)
    else:
        counted = build(order(chosen)["model"], "model").step_bytes(chosen.batch, chosen.context, chosen.precision)
        read, written = counters(chosen.csv)
        sys.stdout.write(
            f"batch {chosen.batch}, {chosen.context} tokens a sequence: counted {counted / 1e6:.1f} MB; "
            f"read {read / 1e6:.1f} MB ({read / counted:.3f} of it), written {written / 1e6:.1f} MB\n"
        )
    return 0


def run_step(chosen: argparse.Namespace) -> None:
    """A warm step outside, one inside the profiled range."""
    torch.set_grad_enabled(False)
    service = ready_service(order(chosen))
    service.fill(chosen.context, torch.Generator().manual_seed(0))
    service.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    service.decode(chosen.batch)
    service.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def counters(file: Path) -> tuple[float, float]:
    """Bytes read and written, over all kernels of the file. Raises UserError where it holds none."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    units, *kernels = list(csv.DictReader(lines)) or [{}]
    if not kernels or not set(COUNTERS) <= units.keys():
        raise UserError(str(file), "must hold the counters of at least one kernel", "none", "Run ncu as this file's head says.")
    read, written = (sum(float(kernel[name].replace(",", "")) * UNITS[units[name]] for kernel in kernels) for name in COUNTERS)
    return read, written


def order(chosen: argparse.Namespace) -> dict[str, Any]:
    """What `benchmarks.decoder_cell` takes, for eager alone."""
    sizes = {"max_batch": chosen.batch, "capture_sizes": [chosen.batch]}
    common = {"device": "cuda", "precision": chosen.precision, "batches": [chosen.batch], "prompt_tokens": chosen.context}
    model = conf_node("model", chosen.model) | sizes | {"attention": chosen.attention}
    return {"model": model, "mode": conf_node("mode", "eager"), **common}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_bytes", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "read"])
    parser.add_argument("csv", type=Path, nargs="?")
    parser.add_argument("--model", default="llama_1b")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--attention", default="split_kv")
    chosen = parser.parse_args()
    if chosen.command == "read" and (chosen.csv is None or not chosen.csv.is_file()):
        raise UserError("read FILE", "must be a file that ncu wrote", chosen.csv, "Run ncu as this file's head says.")
    return chosen


if __name__ == "__main__":
    run_command(main)
