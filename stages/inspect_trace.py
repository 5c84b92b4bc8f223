"""Command `inspect_trace`: show a trace and what is planned from it, before anything is measured.

Reads   a composed configuration (default: the study's config/eager.yaml); writes nothing but the table.
Example python -m stages.inspect_trace --config reports/latest/config/eager.yaml
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from stages.core.closed_output import print_rich, run_printing_command
from stages.core.paths import latest
from stages.core.records.plan import Plan
from stages.traces.composed import plan_of


def main() -> None:
    """Print the table. Raises UserError for a broken configuration or trace."""
    parser = argparse.ArgumentParser(prog="python -m stages.inspect_trace", description="Show a trace and its plan.")
    parser.add_argument("--config", type=Path, help="a composed file (default: config/eager.yaml of the latest study)")
    config = parser.parse_args().config or latest() / "config" / "eager.yaml"
    plan, _ = plan_of(config)
    print_rich(table_of(plan))


def table_of(plan: Plan) -> Table:
    """Two columns: what, and its value with the unit."""
    table = Table(title=f"trace {plan.trace}", show_header=False)
    for section in (_arrivals(plan), _lengths(plan), _shapes(plan), _steps(plan)):
        for name, value in section:
            table.add_row(name, value)
        table.add_section()
    return table


def _arrivals(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "requests", f"{plan.num_requests:,} over {plan.span_s:.4g} s"
    yield "arrival rate", f"{plan.recorded_rate_per_s:.4g} per s"
    yield "inter-arrival cv", f"{plan.statistics['inter_arrival_cv']:.3g}"


def _lengths(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "length factor", f"{plan.length_factor:.4g} (context {plan.context_tokens:,} tokens)"
    for prefix in ("raw", "scaled"):
        for quantity in ("prompt_tokens", "output_tokens"):
            quantiles = [plan.statistics[f"{prefix}_{quantity}_{name}"] for name in ("p50", "p95", "p99", "max")]
            yield f"{prefix} {quantity.replace('_', ' ')} p50/p95/p99/max", " / ".join(f"{value:,.0f}" for value in quantiles)


def _shapes(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "planned decode batches", ", ".join(map(str, plan.capture_sizes))
    yield "planned prompt sizes", ", ".join(map(str, plan.prompt_sizes))
    for phase in ("decode", "prefill"):
        yield f"{phase} padding waste", f"{plan.statistics[f'{phase}_padding_waste']:.1%}"


def _steps(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "steps", f"{plan.num_steps:,}, of which {plan.num_decode_steps:,} decode"
    yield "mean decode batch", f"{plan.statistics['mean_decode_batch']:.3g}"
    counts: Counter[tuple[str, int]] = Counter()
    for run in plan.runs:
        counts[run.phase, run.padded_size] += run.count
    for (phase, padded_size), count in sorted(counts.items()):
        yield f"steps {phase}/{padded_size}", f"{count:,}"


if __name__ == "__main__":
    run_printing_command(main)
