"""The tables that `benchmarks.decoder` prints: steps, kernels of the best cell, peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ROWS = 12


def report(result: dict[str, Any], batches: list[int]) -> Iterator[str]:
    """Lines of the tables: steps, kernels of the best cell, peers."""
    steps = {name: cell["steps"] for name, cell in result["cells"].items() if "steps" in cell}
    yield from _steps_table(steps, batches)
    for name, cell in {**result["cells"], **result["peers"]}.items():
        if "error" in cell:
            yield f"{name}: not measured: {cell['error'].splitlines()[-1]}"
    for batch in map(str, batches):
        if steps:
            best = min(steps, key=lambda name: steps[name][batch]["pipelined_us"])
            yield from _kernel_table(best, batch, result["cells"][best])
    for name, peer in result["peers"].items():
        if "token_us" in peer:
            yield f"{name} {peer['version']}, us a token: " + ", ".join(f"batch {batch} {us:.0f}" for batch, us in peer["token_us"].items())


def _steps_table(steps: dict[str, Any], batches: list[int]) -> Iterator[str]:
    columns = "".join(f" {name:>9}" for name in ("wall us", "device us", "token us", "floor us"))
    yield f"{'mode attention/norms':44} {'batch':>5} {'pipelined us':>12}{columns} {'ratio':>6}"
    for name, by_batch in steps.items():
        for batch in map(str, batches):
            times = by_batch[batch]
            shown = "".join(f" {_number(times[key]):>9}" for key in ("wall_us", "device_us", "token_us", "floor_us"))
            void = "  VOID: " + times["voided"][0] if times["voided"] else ""
            yield f"{name:44} {batch:>5} {_number(times['pipelined_us']):>12}{shown} {_number(times['ratio'], 2):>6}{void}"


def _kernel_table(name: str, batch: str, cell: dict[str, Any]) -> Iterator[str]:
    table = cell["kernels"].get(batch)
    if not table:
        return
    bandwidth = (cell["ceilings"] or {}).get("bandwidth_bytes_per_s")
    yield f"\n{name}, batch {batch}: kernels of a step"
    for group, row in sorted(table["groups"].items(), key=lambda item: -item[1]["time_us"]):
        share = f"{row['bytes'] / 1e6:.0f} MB, {row['bytes_per_s'] / bandwidth:.0%} of bandwidth" if row["bytes"] and bandwidth else ""
        yield f"{row['time_us']:9.1f} us {row['count']:6.1f} x  {group:24} {share}"
    for row in table["kernels"][:ROWS]:
        yield f"{row['time_us']:9.1f} us {row['count']:6.1f} x  {row['name'][:100]}"


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
