"""The stage that joins all records into an answer: contrasts, bottlenecks, lifetimes, verdict.

Measures nothing. Reads params.yaml, environment.json, config/, trace/plan.json and the records of the modes and
factorials that params.yaml names, and only those; a mode that failed or cannot run is part of the answer.
Writes attribution.json.

    python -m stages.attribution
"""

from __future__ import annotations

import argparse

from stages.analysis import answers, reading
from stages.analysis.floors import Ceilings, Work
from stages.core import build, digest, paths
from stages.core.errors import run_command
from stages.core.protocols import Model
from stages.core.records import base
from stages.core.records.answer import AttributionRecord
from stages.core.records.base import Hashes
from stages.core.settings import read_params
from stages.core.timestamps import now


def main() -> None:
    """Read the study, write attribution.json."""
    argparse.ArgumentParser(prog="python -m stages.attribution", description=__doc__.split("\n")[0] if __doc__ else None).parse_args()
    started_at = now()
    folder = paths.latest()
    records = reading.read_study(folder, read_params())
    record = AttributionRecord(
        stage="attribution",
        item="study",
        status="ok",
        started_at=started_at,
        ended_at=now(),
        command="python -m stages.attribution",
        hashes=_hashes(records),
        data=answers.answer(records, ceilings(records), work_of(records)),
    )
    base.write(folder / "attribution.json", record)


def ceilings(records: reading.StudyRecords) -> Ceilings | None:
    """The device's ceilings as steady_state measured them: the highest of all factorials. None on a CPU: no floor is stated."""
    found = [record.data.ceilings for record in records.steady_state.values() if record.data and record.data.ceilings]
    if not found:
        return None
    return Ceilings(
        max(one.bandwidth_bytes_per_s for one in found),
        max(one.operations_per_s for one in found),
        max(one.l2_bytes for one in found),
    )


def work_of(records: reading.StudyRecords) -> answers.WorkOf:
    """The least work of a decode step, as the study's model states it."""
    model: Model = build.build(records.configs[records.baseline]["model"], "model")
    precision = records.params.precision

    def work(batch: int, context_tokens: int) -> Work:
        return Work(model.step_bytes(batch, context_tokens, precision), model.step_operations(batch, context_tokens))

    return work


def _hashes(records: reading.StudyRecords) -> Hashes:
    return Hashes(
        config=digest.of_document(dict(records.configs)),
        environment=digest.of_document(dict(records.environment)),
        code=digest.of_code(["stages.attribution"]),
    )


if __name__ == "__main__":
    run_command(main)
