"""YAML documents held to a dataclass: unknown keys, wrong types and values out of range are UserErrors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from stages.core.errors import UserError
from stages.core.field_kinds import misfit, whole

Schema = TypeVar("Schema")
LARGEST = 10**15
"""No time, count or size that a study may ask for is larger; larger ones overflow clocks and floats."""
_SCALARS = re.compile(r"(list\[|dict\[str, )(str|int|float)\]")


def load_yaml(file: Path) -> Any:
    """Read YAML. Raises UserError when the file is missing or broken."""
    try:
        return OmegaConf.to_container(OmegaConf.load(file), resolve=True)
    except IsADirectoryError as error:
        raise UserError(str(file), "must be a YAML file", "a folder", "Name the file in it.") from error
    except FileNotFoundError as error:
        raise UserError(str(file), "must exist", "no such file", "Run dvc repro, or restore it from git.") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise UserError(str(file), "must be a mapping or a list", str(error), "Start from the file in git.") from error
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise UserError(str(file), "must be YAML", " ".join(str(error).split())[:200], "Fix the file.") from error


def typed(schema: type[Schema], document: Any, where: str) -> Schema:
    """`document` as an instance of the dataclass `schema`; `where` names its place in messages. Raises UserError."""
    if not isinstance(document, dict):
        raise UserError(where, "must be a mapping of keys", document, "Start from the file in git.")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), whole(schema, document))
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise UserError(f"{where}: {missing[0]}", "must be given", "nothing", "Add it.")
        made = OmegaConf.to_object(merged)
        check_kinds(made, document, f"{where}: ")
        return cast(Schema, made)
    except OmegaConfBaseException as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, UserError):
            raise cause from error
        key = getattr(error, "full_key", None) or culprit(schema, document)
        raise misfit(schema, str(key), value_at(document, str(key)), f"{where}: ", "Fix or remove the key.") from error


def culprit(schema: type, document: Mapping[str, Any]) -> str:
    """The first key whose value alone does not fit the dataclass (OmegaConf does not name a node of the wrong kind)."""
    for key, value in document.items():
        try:
            OmegaConf.merge(OmegaConf.structured(schema), whole(schema, {key: value}))
        except OmegaConfBaseException:
            return key
    return "?"


def value_at(document: Mapping[str, Any], key: str) -> Any:
    """The value at a path like `slo.ttft_ms` or `modes[0]`, as it was given; `nothing` where there is none."""
    value: Any = document
    for part in re.findall(r"[^.\[\]]+", key):
        try:
            value = value[int(part)] if isinstance(value, list) else {str(name): item for name, item in value.items()}[part]
        except (KeyError, IndexError, AttributeError, ValueError):
            return "nothing"
    return value


def check_kinds(made: Any, document: Mapping[str, Any], where: str) -> None:
    """Refuse what OmegaConf takes in silence: a number for a bool, a list among scalars, NaN and infinity. Raises UserError."""
    for field in fields(made):
        given, key, kind = document.get(field.name), f"{where}{field.name}", str(field.type)
        if kind.startswith("bool") and given is not None and not isinstance(given, bool):
            raise UserError(key, "must be true or false", given, "Fix or remove the key.")
        if _SCALARS.fullmatch(kind) and any(isinstance(item, list | dict) for item in items(given)):
            raise UserError(key, f"must hold single values ({kind})", given, "Take the brackets away.")
        value = getattr(made, field.name)
        if is_dataclass(value) and isinstance(given, dict):
            check_kinds(value, given, f"{key}.")
        else:
            check_finite(given, key)


def items(node: Any) -> list[Any]:
    """The elements of a list, the values of a mapping; nothing for anything else."""
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []


def check_finite(node: Any, key: str) -> None:
    """Raise UserError for NaN or infinity anywhere in a document."""
    if isinstance(node, float) and not math.isfinite(node):
        raise UserError(key, "must be a finite number", node, "Fix or remove the key.")
    for name, item in node.items() if isinstance(node, dict) else enumerate(items(node)):
        check_finite(item, f"{key}.{name}")


def one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise UserError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise UserError(key, f"must be one of {', '.join(allowed)}", value, "Fix params.yaml.")


def unique(key: str, values: list[Any]) -> None:
    """Raise UserError when a value stands twice."""
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise UserError(key, "must not list anything twice", ", ".join(twice), "Remove the second one from params.yaml.")


def positive(key: str, values: list[Any], remedy: str = "Fix params.yaml.") -> None:
    """Raise UserError unless every value is above zero and at most `LARGEST`; NaN never is."""
    for value in values:
        if not 0 < value < math.inf:
            raise UserError(key, "must be positive and finite", value, remedy)
        if value > LARGEST:
            raise UserError(key, f"must be at most {LARGEST:g}", value, remedy)
