"""YAML documents held to a dataclass: unknown keys, wrong types and values out of range are UserErrors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from stages.core.errors import UserError

Schema = TypeVar("Schema")


def load_yaml(file: Path) -> Any:
    """Read YAML. Raises UserError when the file is missing or broken."""
    try:
        return OmegaConf.to_container(OmegaConf.load(file), resolve=True)
    except FileNotFoundError as error:
        raise UserError(str(file), "must exist", "no such file", "Run dvc repro, or restore it from git.") from error
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise UserError(str(file), "must be YAML", " ".join(str(error).split())[:200], "Fix the file.") from error


def typed(schema: type[Schema], document: Any, where: str) -> Schema:
    """`document` as an instance of the dataclass `schema`; `where` names its place in messages. Raises UserError."""
    if not isinstance(document, dict):
        raise UserError(where, "must be a mapping of keys", document, "Start from the file in git.")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), document)
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise UserError(f"{where}: {missing[0]}", "must be given", "nothing", "Add it.")
        return cast(Schema, OmegaConf.to_object(merged))
    except OmegaConfBaseException as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, UserError):
            raise cause from error
        key = getattr(error, "full_key", None) or culprit(schema, document)
        value = getattr(error, "value", None) or document.get(key)
        raise UserError(f"{where}: {key}", str(error).split("\n")[0], value, "Fix or remove the key.") from error


def culprit(schema: type, document: Mapping[str, Any]) -> str:
    """The first key whose value alone does not fit the dataclass (OmegaConf does not name a node of the wrong kind)."""
    for key, value in document.items():
        try:
            OmegaConf.merge(OmegaConf.structured(schema), {key: value})
        except OmegaConfBaseException:
            return key
    return "?"


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
    """Raise UserError unless every value is above zero and finite."""
    for value in values:
        if not (value > 0 and math.isfinite(value)):
            raise UserError(key, "must be positive and finite", value, remedy)
