"""What every measuring stage shares: read its configuration, hold the device, run workers, write one record.

A mode that breaks is a record (`failed`, with what happened and the last lines), and so is one that cannot run here
(`unavailable`); the stage's exit status stays 0. Bad input is a UserError and leaves the old record alone.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from stages.core import atomic, digest, paths, progress
from stages.core.build import build
from stages.core.composed import Settings, read_settings
from stages.core.currency import mode_hashes
from stages.core.errors import UserError, finishing
from stages.core.partial import Partial
from stages.core.records import base
from stages.core.records.base import Hashes
from stages.core.records.plan import Plan
from stages.core.settings import read_params
from stages.core.stage_names import MODE_STAGES
from stages.core.timestamps import now
from stages.instruments import assembler, hardware
from stages.workers.device_lock import device_lock, item_lock
from stages.workers.process import Worker, WorkerFailed

DataType = TypeVar("DataType", bound=base.Document)


@dataclass
class Study:
    """The files that a measuring stage reads, besides its own composed configuration."""

    folder: Path

    @cached_property
    def environment(self) -> dict[str, Any]:
        """environment.json."""
        return base.read_environment(self.folder)

    @cached_property
    def plan(self) -> Plan:
        """trace/plan.json."""
        return base.read(self.folder / "trace" / "plan.json", Plan)

    @cached_property
    def requests(self) -> list[dict[str, Any]]:
        """trace/requests.json, as documents."""
        return list(base.read_json(self.folder / "trace" / "requests.json"))

    def settings(self, mode: str) -> Settings:
        """config/<mode>.yaml."""
        return read_settings(self.folder / "config" / f"{mode}.yaml")

    def on_device(self) -> AbstractContextManager[None]:
        """Hold the lock of the study's GPU, or that of measuring on the CPU here. Raises UserError when another process holds it."""
        return device_lock(hardware.host().gpu_uuid if self.environment["device"] == "cuda" else None)


def cache_folder(study: Study, settings: Settings) -> Path:
    """Where one mode's compile caches live: the same for every stage, another for whatever decides the kernels."""
    environment = {key: study.environment.get(key) for key in ("device", "gpu", "torch", "torch_cuda", "triton", "ptxas")}
    launch = asdict(settings.launch)
    key = digest.of_document(
        [settings.model, settings.mode, settings.precision, environment, launch, study.plan.capture_sizes, study.plan.prompt_sizes]
    )
    return paths.build() / "caches" / f"{settings.mode['name']}-{key}"


def worker(
    study: Study,
    settings: Settings,
    label: str,
    cache: Path | None = None,
    proof: bool = False,
    artifact: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Worker:
    """Spawn a worker for one mode on its own compile caches, with every remote cache off.

    `variables`: further environment variables.
    """
    folder = cache or cache_folder(study, settings)
    order = {
        "label": f"{label}-{settings.mode['name']}",
        "settings": asdict(settings),
        "plan": study.plan.model_dump(mode="json"),
        "proof": proof,
        "artifact": str(artifact) if artifact else None,
    }
    threads = str(settings.launch.num_threads)
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "PYTHONHASHSEED": "0",
        **assembler.variables(),
        **(variables or {}),
    }
    return Worker(order, environment, settings.launch.request_timeout_s)


def unavailable(settings: Settings) -> str:
    """Why the mode cannot run on this device, or an empty string."""
    return str(build(settings.mode, "mode").unavailable(settings.device))


def mode_command(
    stage: str, description: str | None, record_type: type[Any], measure: Callable[[Study, Settings, Partial], DataType]
) -> None:
    """The command line of a stage that measures one mode: `--mode M`. Writes `<stage>/<mode>.json`. Raises UserError."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", required=True)
    mode = require_item(parser.parse_args().mode, "mode", paths.latest() / "config")
    study = Study(paths.latest())
    settings = study.settings(mode)
    hashes = mode_hashes(stage, settings, study.plan, study.environment)
    why_not = unavailable(settings)
    write_record(study, stage, mode, record_type, hashes, lambda partial: measure(study, settings, partial), why_not)


def parts_of(stage: str, item: str, hashes: Hashes) -> Partial:
    """The finished parts of a record that is not written yet."""
    return Partial(digest.of_document([stage, item, hashes.model_dump()]))


def write_record(
    study: Study,
    stage: str,
    item: str,
    record_type: type[Any],
    hashes: Hashes,
    measure: Callable[[Partial], DataType],
    why_not: str = "",
) -> None:
    """Run `measure` under the locks and write its record: ok, failed or unavailable. Raises OSError first where it could not."""
    file = study.folder / stage / f"{item}.json"
    atomic.check_writable(file)
    progress.announce(stage, item, planned_items())
    began_s, started_at = time.monotonic(), now()
    partial = parts_of(stage, item, hashes)
    data, status, reason, log_tail = None, "unavailable", why_not, list[str]()
    if not why_not:
        with item_lock(stage, item), study.on_device():
            data, status, reason, log_tail = _attempt(lambda: measure(partial))
    record = record_type(
        stage=stage,
        item=item,
        status=status,
        reason=reason,
        log_tail=log_tail,
        started_at=started_at,
        ended_at=now(),
        command=shlex.join(["python", "-m", f"stages.{stage}", *sys.argv[1:]]),
        hashes=hashes,
        host=hardware.host(),
        data=data,
    )
    with finishing(progress.say):  # DVC would measure anew what it does not see end well
        base.write(file, record)
        partial.clear()
        progress.finished(stage, item, time.monotonic() - began_s, f"{status} ({reason})" if reason else status)


def _attempt(measure: Callable[[], DataType]) -> tuple[DataType | None, str, str, list[str]]:
    try:
        return measure(), "ok", "", []
    except WorkerFailed as error:
        return None, "failed", error.reason, error.log_tail


def planned_items() -> list[str]:
    """Every `stage@item` that measures in this study, in pipeline order."""
    params = read_params()
    per_mode = [f"{stage}@{mode}" for stage in MODE_STAGES for mode in params.modes]
    return per_mode + [f"steady_state@{factorial}" for factorial in params.factorials]


def require_item(name: str, kind: str, folder: Path) -> str:
    """The name, if it was composed. Raises UserError with the names that were."""
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in known:
        raise UserError(
            f"--{kind}", "must be one that params.yaml names", name, f"Composed: {', '.join(known) or 'nothing yet; run dvc repro'}."
        )
    return name
