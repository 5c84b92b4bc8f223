"""The modes that the first screen speaks of, and what each is there for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from stages.analysis.wording import UNDECIDED
from stages.views.document import Study, baseline, dig, headline_choice, part, sort_numeric, why_not


def roles(study: Study) -> dict[str, str]:
    """Mode -> what it is there for, each mode once: the recommended one, that of shorter lives, the runner-up, the baseline."""
    choice = headline_choice(study)
    chosen, shorter = str(choice[2].get("mode")) if choice else "", shorter_mode(study)
    runner_up = str(choice[2].get("runner_up") or "") if choice else ""
    wanted = ((chosen, "longer lives" if shorter else "recommended"), (shorter, "shorter lives"), (runner_up, "runner-up"))
    found: dict[str, list[str]] = {}
    for mode, role in (*wanted, (baseline(study), "baseline")):
        if mode in study["modes"] and not why_not(study, mode):
            found.setdefault(mode, []).append(role)
    if choice is None:
        found |= {mode: ["not ranked"] for mode in study["modes"] if mode not in found and _only_started(study, mode)}
    return {mode: ", ".join(words) for mode, words in found.items()}


def _only_started(study: Study, mode: str) -> bool:
    """Whether its starts are all that there is: what a study of start-up alone is about."""
    return bool(part(study, "modes", mode, "startup")) and not dig(study, "modes", mode, "evidence")


def shorter_mode(study: Study) -> str:
    """What to run below the recommended mode's span, empty if nothing else is; from the tested lifetimes in studies without spans."""
    named = dig(study, "verdict", "shorter")
    if named is not None:
        return str(named)
    choice = headline_choice(study)
    if choice is None:
        return ""
    decided = [mode for _, mode in tested(study, choice[1]) if mode not in (UNDECIDED, choice[2].get("mode"))]
    return decided[-1] if decided else ""


def tested(study: Study, rate: str) -> list[tuple[str, str]]:
    """(lifetime in s, choice) at this arrival rate, for each lifetime of params.yaml that has one, ascending."""
    table = part(study, "verdict", "choices")
    return [(lifetime, str(dig(table, lifetime, rate, "mode"))) for lifetime in sort_numeric(table) if rate in table[lifetime]]


def spans(study: Study, cache: str, rate: str = "") -> Sequence[Mapping[str, Any]]:
    """The choice along a worker's life from one cache state; at the arrival rate of the verdict's sentence unless another is named."""
    choice = headline_choice(study)
    return dig(study, "verdict", "spans", rate or (choice[1] if choice else ""), cache) or []


def switches(study: Study) -> list[tuple[str, float]]:
    """(cache state, lifetime in s) of every change of the choice that the first screen names, ascending.

    In studies without spans: the tested lifetimes on both sides of a change, from cold caches.
    """
    found = [(cache, float(span["from_s"])) for cache in ("cold", "warm") for span in spans(study, cache)[1:]]
    choice = headline_choice(study)
    if not spans(study, "cold") and choice:
        changes = [pair for pair in pairwise(tested(study, choice[1])) if pair[0][1] != pair[1][1]]
        found = [("cold", float(lifetime)) for pair in changes for lifetime, _ in pair]
    return sorted(found, key=lambda item: item[1])


def factorials(study: Study) -> list[str]:
    """Names of the study's factorials: the one that the recommended mode's speed-up comes from first, then as declared."""
    choice = headline_choice(study)
    mode = str(choice[2].get("mode")) if choice else ""
    used = dig(study, "modes", mode, "steady_state", "sequence", "vs_baseline", "factorial")
    measured = part(study, "attribution")
    declared = [used, *(part(study, "choices").get("factorials") or []), *sorted(measured)]
    return [name for name in dict.fromkeys(declared) if name in measured]
