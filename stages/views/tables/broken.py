"""Stages that have no result: what happened, and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, mode_names, part
from stages.views.tables.table import Table, dropped_empty


def broken_records(study: Study) -> Table:
    """One row a mode and reason, with the stages that it holds for and the last lines of their logs."""
    rows = []
    for name in mode_names(study):
        every = part(study, "modes", name, "records")
        for stages in _alike({stage: record for stage, record in every.items() if dig(record, "status") != "ok"}):
            rows.append([name, "all" if len(stages) == len(every) > 1 else ", ".join(stages), *_told(every, stages)])
    columns = ["mode", "stages", "what", "why", "try again with", "last lines"]
    return dropped_empty(Table("Stages without a result", columns, rows, texts=frozenset(columns[1:])))


def _alike(records: Mapping[str, Any]) -> list[list[str]]:
    """Stages grouped by what happened to them, apart from their own names."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for stage, record in sorted(records.items()):
        groups.setdefault((str(dig(record, "status")), _reason(record, stage), _tail(record)), []).append(stage)
    return list(groups.values())


def _told(records: Mapping[str, Any], stages: list[str]) -> list[str]:
    first = records[stages[0]]
    reason = _reason(first, stages[0]) if len(stages) > 1 else str(dig(first, "reason") or "")
    return [str(dig(first, "status")), reason, _again([str(dig(records[stage], "command") or "") for stage in stages]), _tail(first)]


def _reason(record: Any, stage: str) -> str:
    return str(dig(record, "reason") or "").replace(f"stage {stage} ", "the stage ")


def _tail(record: Any) -> str:
    return " / ".join(words.clean(line) for line in (dig(record, "log_tail") or [])[-3:])


def _again(commands: list[str]) -> str:
    """The one command, or `dvc repro` where it would be several of its stages."""
    given = list(dict.fromkeys(command for command in commands if command))
    if len(given) > 1 and all(command.startswith("dvc repro ") for command in given):
        return "dvc repro"
    return " && ".join(given)
