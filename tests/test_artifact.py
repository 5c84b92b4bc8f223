"""artifact: what is packed is what is unpacked; a changed factor is named; a start says hit or miss."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.version import Version

from stages import warmup
from stages.artifact import factors, main, pack, unpack
from stages.core.errors import UserError
from stages.workers.measurement import cache_folder
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallStudy:
    made = write_study(tmp_path, "eager", "compile")
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def packed(small: SmallStudy) -> Path:
    """An artifact with any content: packing does not read it."""
    place = cache_folder(small.study, small.study.settings("compile")) / "artifact.bin"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"kernels")
    pack(small.study, "compile", small.home / "compile.zip")
    return small.home / "compile.zip"


def test_content_and_factors_come_back(packed: Path, small: SmallStudy) -> None:
    manifest, content = unpack(packed)
    assert (manifest.mode, content, manifest.num_bytes) == ("compile", b"kernels", 7)
    assert manifest.factors == json.loads(json.dumps(factors(small.study, small.study.settings("compile"))))


def test_mode_without_an_artifact_is_a_user_error(small: SmallStudy) -> None:
    with pytest.raises(UserError, match=r"must exist; got no such file. Run .* only a mode with kernels of the compiler leaves one"):
        pack(small.study, "compile", small.home / "compile.zip")


def rewritten(file: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(file) as archive:
        members: dict[str, Any] = {member: archive.read(member) for member in archive.namelist()} | {name: content}
    with zipfile.ZipFile(file, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return file


def test_content_that_changed_on_the_way_is_refused(packed: Path) -> None:
    with pytest.raises(UserError, match="must have the content that its manifest names"):
        unpack(rewritten(packed, "artifact.bin", b"another"))


def test_file_that_is_no_artifact_is_refused(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must be a packed artifact"):
        unpack(rewritten(packed, "manifest.json", b"{}"))
    with pytest.raises(UserError, match="must be a packed artifact"):
        unpack(tmp_path / "nothing.zip")


def test_every_choice_that_decides_kernels_is_a_factor(small: SmallStudy) -> None:
    settings = small.study.settings("compile")
    before = factors(small.study, settings)
    changes = {
        "num_threads": replace(settings, launch=replace(settings.launch, num_threads=2)),
        "precision": replace(settings, precision="bf16"),
        "model.num_layers": replace(settings, model={**settings.model, "num_layers": 2}),
        "mode.compile_mode": replace(settings, mode={**settings.mode, "compile_mode": "default"}),
    }
    for name, changed in changes.items():
        after = factors(small.study, changed)
        assert [key for key in after if after[key] != before.get(key)] == [name]


def test_another_mode_than_the_artifacts_is_refused(packed: Path, small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["artifact", "start", "eager", str(packed)])
    with pytest.raises(UserError, match="must be the artifact's, compile"):
        main()


@pytest.mark.slow
def test_carried_artifact_hits_and_misses_with_another_thread_count(
    small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch's key holds the thread count since 2.13; before, such an artifact hits, and the changed factor is named."""
    keyed = Version(Version(torch.__version__).base_version) >= Version("2.13")
    monkeypatch.setattr("sys.argv", ["warmup", "--mode", "compile"])
    warmup.main()
    file = small.home / "compile.zip"
    pack(small.study, "compile", file)
    monkeypatch.setattr("sys.argv", ["artifact", "start", "compile", str(file)])
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["changed"] == {}
    small.edit("compile", launch__num_threads=2)
    assert main() == keyed
    found = json.loads(capsys.readouterr().out)
    assert (found["hit"], found["changed"]) == (not keyed, {"num_threads": [1, 2]})
    assert ("graphs missed" in found["proof"]) is keyed
