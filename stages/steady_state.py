"""steady_state: step times of the cells of one factorial, alive together on one device, timed in rotations.

One cell runs at a time, in balanced order (E C R CR, then reversed, then rotated), so that every contrast is taken
inside a rotation and slow drift of the machine cancels. A process has an offset of its own: the unit of repetition is
a fresh set of processes. A/A twins (the same mode twice) show what the machine itself calls different.
With `finalists` one heat of all cells comes first, and only the fastest go on.
An interrupted measurement goes on from its finished sets, on the machine that they were measured on and on no other.
Reads config/factorial/<name>.yaml, trace/. Writes steady_state/<name>.json.

    python -m stages.steady_state --factorial inductor_manual
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial as bind
from typing import Any

from stages.core import paths
from stages.core.composed import Settings, typed_settings
from stages.core.currency import factorial_hashes
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.steps import Cell, Rotations, SteadyStateRecord
from stages.core.typed_yaml import load_yaml
from stages.instruments import hardware
from stages.instruments.conditions import Watch
from stages.workers.heat import NUM_ROTATIONS, after_heat, ranked
from stages.workers.measurement import Study, require_item, unavailable, worker, write_record
from stages.workers.process import Worker, WorkerFailed
from stages.workers.rotation import FILL_SHARE, Rotation, Set


def measure(study: Study, name: str, cells: list[Cell], settings: dict[str, Settings], finalists: int, partial: Partial) -> Rotations:
    """All sets of one factorial; `settings` has the cells that can run. With `finalists` (0: none) only the fastest of a heat."""
    options = next(iter(settings.values())).measure.steady_state
    entrants = {cell: one for cell, one in settings.items() if not cell.endswith("#2")}
    here = hardware.host()
    place = here.gpu_uuid or here.hostname  # another GPU has times of its own: cells of one factorial never come from two
    heat = partial.part(f"heat-{place}", Set, bind(_measure_heat, study, entrants)) if 0 < finalists < len(entrants) else None
    if heat:
        cells = after_heat(cells, ranked(heat), heat.failed, finalists)
        settings = {cell.cell: settings[cell.cell] for cell in cells if cell.status == "ok"}
    sets = [partial.part(f"set-{index}-{place}", Set, bind(_measure_set, study, settings, index)) for index in range(options.num_sets)]
    failed = {cell: reason for one in sets for cell, reason in one.failed.items()}
    sequences = [run for one in sets for run in one.sequences if run.cell not in failed]
    return Rotations(
        factorial=name,
        cells=[
            cell.model_copy(update={"status": "failed", "reason": failed[cell.cell]}) if cell.cell in failed else cell for cell in cells
        ],
        num_sets=options.num_sets,
        decode_context_tokens=study.plan.context_tokens // FILL_SHARE,
        sequence_steps=max((run.num_steps for run in sequences), default=0),
        sequence_steps_in_trace=study.plan.num_steps,
        blocks=[block for one in sets for block in one.blocks if block.cell not in failed],
        slowed=[block for one in sets for block in one.slowed if block.cell not in failed],
        sequences=sequences,
        settling=[one for found in sets for one in found.settling if one.cell not in failed],
        ceilings=next((one.ceilings for one in sets if one.ceilings), None),
        device=str(study.environment["device"]),
        stopped=[one.stopped for one in sets],
        timer=next((one.timer for one in sets if one.timer), None),
        heat=heat.sequences if heat else [],
    )


def _measure_heat(study: Study, settings: dict[str, Settings]) -> Set:
    with rotation(study, settings, 0) as found:
        return found.heat(NUM_ROTATIONS)


def _measure_set(study: Study, settings: dict[str, Settings], index: int) -> Set:
    with rotation(study, settings, index) as found:
        return found.run()


@contextmanager
def rotation(study: Study, settings: dict[str, Settings], index: int) -> Iterator[Rotation]:
    """A set of fresh processes, alive together until the end."""
    watch = Watch(str(study.environment["device"]))
    with ExitStack() as stack:
        workers = {cell: stack.enter_context(worker(study, one, f"steady-{cell}")) for cell, one in settings.items()}
        yield Rotation(study, settings, index, _ready(workers), watch)


def _ready(workers: dict[str, Worker]) -> tuple[dict[str, Worker], dict[str, str]]:
    """The workers that became ready, and why the others did not."""
    failed = {}
    for cell, one in workers.items():
        try:
            one.ready()
            one.timed = True
        except WorkerFailed as error:
            failed[cell] = error.reason
    return {cell: one for cell, one in workers.items() if cell not in failed}, failed


def cells_of(document: dict[str, Any]) -> tuple[list[Cell], dict[str, Settings]]:
    """The factorial's cells with what can be said before measuring, and the settings of those that can run."""
    wanted = list(document["modes"].items()) + [(f"{cell}#2", document["modes"][cell]) for cell in document["twins"]]
    cells, runnable = [], {}
    for cell, mode in wanted:
        resolved = document["cells"][cell.removesuffix("#2")]
        if resolved is None:
            cells.append(Cell(cell=cell, mode=mode, status="skipped", reason="params.yaml does not list this mode"))
            continue
        settings = typed_settings(resolved, f"factorial {document['name']}, cell {cell}")
        if cell.endswith("#2") and not settings.measure.steady_state.twins:
            continue
        why_not = unavailable(settings)
        cells.append(Cell(cell=cell, mode=mode, status="unavailable" if why_not else "ok", reason=why_not))
        if not why_not:
            runnable[cell] = settings
    return cells, runnable


def main() -> None:
    """Measure one factorial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factorial", required=True)
    folder = paths.latest() / "config" / "factorial"
    name = require_item(parser.parse_args().factorial, "factorial", folder)
    document = load_yaml(folder / f"{name}.yaml")
    study = Study(paths.latest())
    cells, runnable = cells_of(document)
    hashes = factorial_hashes(document, study.plan, study.environment)
    why_not = "" if runnable else "; ".join(f"{cell.cell}: {cell.reason}" for cell in cells)
    measured = bind(measure, study, name, cells, runnable, int(document.get("finalists", 0)))
    write_record(study, "steady_state", name, SteadyStateRecord, hashes, measured, why_not)


if __name__ == "__main__":
    run_command(main)
