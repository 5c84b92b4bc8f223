"""A study folder on disk, made from tests/views/example_study.json: a few modes with records, configurations and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path(__file__).resolve().parents[1] / "views" / "example_study.json"
MODES = ("eager", "compile", "cudagraph_trees", "max_autotune")
STAGES = {
    "warmup": ("09:00:00", "09:01:00"),
    "capture": ("09:10:00", "09:10:30"),
    "load": ("09:20:00", "09:20:10"),
    "correctness": ("09:30:00", "09:30:05"),
}


def example(modes: tuple[str, ...] = MODES) -> dict[str, Any]:
    """The example study with some of its modes: proved, refuted and unavailable ones."""
    study: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    study["modes"] = {mode: thinned(study["modes"][mode]) for mode in modes}
    return study


def thinned(node: Any) -> Any:
    """The same with every long curve cut to 12 points, which the store takes quickly."""
    if isinstance(node, dict):
        return {key: thinned(value) for key, value in node.items()}
    return node[:: max(1, len(node) // 12)] if isinstance(node, list) else node


def write_study(folder: Path, study: dict[str, Any] | None = None) -> Path:
    """Write a whole study folder; records carry only what publishing reads of them."""
    study = study or example()
    write_json(folder / "study.json", study)
    for mode in study["modes"]:
        for stage, (start, end) in STAGES.items():
            write_json(
                folder / stage / f"{mode}.json",
                {"stage": stage, "started_at": f"2026-11-29T{start}+00:00", "ended_at": f"2026-11-29T{end}+00:00"},
            )
        write_text(
            folder / "config" / f"{mode}.yaml",
            yaml.safe_dump({"mode": {"name": mode}, "model": {"sizes": [1, 2]}, "code": {"load": "abc"}}),
        )
    write_json(
        folder / "steady_state" / "inductor_manual.json",
        {"started_at": "2026-11-29T09:15:00+00:00", "ended_at": "2026-11-29T09:16:00+00:00"},
    )
    write_json(folder / "environment.json", study["environment"])
    write_text(folder / "report.md", "# the report\n\n![lifetime](figures/lifetime.svg)\n\nRun compile.\n")
    write_text(folder / "report.html", "<p>the report</p>")
    write_text(folder / "figures" / "lifetime.svg", "<svg/>")
    return folder


def write_json(path: Path, document: Any) -> None:
    """Write JSON, with the folders that it needs."""
    write_text(path, json.dumps(document))


def write_text(path: Path, text: str) -> None:
    """Write text, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
