"""What counting costs: python -m benchmarks.ledger [--device cuda] [--modes cuda_graph cudagraph_trees] [--batches 1 64]

A service without instruments and one with the ledger (class-level counters, compiled calls, compiler log) in one process,
compiled apart, take turns in blocks of synchronised steps; so does, for modes that replay, the one counter that timed
processes carry. A difference is the median over rounds of block median minus block median without, in us a step, with
quartiles. `account` is what the ledger does after a step, timed alone. The model is `tiny`: the cost does not depend on
it, and its steps are short enough to show it. Prints a table; writes build/benchmarks/ledger.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from types import FunctionType
from typing import Any

import torch

from benchmarks.prepared import conf_node, traceless_plan
from stages.core import paths
from stages.core.atomic import write_json
from stages.core.build import build
from stages.core.errors import UserError, run_command
from stages.instruments.clocks import wall_us
from stages.instruments.compiler_log import CompilerLog
from stages.instruments.path_counters import PathCounters
from stages.instruments.replay_counter import ReplayCounter
from stages.instruments.static_inputs import declare_static
from stages.workers.service import Service
from stages.workers.starting import CALLS_BEFORE_CAPTURE
from stages.workers.step_ledger import StepLedger

MODES = {"cpu": ["eager", "dynamo", "compile"], "cuda": ["eager", "dynamo", "cuda_graph", "cudagraph_trees"]}
CONTEXT_TOKENS = 16


@dataclass
class Instruments:
    """The ledger's, which can be put in and taken out."""

    counters: PathCounters
    log: CompilerLog

    def install(self) -> None:
        """Both, counters first: they import what the log hears."""
        self.counters.install()
        self.log.install()

    def remove(self) -> None:
        """Both."""
        self.log.remove()
        self.counters.remove()


def main() -> None:
    """Measure mode after mode, print, write."""
    chosen = _arguments()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    rows = [row for mode in chosen.modes for row in measure(mode, chosen)]
    write_json(chosen.out, {"device": chosen.device, "torch": torch.__version__, "rows": rows})
    sys.stdout.write("\n".join(table(rows)) + "\n")


def _arguments() -> argparse.Namespace:
    """Modes that exist, and at least what quartiles need. Raises UserError for others, before anything is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--modes", nargs="+")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 64])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--out", type=Path, default=paths.build() / "benchmarks" / "ledger.json")
    chosen = parser.parse_args()
    chosen.modes = chosen.modes or MODES[chosen.device]
    for mode in chosen.modes:
        conf_node("mode", mode)
    for flag, least, given in (("--rounds", 2, chosen.rounds), ("--calls", 1, chosen.calls), ("--batches", 1, min(chosen.batches))):
        if given < least:
            raise UserError(flag, f"must be {least} or more", given, "Give a larger number.")
    return chosen


def measure(mode: str, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a batch size: us a step without anything, and what each instrument adds."""
    instruments = Instruments(PathCounters(), CompilerLog())
    instruments.install()
    counted = ready(mode, chosen, own_code=True)
    instruments.remove()
    plain = ready(mode, chosen)
    for batch in sorted(chosen.batches):
        shape = f"decode/{batch}"
        step = {"plain": lambda shape=shape: plain.run(shape), "ledger": lambda shape=shape: counted.run(shape)}
        installed = {"plain": None, "ledger": instruments}
        if plain.mode.replay != "none":
            step["counter"], installed["counter"] = step["plain"], ReplayCounter()
        blocks = alternate(step, installed, plain.synchronize, chosen)
        added = {
            name: [one - other for one, other in zip(blocks[name], blocks["plain"], strict=True)] for name in blocks if name != "plain"
        }
        yield {
            "mode": mode,
            "batch": batch,
            "plain_us": median(blocks["plain"]),
            **{f"{name}_us": quantiles(values, n=4) for name, values in added.items()},
            "account_us": account_us(counted, instruments, shape, chosen.calls),
            "num_compiled_calls": instruments.counters.counts["compiled_call"],
            "num_replays": instruments.counters.counts["replay"],
        }


def ready(mode: str, chosen: argparse.Namespace, own_code: bool = False) -> Service:
    """A service of the tiny model whose decode shapes are warmed up and, where the mode captures, captured."""
    node = conf_node("model", "tiny") | {"max_batch": max(chosen.batches), "capture_sizes": sorted(chosen.batches)}
    model, built = build(node, "model"), build(conf_node("mode", mode), "mode")
    module = model.load(chosen.device, "fp32")
    if own_code:  # Dynamo shares what it compiled between wrappers of the same code
        module.__class__ = type(module.__class__.__name__, (module.__class__,), {"decode": copied(type(module).decode)})
    service = Service(module, model, built, traceless_plan(model), chosen.device, "fp32")
    if built.transform != "none":
        declare_static(service.static_tensors())
    service.fill(CONTEXT_TOKENS, torch.Generator().manual_seed(0))
    for shape in (shape for shape in service.shapes() if shape.startswith("decode")):
        for _ in range(CALLS_BEFORE_CAPTURE):
            service.run(shape)
        service.synchronize()
        if built.replay == "manual":
            service.hold(shape)
        service.run(shape)
    return service


def alternate(
    step: dict[str, Callable[[], Any]], installed: dict[str, Any], synchronize: Callable[[], None], chosen: argparse.Namespace
) -> dict[str, list[float]]:
    """Median us of a synchronised step, a number a round and variant; the order turns from round to round."""
    blocks: dict[str, list[float]] = {name: [] for name in step}
    for index in range(chosen.rounds + 1):
        for name in sorted(step, reverse=index % 2 == 1):
            instrument = installed[name]
            if instrument:
                instrument.install()
            times = [wall_us(step[name], synchronize) for _ in range(chosen.calls)]
            if instrument:
                instrument.remove()
            if index:  # the first round warms up
                blocks[name].append(median(times))
    return blocks


def account_us(service: Service, instruments: Instruments, shape: str, num_calls: int) -> float:
    """Mean us of the ledger's own line of account after a step."""
    instruments.install()
    ledger = StepLedger(instruments.counters, instruments.log, service.mode.replay, num_calls)
    size = int(shape.rpartition("/")[2])
    spent_ns = 0
    for _ in range(num_calls):
        service.run(shape)
        began = time.perf_counter_ns()
        ledger.add("decode", size, size, 0.0)
        spent_ns += time.perf_counter_ns() - began
    service.synchronize()
    instruments.remove()
    return spent_ns / 1e3 / num_calls


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One line a mode and batch; quartiles in brackets."""
    yield f"{'mode':20} {'batch':>5} {'step us':>9}  {'one counter adds, us':24} {'ledger adds, us':24} {'account us':>10}"
    for row in rows:
        added = " ".join(f"{_quartiles(row.get(f'{name}_us')):24}" for name in ("counter", "ledger"))
        yield f"{row['mode']:20} {row['batch']:>5} {row['plain_us']:>9.1f}  {added} {row['account_us']:>10.1f}"


def copied(function: Any) -> FunctionType:
    """The same function with code of its own."""
    code = function.__code__.replace(co_name=f"{function.__name__}_counted")
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def _quartiles(values: list[float] | None) -> str:
    return f"{values[1]:.1f} ({values[0]:.1f} to {values[2]:.1f})" if values else "-"


if __name__ == "__main__":
    run_command(main)
