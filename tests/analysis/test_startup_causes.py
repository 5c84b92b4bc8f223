"""A start from filled caches that tuned its kernels again is told from one that missed its cache, also in an older study."""

from __future__ import annotations

from typing import Any

import pytest

from stages.analysis.startup_causes import known_cause
from stages.analysis.study_modes import _starts
from stages.core.cache_proof import judged_again
from stages.core.records.startup import CacheUse, Phases, Start, Startup

HIT = {"fx_graph_hits": 5, "aot_autograd_hits": 5, "num_kernels_before": 1541, "num_kernels_after": 1675}


def started(tuning_s: float = 47.9, cache: Any = "warm", proved: bool = False, **use: int) -> Start:
    """A start as on one H200 with torch 2.11, max-autotune, except for what is said."""
    return Start(
        cache=cache,
        ready_s=73.5,
        unaccounted_s=0.0,
        first_request_s=73.5,
        phases=Phases.model_validate(dict.fromkeys(Phases.model_fields, 0.0) | {"autotune_s": tuning_s}),
        calls_s={},
        cache_use=CacheUse(num_files_before=865, num_files_after=865, **{**HIT, **use}),
        proved=proved,
        proof="claims warm, but 134 kernels compiled",
    )


def test_tuning_again_after_hits_names_the_seconds_and_the_issue() -> None:
    found = known_cause(started())
    assert "47.9 s" in found
    assert "pytorch#172819" in found


@pytest.mark.parametrize(
    "other",
    [{"tuning_s": 0.2}, {"cache": "cold"}, {"proved": True}, {"fx_graph_misses": 1}, {"fx_graph_bypasses": 1}, {"fx_graph_hits": 0}],
    ids=lambda other: next(iter(other)),
)
def test_another_start_has_no_known_cause(other: dict[str, Any]) -> None:
    assert not known_cause(started(**other))


def test_artifact_start_that_an_older_study_confirmed_is_refuted_when_it_tuned() -> None:
    (found,) = judged_again(Startup(starts=[started(15.5, "artifact", proved=True)]), "inductor_autotune").starts
    assert (found.proved, found.verdict, found.proof) == (False, "refuted", "claims artifact, but kernels tuned for 15.5 s")
    assert "pytorch#172819" in known_cause(found)


def test_what_holds_or_was_refuted_stays_as_it_was() -> None:
    starts = [started(0.2, "artifact", proved=True), started(cache="warm")]
    assert judged_again(Startup(starts=starts), "inductor_autotune").starts == starts


def test_the_start_whose_phases_are_shown_is_the_one_explained() -> None:
    starts = [started(10.0).model_copy(update={"ready_s": 25.4}), started(2.8).model_copy(update={"ready_s": 16.9}), started(1.6)]
    starts[2] = starts[2].model_copy(update={"ready_s": 16.3})
    found = _starts(starts)
    assert found["phases"]["autotune_s"] == 2.8
    assert "2.8 s went into tuning" in found["cause"]
