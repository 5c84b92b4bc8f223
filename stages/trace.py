"""Stage `trace`: from request arrivals to the shapes and steps that every mode is measured on.

Mechanism: the trace's lengths are scaled to the model's context, a simulated scheduler serves the requests in
virtual time, and its steps are written as runs (phase, size, padded size, count). Nothing is timed.

Reads   config/eager.yaml (trace, model, measure.plan)
Writes  trace/plan.json (`Plan`), trace/requests.json (list of `Request`)
Example python -m stages.trace
"""

from __future__ import annotations

import argparse

from stages.core.atomic import write_json
from stages.core.errors import run_command
from stages.core.paths import latest
from stages.traces.composed import plan_of


def main() -> None:
    """Plan the study's trace. Raises UserError for a broken configuration or trace."""
    argparse.ArgumentParser(prog="python -m stages.trace", description="Plan shapes and steps from the trace.").parse_args()
    plan, requests = plan_of(latest() / "config" / "eager.yaml")
    write_json(latest() / "trace" / "plan.json", plan.model_dump(mode="json"))
    write_json(latest() / "trace" / "requests.json", [request.model_dump(mode="json", exclude_none=True) for request in requests])


if __name__ == "__main__":
    run_command(main)
