"""artifact: carry a mode's compile cache to another machine, and prove there whether it hits.

    python -m stages.artifact pack compile compile.zip     after this mode's warmup
    python -m stages.artifact start compile compile.zip    there: a fresh worker, empty caches, this artifact

`start` prints what became of it as JSON: hit or miss, which factors changed since it was packed, and what the start
cost beside a cold and a warm one. A miss compiles again, so nothing stale is used. Exit status: 0 hit, 1 miss, 2 neither.
Reading an artifact runs code from it (torch keeps pickles): take it only from where you would take a program.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from stages.core import paths
from stages.core.closed_output import run_printing_command
from stages.core.composed import Settings
from stages.core.errors import UserError
from stages.core.records.artifact import Manifest, Tried
from stages.core.records.base import read
from stages.core.records.startup import WarmupRecord
from stages.warmup import as_start
from stages.workers.measurement import Study, cache_folder, require_item, unavailable, worker
from stages.workers.process import WorkerFailed

_CONTENT, _MANIFEST = "artifact.bin", "manifest.json"
_LARGEST_BYTES = 8 << 30
_ENVIRONMENT = ("device", "gpu", "driver", "torch", "torch_cuda", "triton", "ptxas", "cpu", "compiler", "python")


def factors(study: Study, settings: Settings) -> dict[str, Any]:
    """Whatever decides the cached kernels, flat, so that a change has a name."""
    found = {name: study.environment.get(name) for name in _ENVIRONMENT}
    found |= {"precision": settings.precision, "num_threads": settings.launch.num_threads, "code": settings.code.get("warmup")}
    for part in ("model", "mode"):
        found |= {f"{part}.{key}": value for key, value in asdict(settings)[part].items()}
    return found | {"capture_sizes": study.plan.capture_sizes, "prompt_sizes": study.plan.prompt_sizes}


def pack(study: Study, mode: str, file: Path) -> Manifest:
    """Write the artifact of a mode's last cold start with its manifest. Raises UserError when there is none."""
    settings = study.settings(mode)
    source = cache_folder(study, settings) / _CONTENT
    if not source.is_file():
        remedy = f"Run python -m stages.warmup --mode {mode} first; only a mode with kernels of the compiler leaves one."
        raise UserError(str(source), "must exist", "no such file", remedy)
    content = source.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    manifest = Manifest(mode=mode, factors=factors(study, settings), sha256=digest, num_bytes=len(content), **_ready(study, mode))
    with tempfile.TemporaryDirectory(dir=file.resolve().parent, prefix=".pack-") as folder:
        beside = Path(folder) / file.name
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, manifest.model_dump_json(indent=1))
            archive.writestr(_CONTENT, content)
        beside.replace(file)
    return manifest


def unpack(file: Path) -> tuple[Manifest, bytes]:
    """Manifest and content of a packed artifact. Raises UserError for any other file."""
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo(_CONTENT).file_size > _LARGEST_BYTES:
                raise UserError(str(file), "must hold at most 8 GiB", archive.getinfo(_CONTENT).file_size, "Pack it again.")
            manifest, content = Manifest.model_validate_json(archive.read(_MANIFEST)), archive.read(_CONTENT)
    except (OSError, KeyError, zipfile.BadZipFile, ValidationError) as error:
        raise UserError(str(file), "must be a packed artifact", str(error), "Make one with python -m stages.artifact pack.") from error
    if hashlib.sha256(content).hexdigest() != manifest.sha256:
        raise UserError(str(file), "must have the content that its manifest names", "another", "Copy the file again.")
    return manifest, content


def start(study: Study, mode: str, file: Path) -> Tried:
    """Start a worker from empty caches and the artifact. Raises UserError when the mode cannot start here."""
    manifest, content = unpack(file)
    settings = study.settings(mode)
    if manifest.mode != mode:
        raise UserError("mode", f"must be the artifact's, {manifest.mode}", mode, "Name that one.")
    if why := unavailable(settings):
        raise UserError(mode, "must run on this device", why, "Take a mode that does.")
    here = factors(study, settings)
    changed = {key: [manifest.factors.get(key), here.get(key)] for key in here if manifest.factors.get(key) != here.get(key)}
    with tempfile.TemporaryDirectory(prefix="opmode-artifact-") as folder:
        place = Path(folder) / _CONTENT
        place.write_bytes(content)
        with study.on_device():
            made = as_start("artifact", _started(study, settings, place), settings.mode["transform"])
    hit = made.verdict == "confirmed"
    return Tried(mode=mode, hit=hit, proof=made.proof, changed=changed, ready_s=made.ready_s, **_ready(study, mode))


def _started(study: Study, settings: Settings, artifact: Path) -> dict[str, Any]:
    try:
        with worker(study, settings, "artifact", cache=artifact.parent / "caches", artifact=artifact) as started:
            return started.ready()
    except WorkerFailed as error:
        raise UserError(settings.mode["name"], "must become ready", error.reason, "\n".join(error.log_tail[-1:])) from error


def _ready(study: Study, mode: str) -> dict[str, float | None]:
    """Median ready times of this study's own cold and warm starts, where they were measured."""
    file = study.folder / "warmup" / f"{mode}.json"
    data = read(file, WarmupRecord).data if file.is_file() else None
    found = {cache: [made.ready_s for made in data.starts if made.cache == cache] if data else [] for cache in ("cold", "warm")}
    return {f"{cache}_ready_s": median(values) if values else None for cache, values in found.items()}


def main() -> int:
    """Parse the command line; pack, or start and print."""
    parser = argparse.ArgumentParser(prog="python -m stages.artifact", description="Carry a compile cache, and prove that it hits.")
    parser.add_argument("action", choices=("pack", "start"))
    parser.add_argument("mode", help="a mode of params.yaml")
    parser.add_argument("file", type=Path, help="the packed artifact")
    given = parser.parse_args()
    study, mode = Study(paths.latest()), require_item(given.mode, "mode", paths.latest() / "config")
    found = pack(study, mode, given.file) if given.action == "pack" else start(study, mode, given.file)
    sys.stdout.write(found.model_dump_json(indent=1) + "\n")
    return int(isinstance(found, Tried) and not found.hit)


if __name__ == "__main__":
    run_printing_command(main)
