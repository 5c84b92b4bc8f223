"""Two studies of the same work, A before B: what became better, worse, stayed the same, or cannot be told.

The sections, in the order in which they count: new fallbacks, support of the release, paths, answers, start-up,
caches, steady state, load, memory. How each is judged: `comparison_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.analysis import comparison_paths as paths
from stages.analysis import comparison_times as times
from stages.analysis.comparison_drift import Yardstick, yardstick
from stages.analysis.comparison_rules import Difference as Difference
from stages.analysis.comparison_rules import Study, at, ranked
from stages.core.errors import UserError

SECTIONS = (
    paths.FALLBACKS,
    paths.SUPPORT,
    paths.PATHS,
    times.ANSWERS,
    times.STARTUP,
    times.CACHE,
    times.STEADY,
    times.LOAD,
    times.MEMORY,
)
_MEASURED = ("attention_kernels", "weights_bytes", "precision")
_SAME_TRACE = ("name", "requests", "steps", "shapes", "length_factor", "context_tokens", "max_batch")
_BACKENDS = ("cudnn", "flash", "efficient", "mem_eff", "math", "fmha", "split_kv", "triton")


def compare(before: Study, after: Study) -> list[Difference]:
    """Every comparable quantity, new fallbacks first. Raises UserError for studies of different work."""
    _check_comparable(before, after)
    first, second = at(before, "modes"), at(after, "modes")
    found, least = list(paths.support(before, after)), yardstick(before, after)
    for mode in second:
        if mode in first:
            found += _of_mode(mode, at(first, mode), at(second, mode), least)
    found += [_gone(mode, at(first, mode)) for mode in first if mode not in second]
    return sorted(found, key=lambda row: SECTIONS.index(row.section))


def new_fallbacks(differences: Sequence[Difference]) -> list[str]:
    """What fell back in B and did not in A, one sentence each."""
    worse = [row for row in differences if row.section == paths.FALLBACKS and row.judgement == "worse"]
    return [f"{row.mode}: {row.subject}: {row.before} -> {row.after}" + (f" ({row.why})" if row.why else "") for row in worse]


def wins(differences: Sequence[Difference]) -> list[str]:
    """What became better, one sentence each: a win that nobody expected needs a reason too."""
    return [f"{row.mode}: {row.subject}: {row.before} -> {row.after}" for row in differences if row.judgement == "better"]


def environment_changes(before: Study, after: Study) -> dict[str, tuple[Any, Any]]:
    """What differs between the machines, releases, presets and kernel names of two studies."""
    pair = at(before, "environment"), at(after, "environment")
    names = [name for name in {**pair[0], **pair[1]} if not isinstance(pair[1].get(name, pair[0].get(name)), dict | list)]
    rows = {name: (pair[0].get(name), pair[1].get(name)) for name in names}
    rows["measure"] = at(before, "choices").get("measure"), at(after, "choices").get("measure")
    rows["attention_kernels"] = _kernels(before), _kernels(after)
    return {name: sides for name, sides in rows.items() if sides[0] != sides[1]}


def _check_comparable(before: Study, after: Study) -> None:
    """Model, trace, precision, device kind and attention backend must be equal; and something must have run in both."""
    models, traces = (at(before, "model"), at(after, "model")), (at(before, "trace"), at(after, "trace"))
    pairs = {"precision": (models[0].get("precision"), models[1].get("precision"))}
    for key in sorted({*models[0], *models[1]} - {*_MEASURED}):
        pairs[f"model.{key}"] = models[0].get(key), models[1].get(key)
    for key in _SAME_TRACE:
        pairs[f"trace.{key}"] = traces[0].get(key), traces[1].get(key)
    pairs["device"] = at(before, "environment").get("device"), at(after, "environment").get("device")
    pairs["baseline"] = before.get("baseline"), after.get("baseline")
    pairs |= _attention(before, after)
    for key, (first, second) in pairs.items():
        if first != second:
            raise UserError(key, "must be the same in both studies", f"{first} and {second}", "Compare studies of the same work.")
    if not {*at(before, "modes")} & {*at(after, "modes")}:
        raise UserError("modes", "must have one in common", f"{list(at(after, 'modes'))}", "Compare studies with a mode in common.")


def _attention(before: Study, after: Study) -> dict[str, tuple[Any, Any]]:
    """Kernel names change with the release, backends must not. A study without a profile says nothing here."""
    first, second = _backends(_kernels(before)), _backends(_kernels(after))
    return {"attention kernel": (first, second)} if first and second else {}


def _kernels(study: Study) -> list[str]:
    found = at(study, "model").get("attention_kernels")
    return [str(name) for name in found] if isinstance(found, list) else []


def _backends(kernels: Sequence[str]) -> list[str]:
    return sorted({next((word for word in _BACKENDS if word in name.lower()), name) for name in kernels})


def _of_mode(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], least: Yardstick) -> Iterator[Difference]:
    yield paths.status(mode, before, after)
    if before.get("status") != "ok" or after.get("status") != "ok":
        return
    yield from paths.paths(mode, before, after)
    for part in (times.answers, times.startup, times.caches, times.steady_state, times.load, times.memory):
        yield from part(mode, before, after, least)


def _gone(mode: str, before: Mapping[str, Any]) -> Difference:
    return ranked(paths.PATHS, mode, "status", str(before.get("status")), "not in B", {})
