"""rotated_starts: the starts of all modes in rounds, the order of the modes rotated from round to round.

`warmup` measures one mode after the other, so that a slow drift of the machine falls on one mode. Run before it, this
command makes the same starts in rounds (a cold, a warm and an artifact start of each mode; the next round begins with the
next mode) and keeps them as parts of the records; `dvc repro warmup` then joins them and measures what is left.
Reads config/<mode>.yaml, trace/plan.json. Writes build/partial/.

    python -m stages.rotated_starts                    all modes of params.yaml
    python -m stages.rotated_starts eager compile      these alone (the others on another GPU)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from stages.core import paths, progress
from stages.core.currency import mode_hashes
from stages.core.errors import run_command
from stages.core.records.base import read
from stages.core.records.startup import WarmupRecord
from stages.core.settings import read_params
from stages.warmup import measure_round, num_rounds
from stages.workers.measurement import Study, parts_of, require_item, unavailable
from stages.workers.process import WorkerFailed


def order(modes: Sequence[str], num: int) -> Iterator[tuple[int, str]]:
    """(round, mode) of `num` rounds: each begins with the next mode."""
    for index in range(num):
        first = index % len(modes)
        yield from ((index, mode) for mode in (*modes[first:], *modes[:first]))


def measure_in_rounds(study: Study, modes: Sequence[str]) -> None:
    """Every start of these modes. A mode that breaks is left to its stage, which records it."""
    settings = {mode: study.settings(mode) for mode in modes}
    broken: set[str] = set()
    for index, mode in order(modes, max(map(num_rounds, settings.values()))):
        if mode in broken:
            continue
        progress.say(f"round {index + 1}: {mode}")
        try:
            partial = parts_of("warmup", mode, mode_hashes("warmup", settings[mode], study.plan, study.environment))
            measure_round(study, settings[mode], partial, index)
        except WorkerFailed as error:
            broken.add(mode)
            progress.say(f"{mode}: {error.reason}")


def pending(study: Study, modes: Sequence[str]) -> list[str]:
    """The modes that can run here and have no current record yet."""
    runnable = [mode for mode in modes if not unavailable(study.settings(mode))]
    return [mode for mode in runnable if not _is_current(study, mode)]


def _is_current(study: Study, mode: str) -> bool:
    file = study.folder / "warmup" / f"{mode}.json"
    present = mode_hashes("warmup", study.settings(mode), study.plan, study.environment)
    return file.is_file() and read(file, WarmupRecord).hashes == present


def main() -> None:
    """Measure the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", metavar="MODE", help="modes of params.yaml; none: all of them")
    given = parser.parse_args().modes or read_params().modes
    modes = [require_item(mode, "mode", paths.latest() / "config") for mode in given]
    study = Study(paths.latest())
    if left := pending(study, modes):
        with study.on_device():
            measure_in_rounds(study, left)


if __name__ == "__main__":
    run_command(main)
