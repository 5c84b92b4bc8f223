"""compose: from params.yaml and conf/ to one fully resolved, checked configuration a mode and a factorial.

Hydra composes here and nowhere else in the pipeline; a measuring stage reads its composed file. Each file also gets
`code`: the hash, a stage, of the code that the stage runs for this model and mode, so that an edit re-measures exactly
what it could have changed. Reads params.yaml, conf/, environment.json. Writes config/<mode>.yaml (the baseline
always) and config/factorial/<name>.yaml.

    python -m stages.compose
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from stages.core import atomic, digest, paths
from stages.core.build import build, target_of
from stages.core.composed import BESIDE_THE_MODE, Settings, relevant_config, typed_settings
from stages.core.errors import UserError, run_command
from stages.core.factorial_settings import FactorialSettings, checked_factorial
from stages.core.field_kinds import field_paths
from stages.core.overrides import check_overrides, is_chosen, key_of, misnamed, paths_of
from stages.core.records.base import read_environment
from stages.core.settings import BASELINE, Params, read_params
from stages.core.stage_names import MEASURING_STAGES
from stages.core.typed_yaml import typed
from stages.traces.planning import PlanSettings

SECTIONS = ("model", "mode", "trace", "measure")  # their keys may be overridden, the choice itself may not
GROUPS = (*SECTIONS, "factorial")
NOT_CHOSEN = ("code", "baseline", "hydra")  # written here, or without effect
BESIDE_BASELINE = tuple(stage for stage, keys in BESIDE_THE_MODE.items() if "baseline" in keys)
_FIXED = {"measure.plan", *(f"{section}.{name}" for section in SECTIONS for name in ("name", "preset"))}  # a node, and files' names


def compose_study(params: Params, device: str, conf: Path) -> dict[str, Any]:
    """Every composed document of a study by its path under config/. Raises UserError for a choice that is not in conf/."""
    documents: dict[str, Any] = {}
    for mode in params.modes:
        documents[f"{mode}.yaml"] = compose_mode(params, mode, device, conf)
    baseline = documents[f"{BASELINE}.yaml"]
    for document in documents.values():
        document["baseline"] = baseline["mode"]
        for stage in BESIDE_BASELINE:
            document["code"][stage] = digest.of_document([document["code"][stage], baseline["code"]["mode"]])
    for name in params.factorials:
        composed = _hydra(params, BASELINE, device, conf, name)["factorial"]
        factorial = checked_factorial(composed, name, _names(conf, "mode"))
        documents[f"factorial/{name}.yaml"] = _factorial_document(factorial, documents)
    return documents


def compose_mode(params: Params, mode: str, device: str, conf: Path) -> dict[str, Any]:
    """One mode's document: composed, resolved, built once (so that every key is checked), with its code hashes."""
    document = _hydra(params, mode, device, conf, None)
    document.pop("factorial", None)
    settings = typed_settings(document, f"conf (mode {mode})")
    typed(PlanSettings, settings.measure.plan, "measure.plan")
    components = {key: build(getattr(settings, key), key) for key in ("model", "mode", "trace")}
    named = {f"{key}.name": component.name for key, component in components.items()} | {"measure.preset": settings.measure.preset}
    for (key, name), file in zip(named.items(), (params.model, mode, params.trace, params.measure), strict=True):
        if name != file:
            raise UserError(key, f"must be {file}, as its file", name, f"Fix conf/{key.partition('.')[0]}/{file}.yaml or the override.")
    targets = {key: str(getattr(settings, key)["_target_"]) for key in components}
    complete = {key: {"_target_": targets[key], **asdict(component)} for key, component in components.items()}
    return {**document, **complete, "code": _code_hashes(targets, components)}


