"""From a composed node with `_target_` to the object it names, with every key checked on the way.

A target is a dataclass under `stages.modes`, `stages.models` or `stages.traces`: its fields are the keys that the node
may have, its `__post_init__` the rules across keys.
Nothing heavy is imported by that: targets import torch inside their methods.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from stages.core.errors import UserError
from stages.core.field_kinds import misfit, whole
from stages.core.typed_yaml import check_kinds, culprit, value_at

ALLOWED = ("stages.modes.", "stages.models.", "stages.traces.")


def build(node: Mapping[str, Any], key: str) -> Any:
    """Make the object that `node["_target_"]` names, from the node's other keys.

    `key` is the node's place in the configuration, for messages. Raises UserError for a target outside the
    allow-list, an unknown or missing key, a wrong type, or a broken rule of the target's own.
    """
    settings = {str(name): value for name, value in node.items()}
    target = target_of(settings.pop("_target_", None), key)
    try:
        typed = OmegaConf.merge(OmegaConf.structured(target), whole(target, settings))
        missing = sorted(OmegaConf.missing_keys(typed))
        if missing:
            raise UserError(f"{key}.{missing[0]}", "must be given", "nothing", f"Set it in conf/{key}/ or by an override.")
        made = OmegaConf.to_object(typed)
        check_kinds(made, settings, f"{key}.")
        return made
    except OmegaConfBaseException as error:
        raise _explained(error, key, target, settings) from error


def target_of(path: object, key: str) -> type:
    """The dataclass that `_target_` names. Raises UserError for one outside the allow-list or that is none."""
    if not isinstance(path, str) or not path.startswith(ALLOWED):
        raise UserError(f"{key}._target_", f"must name a class under {', '.join(ALLOWED)}", path, "Put it there.")
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"{key}._target_", "must name a class that can be imported", path, f"({error})") from error
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise UserError(f"{key}._target_", "must name a dataclass", path, "Its fields are the keys it accepts.")
    return found


def _explained(error: OmegaConfBaseException, key: str, target: type, settings: Mapping[str, Any]) -> UserError:
    inner = error.__cause__ or error.__context__
    if isinstance(inner, UserError):
        return inner
    where = getattr(error, "full_key", None) or culprit(target, settings)
    return misfit(target, str(where), value_at(settings, str(where)), f"{key}.", f"Fix conf/{key}/ or the override.")
