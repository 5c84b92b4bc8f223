"""What the fields of a dataclass take, in words: OmegaConf says it in its own class names, which are no key's of the user."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from stages.core.errors import UserError

_ONE = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
_MANY = {str: "texts", int: "whole numbers", float: "numbers"}
_EXAMPLES = {str: "[a, b]", int: "[1, 2]", float: "[0.5, 2]"}


def misfit(schema: type, key: str, value: Any, where: str, remedy: str) -> UserError:
    """Why `value` does not fit at a path like `slo.ttft_ms` or `modes[0]` of a dataclass. `where` stands before the key."""
    *path, name = re.findall(r"[^.\[\]]+", key)
    holder = kind_at(schema, path)
    if is_dataclass(holder) and name not in (names := [field.name for field in fields(holder)]):
        near = difflib.get_close_matches(name, names, n=1)
        return UserError(f"{where}{key}", "must be a known key", value, f"{_meant(near)}Keys here: {', '.join(names)}.")
    kind = kind_at(schema, [*path, name])
    if _but_null(kind) in (int, float) and isinstance(value, str) and re.fullmatch(r"[\d._]+(e\d+)?", value.strip(), re.IGNORECASE):
        value, remedy = repr(value), "Take the quotes away."
    return UserError(f"{where}{key}", f"must be {in_words(kind)}", "null" if value is None else value, remedy)


def kind_at(kind: Any, path: Iterable[str]) -> Any:
    """The type at a path below a dataclass; Any where it says nothing."""
    for name in path:
        inner = _but_null(kind)
        inside = (get_args(inner) or (Any,))[-1]  # the elements of a list, the values of a mapping
        kind = get_type_hints(inner).get(name, Any) if is_dataclass(inner) else inside
    return kind


def field_paths(kind: type, prefix: str = "") -> Iterator[str]:
    """Every field of a dataclass as a dotted path; those of a dataclass inside instead of it."""
    for name, inner in get_type_hints(kind).items():
        yield from field_paths(inner, f"{prefix}{name}.") if is_dataclass(inner) else [f"{prefix}{name}"]  # type: ignore[arg-type]


def in_words(kind: Any) -> str:
    """A type as what may be written: `a whole number or null`, `a list of texts like [a, b]`."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(in_words(one) for one in get_args(kind))
    if get_origin(kind) is list:
        element = get_args(kind)[0]
        return f"a list of {_MANY.get(element, 'values')} like {_EXAMPLES.get(element, '[1, 2]')}"
    if is_dataclass(kind):
        return f"a mapping of the keys {', '.join(field.name for field in fields(kind))}"
    return _ONE.get(kind, "a mapping of keys" if get_origin(kind) is dict else "another kind of value")


def whole(kind: Any, value: Any) -> Any:
    """`value` with 1e9 as 1000000000 wherever `kind` asks for a whole number: in YAML an exponent makes it a float."""
    kind = _but_null(kind)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return {key: whole(kind_at(kind, [str(key)]), item) for key, item in value.items()}
    if get_origin(kind) is list and isinstance(value, list):
        return [whole(get_args(kind)[0], item) for item in value]
    return int(value) if kind is int and isinstance(value, float) and value.is_integer() else value


def _but_null(kind: Any) -> Any:
    """T of `T | None`."""
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


def _meant(near: list[str]) -> str:
    return f"Did you mean {near[0]}? " if near else ""