def _hydra(params: Params, mode: str, device: str, conf: Path, factorial: str | None) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException, OverrideParseException

    choices = {"model": params.model, "trace": params.trace, "measure": params.measure, "mode": mode}
    if factorial:
        choices["factorial"] = factorial
    launch = {key_of(override): override.partition("=")[2] for override in params.overrides if key_of(override) == "launch"}
    for group, name in {**choices, **launch}.items():
        if name not in _names(conf, group):
            raise UserError(group, f"must name a file in conf/{group}/", name, f"Available: {', '.join(_names(conf, group))}.")
    values = _values(params, device)
    check_overrides(params.overrides, {*GROUPS, *values, *NOT_CHOSEN}, SECTIONS)
    chosen = [f"{key}={value}" for key, value in choices.items()]
    try:
        with initialize_config_dir(config_dir=str(conf), version_base="1.3"):
            composed = compose("config", overrides=[*chosen, *params.overrides])
        composed.merge_with(values)
        return dict(OmegaConf.to_container(composed, resolve=True))  # type: ignore[arg-type]
    except OverrideParseException as error:
        rule, remedy = "must have a value that Hydra can read", "Quote a value with special signs: key='a=b'."
        raise UserError("overrides", rule, error.override, remedy) from error
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        if params.overrides:  # alone conf/ composes, or what is broken in it is said first
            stated = _hydra(replace(params, overrides=[]), mode, device, conf, factorial)
            if found := misnamed(params.overrides, set(paths_of(stated)), _known_keys(stated, values)):
                raise found from error
        given = ", ".join(params.overrides) or "none"
        raise UserError("overrides", str(error)[:400], given, "Fix params.yaml (overrides) or the file in conf/.") from error


def _known_keys(stated: dict[str, Any], values: dict[str, Any]) -> set[str]:
    """Every key that an override may give a value, stated in conf/ or not."""
    kinds = {"": Settings, "measure.plan.": PlanSettings}
    kinds |= {f"{key}.": target_of(stated[key].get("_target_"), key) for key in ("model", "mode", "trace")}
    known = {path for prefix, kind in kinds.items() for path in field_paths(kind, prefix)}
    return {key for key in known if not is_chosen(key, {*GROUPS, *values, *NOT_CHOSEN}, SECTIONS)} - _FIXED


def _names(conf: Path, group: str) -> list[str]:
    return sorted(file.stem for file in (conf / group).glob("*.yaml"))


def _values(params: Params, device: str) -> dict[str, Any]:
    """Keys of the composed configuration that params.yaml has itself."""
    return {
        "name": params.name,
        "device": device,
        "precision": params.precision,
        "device_memory_bytes": params.device_memory_bytes,
        "slo": dict(vars(params.slo)),
        "arrival_rates": params.arrival_rates,
        "lifetimes_s": params.lifetimes_s,
    }


def _code_hashes(targets: dict[str, str], components: dict[str, Any]) -> dict[str, str]:
    module = {key: target.rpartition(".")[0] for key, target in targets.items()}
    code = {stage: digest.of_code([f"stages.{stage}", module["model"], module["mode"]]) for stage in MEASURING_STAGES}
    code["mode"] = digest.of_code([module["mode"]])
    code["trace"] = digest.of_code(["stages.trace", module["trace"], module["model"]])
    code["files"] = digest.of_document({key: [digest.of_file(file) for file in item.files()] for key, item in components.items()})
    return code


def _factorial_document(factorial: FactorialSettings, documents: dict[str, Any]) -> dict[str, Any]:
    known = {name.removesuffix(".yaml") for name in documents if "/" not in name}
    resolved = {cell: documents[f"{mode}.yaml"] if mode in known else None for cell, mode in factorial.cells.items()}
    measured = {cell: relevant_config("steady_state", typed_settings(one, cell)) for cell, one in resolved.items() if one}
    chosen = {"name": factorial.name, "modes": factorial.cells, "twins": factorial.twins, "finalists": factorial.finalists}
    return {**chosen, "cells": resolved, "measured": measured}


def _write(folder: Path, documents: dict[str, Any]) -> None:
    for name, document in documents.items():
        atomic.write_text(folder / name, OmegaConf.to_yaml(OmegaConf.create(document), sort_keys=True))
    for stale in folder.rglob("*.yaml"):
        if str(stale.relative_to(folder)) not in documents:
            stale.unlink()


def main() -> None:
    """Compose the study that params.yaml names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only read params.yaml; `make repro` does so before DVC, which says less")
    if parser.parse_args().check:
        read_params()
        return
    environment = read_environment(paths.latest())
    _write(paths.latest() / "config", compose_study(read_params(), environment["device"], paths.root() / "conf"))


if __name__ == "__main__":
    run_command(main)
