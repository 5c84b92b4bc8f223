"""Finished parts of an unfinished record, kept in build/partial/ and taken up again after an interruption."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from stages.core import atomic, paths
from stages.core.records.base import read

Part = TypeVar("Part", bound=BaseModel)


class Partial:
    """The parts of one record. `key` must name everything that decides them (stage, item, hashes)."""

    def __init__(self, key: str) -> None:
        """Parts of another key are another folder."""
        self.folder: Path = paths.build() / "partial" / key

    def part(self, name: str, part_type: type[Part], measure: Callable[[], Part]) -> Part:
        """The part measured before, or measured now and kept."""
        file = self.folder / f"{name}.json"
        if file.is_file():
            return read(file, part_type)
        part = measure()
        atomic.write_json(file, part.model_dump(mode="json"))
        return part

    def clear(self) -> None:
        """Forget the parts: the record is written."""
        shutil.rmtree(self.folder, ignore_errors=True)
