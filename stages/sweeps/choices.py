"""From the values that a cell of the sweep took to the params.yaml of its study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.core.errors import UserError
from stages.core.settings import BASELINE
from stages.core.typed_yaml import load_yaml

GROUPS = ("model", "trace", "measure", "mode")
BASELINE_FACTORIAL = "baseline_only"
_REFUSED = {
    "name": "Each cell's study is named after its sweep.",
    "modes": "Sweep `mode=a,b`: one mode a cell.",
    "factorials": "A cell takes the factorial that holds its mode.",
    "gate": "The gate is for reports/latest.",
    "overrides": "Sweep the key itself: `measure.load.duration_s=5,10`.",
    "code": "It is computed.",
    "swept": "It is computed.",
    "factorial": "A cell takes the factorial that holds its mode.",
    "hydra.sweep.dir": "A sweep has a folder of its own in build/sweeps.",
    "hydra.sweep.subdir": "A sweep has a folder of its own in build/sweeps.",
    "hydra.mode": "A sweep is always a multirun.",
}


@dataclass(frozen=True)
class Choice:
    """One swept key with the value that a cell took: `text` as on the command line, `value` as Hydra typed it."""

    key: str
    text: str
    value: Any


def key_of(override: str) -> str:
    """The key of `key=value`."""
    return override.split("=", 1)[0]


def checked(arguments: Sequence[str]) -> list[str]:
    """The caller's arguments without `-m`. Raises UserError for one that no cell could honour."""
    kept = [argument for argument in arguments if argument not in ("-m", "--multirun")]
    for argument in kept:
        if argument.startswith("-"):
            continue
        key = key_of(argument)
        if argument[:1] in ("", "+", "~", "=") or "=" not in argument:
            raise UserError("sweep", "takes key=value or key=a,b", argument, "New keys go into conf/ first.")
        refused = next((why for name, why in _REFUSED.items() if key == name or key.startswith(f"{name}.")), "")
        if refused:
            raise UserError(key, "cannot be swept", argument, refused)
    return kept


def swept_keys(arguments: Sequence[str]) -> list[str]:
    """The keys that the caller gave, Hydra's own left out."""
    keys = [key_of(argument) for argument in arguments if not argument.startswith(("-", "hydra.", "hydra/"))]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise UserError("sweep", "must give a key once", ", ".join(twice), f"Join the values: {twice[0]}=a,b.")
    return keys


def cell_params(study: Mapping[str, Any], name: str, choices: Sequence[Choice], factorials: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The params.yaml of one cell: the study's own, with the cell's choices in their places.

    `factorials` maps each factorial of conf/factorial to its modes. Raises UserError when none holds the cell's mode.
    """
    params = {key: value for key, value in study.items() if key != "gate"} | {"name": name}
    params["overrides"] = list(study.get("overrides") or [])
    for choice in choices:
        head, *rest = choice.key.split(".")
        if choice.key == "mode":
            params |= _of_mode(str(choice.value), list(study.get("factorials") or []), factorials)
        elif choice.key in GROUPS or (head not in GROUPS and head in _OWN_KEYS):
            params[head] = _replaced(params.get(head), rest, choice.value)
        else:
            params["overrides"].append(f"{choice.key}={choice.text}")
    return params


_OWN_KEYS = ("precision", "device", "device_memory_bytes", "slo", "arrival_rates", "lifetimes_s")


def read_factorials(folder: Path) -> dict[str, list[str]]:
    """Each factorial of conf/factorial with the modes of its cells."""
    found = {file.stem: load_yaml(file) for file in sorted(folder.glob("*.yaml"))}
    return {name: list((node.get("cells") or {}).values()) for name, node in found.items() if isinstance(node, dict)}


def _of_mode(mode: str, preferred: Sequence[str], factorials: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    if mode == BASELINE:
        return {"modes": [BASELINE], "factorials": [BASELINE_FACTORIAL]}
    ordered = [*preferred, *(name for name in factorials if name not in preferred)]
    chosen = next((name for name in ordered if mode in factorials.get(name, ())), None)
    if chosen is None:
        raise UserError("mode", "must be a cell of a factorial in conf/factorial", mode, "Add it to one, as a cell of its own name.")
    return {"modes": [BASELINE, mode], "factorials": [chosen]}


def _replaced(node: Any, keys: Sequence[str], value: Any) -> Any:
    if not keys:
        return value
    inner = dict(node) if isinstance(node, Mapping) else {}
    return inner | {keys[0]: _replaced(inner.get(keys[0]), keys[1:], value)}
