"""What is being measured, and how long the rest will take at most, judged by the last time it ran."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from stages.core import atomic, paths

SILENT_S = 10.0
"""A wait this long says that it goes on. With half of it between two requests nobody is without a line for 15 s."""
_console = Console(stderr=True, highlight=False)
_now: dict[str, Any] = {"item": "", "began_s": 0.0, "said_s": 0.0}


def announce(stage: str, item: str, planned: list[str]) -> None:
    """Say that an item starts. `planned`: every `stage@item` of the study, in order."""
    journal = _read()
    this = f"{stage}@{item}"
    text = f"{this}: measuring" + _about(journal["seconds"].get(this))
    left = [journal["seconds"].get(name) for name in planned if name not in journal["done"]]
    known = [seconds for seconds in left if seconds is not None]
    if known and len(known) == len(left):
        text += f"; {len(left)} left, at most {_duration(sum(known))}"
    else:
        text += f"; {len(left)} of {len(planned)} left"
    _now.update(item=this, began_s=time.monotonic())
    say(text)


def note(text: str) -> None:
    """One line on the item that was announced; nothing where none was."""
    if _now["item"]:
        say(f"{_now['item']}: {text}")


def still(silent_s: float = 0.0) -> None:
    """Say that the announced item is still being measured, unless there was a line in the last `silent_s` seconds."""
    at_s = time.monotonic()
    if at_s - _now["said_s"] >= silent_s:
        note(f"still measuring, {_duration(at_s - _now['began_s'])} so far")


def finished(stage: str, item: str, seconds: float, outcome: str) -> None:
    """Say how an item ended, and remember how long it took."""
    journal = _read()
    journal["seconds"][f"{stage}@{item}"] = round(seconds, 1)
    journal["done"].append(f"{stage}@{item}")
    atomic.write_json(_file(), journal)
    _now.update(item="")
    say(f"{stage}@{item}: {outcome} in {_duration(seconds)}")


def restart() -> None:
    """A pipeline begins: nothing of it is done yet."""
    atomic.write_json(_file(), {"seconds": _read()["seconds"], "done": []})


def say(text: str) -> None:
    """One line: dimmed on a terminal, plain with the time elsewhere."""
    _now.update(said_s=time.monotonic())
    if sys.stderr.isatty():
        _console.print(f"[dim]{text}[/dim]")
    else:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()


def _file() -> Path:
    return paths.build() / "progress.json"


def _read() -> dict[str, Any]:
    try:
        journal: dict[str, Any] = json.loads(_file().read_text(encoding="utf-8"))
        return {"seconds": dict(journal["seconds"]), "done": list(journal["done"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"seconds": {}, "done": []}


def _about(seconds: float | None) -> str:
    return f", about {_duration(seconds)}" if seconds is not None else ""


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
