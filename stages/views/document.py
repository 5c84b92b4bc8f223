"""Reading study.json: what a view may say about a mode, and why it may not.

A gain is shown only for a mode that ran (`ok`), whose path was proved (`confirmed`) and whose answers are not wrong.
Every reader tolerates absent parts: a study may have no load, no intervals, or one mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.core.errors import UserError
from stages.core.records.base import read_json
from stages.core.service_levels import rate_key

SCHEMA_VERSION = 1

Study = Mapping[str, Any]


def load(path: Path) -> Study:
    """Read study.json. Raises UserError when it is missing, not JSON, or of another schema version."""
    study = read_json(path)
    if not isinstance(study, dict) or study.get("schema_version") != SCHEMA_VERSION:
        found = study.get("schema_version") if isinstance(study, dict) else type(study).__name__
        raise UserError(f"{path}:schema_version", f"must be {SCHEMA_VERSION}", found, "Use the release that wrote this study.")
    if not isinstance(study.get("modes"), dict) or not isinstance(study.get("verdict"), dict):
        raise UserError(str(path), "must hold `modes` and `verdict`", sorted(study), "Run `python -m stages.report` again.")
    return study


def dig(node: Any, *keys: str) -> Any:
    """The value at a path of keys, or None where any of them is absent."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def part(node: Any, *keys: str) -> Mapping[str, Any]:
    """The object at a path of keys, or an empty one."""
    found = dig(node, *keys)
    return found if isinstance(found, Mapping) else {}


def baseline(study: Study) -> str:
    """Name of the mode that all others are compared with."""
    return str(study.get("baseline", "eager"))


def mode_names(study: Study) -> list[str]:
    """All modes: the baseline first, then those that may be shown with a gain, then the others; each in the study's order."""
    order = [name for name in part(study, "choices").get("modes") or [] if name in study["modes"]]
    names = dict.fromkeys([*order, *sorted(study["modes"])])
    return sorted(names, key=lambda name: (name != baseline(study), bool(why_not(study, name))))


def shown_modes(study: Study) -> list[str]:
    """The modes whose numbers may be ranked."""
    return [name for name in mode_names(study) if not why_not(study, name)]


def label(study: Study, name: str) -> str:
    """One word on what became of a mode: its status, or `refuted`, `not_proven`, `wrong`, or `ok`.

    The baseline claims nothing, so it needs only to have run.
    """
    mode = part(study, "modes", name)
    status = str(mode.get("status", "skipped"))
    if status != "ok":
        return status
    if dig(mode, "correctness", "verdict") == "wrong":
        return "wrong"
    evidence = dig(mode, "evidence", "verdict")
    if evidence == "confirmed" or (name == baseline(study) and evidence is None):
        return "ok"
    return str(evidence or "not_proven")


def why_not(study: Study, name: str) -> str:
    """Why no gain may be shown for a mode, or an empty string."""
    mode = part(study, "modes", name)
    word = label(study, name)
    if word == "ok":
        return ""
    given = dig(study, "verdict", "rejected", name) or mode.get("reason") or _detail(mode, word) or "no reason recorded"
    return f"{word}: {str(given).removeprefix(f'{word}: ')}"


def _detail(mode: Mapping[str, Any], word: str) -> str:
    if word == "wrong":
        failed = [check for check in part(mode, "correctness").get("checks", []) if dig(check, "verdict") == "fail"]
        return "; ".join(f"{dig(check, 'name')} on {dig(check, 'subject')} failed" for check in failed)
    return "; ".join(str(reason) for reason in part(mode, "evidence").get("reasons", []))


def decode_batches(study: Study) -> list[str]:
    """Batch sizes measured in any mode, ascending."""
    return _sizes(study, "decode")


def prompt_sizes(study: Study) -> list[str]:
    """Prompt lengths in tokens measured in any mode, ascending."""
    return _sizes(study, "prefill")


def _sizes(study: Study, phase: str) -> list[str]:
    found = {size for mode in study["modes"].values() for size in part(mode, "steady_state", phase)}
    return sorted(found, key=_as_number)


def rates(study: Study) -> list[str]:
    """Arrival rates under load in any mode, ascending; `recorded` and other words last."""
    found = {
        key
        for mode in study["modes"].values()
        for key, run in part(mode, "load").items()
        if isinstance(run, Mapping) and "request_goodput" in run
    }
    return sorted(found, key=_as_number)


def _as_number(key: str) -> tuple[float, str]:
    try:
        return float(key), key
    except ValueError:
        return float("inf"), key


def sort_numeric(keys: Any) -> list[str]:
    """Keys that are numbers in text, ascending; words last."""
    return sorted(keys, key=_as_number)


def headline_choice(study: Study) -> tuple[str, str, Mapping[str, Any]] | None:
    """(lifetime, rate, choice) of the verdict's sentence: the longest lifetime at the first arrival rate; None without one."""
    choices = part(study, "verdict", "choices")
    lasting = next(iter(reversed(sort_numeric(choices))), None)
    if lasting is None:
        return None
    found = part(choices, lasting)
    rate = next((key for key in [*arrival_rates(study), *sort_numeric(found)] if key in found), None)
    return None if rate is None else (lasting, rate, found[rate])


def arrival_rates(study: Study) -> list[str]:
    """The study's own arrival rates, as the keys that its tables use, in the order chosen."""
    given = part(study, "choices").get("arrival_rates") or []
    return [rate_key(rate) for rate in given]


def points(factorial: Any) -> dict[str, Mapping[str, Any]]:
    """The points of one factorial that hold contrasts: batch sizes, `prefill/<tokens>`, `sequence`, weightings."""
    return {key: found for key, found in part(factorial).items() if isinstance(found, Mapping) and "total" in found}
