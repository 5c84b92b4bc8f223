"""Overrides of params.yaml: which key each one names, and what to write instead of one that names none.

Hydra's own advice is to add a `+`, with which any key is taken, and then refused as unknown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from stages.core.errors import UserError

_READABLE = re.compile(r"~[^=]+(=.*)?|\+{0,2}[^=+~][^=]*=.*", re.DOTALL)


def key_of(override: str) -> str:
    """The key of `key=value`, `+key=value`, `++key=value` or `~key`."""
    return re.split("[=@]", override.lstrip("+~"))[0].strip()


def check_overrides(overrides: Sequence[str], own: Collection[str], sections: Collection[str]) -> None:
    """An override of a choice that params.yaml makes elsewhere would leave two answers to one question. Raises UserError.

    `own`: keys that are chosen elsewhere; those of `sections` among them are choices whose keys may be overridden.
    """
    seen: set[str] = set()
    for override in overrides:
        key = key_of(override)
        if not _READABLE.fullmatch(override.strip()) or not key:
            raise UserError("overrides", "must read key=value, or ~key", override, "For example measure.load.duration_s=30.")
        if not override.startswith("~"):
            if key in seen:
                raise UserError("overrides", f"must not set {key} twice", ", ".join(overrides), "Remove one of the two.")
            seen.add(key)
        if key in own or is_chosen(key, own, sections):
            raise UserError("overrides", f"must not override {key}, which is chosen elsewhere", override, "Set it where it is chosen.")


def is_chosen(key: str, own: Collection[str], sections: Collection[str]) -> bool:
    """Whether a key lies in what is chosen elsewhere."""
    return re.split("[./]", key)[0] in set(own) - set(sections)


def misnamed(overrides: Sequence[str], stated: Collection[str], known: Collection[str]) -> UserError | None:
    """The first override that names no key as it must, with what to write; None when all do.

    `stated`: the keys that conf/ has without overrides; `known`: every key that can take a value.
    """
    removed = {key_of(override) for override in overrides if override.startswith("~")}
    for override in overrides:
        key, value, is_new = key_of(override), override.partition("=")[2], override.startswith("+")
        if is_new and key in set(stated) - removed and not override.startswith("++"):
            return UserError("overrides", f"must not add {key}, which is there already", override, f"Write {key}={value}.")
        if not is_new and key not in stated:
            return _unknown(override, key, value, stated, known)
    return None


def _unknown(override: str, key: str, value: str, stated: Collection[str], known: Collection[str]) -> UserError:
    rule = f"must name a key that conf/ has, which {key} is not"
    if key in known and not override.startswith("~"):
        return UserError("overrides", rule, override, f"Its default is stated nowhere, so write +{key}={value}.")
    nearest = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.0)[0]
    written = "~" if override.startswith("~") else "" if nearest in stated else "+"
    return UserError("overrides", rule, override, f"The nearest key is {nearest}: {written}{nearest}{f'={value}' if value else ''}.")


def paths_of(document: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Every key of a document as a dotted path, sections too."""
    for key, value in document.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from paths_of(value, f"{prefix}{key}.")
