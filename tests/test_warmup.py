"""warmup: a start counts as cold or warm only where counters, phases and listing agree."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.records.startup import CacheUse, Phases
from stages.warmup import as_start, prove

COLD = {"fx_graph_misses": 4, "num_files_before": 0, "num_files_after": 60}
WARM = {"fx_graph_hits": 4, "num_files_before": 60, "num_files_after": 60}


@pytest.mark.parametrize(
    ("cache", "transform", "use", "proved"),
    [
        ("cold", "inductor", COLD, True),
        ("cold", "inductor", {**COLD, "num_files_before": 3}, False),
        ("cold", "inductor", {**COLD, "fx_graph_hits": 1}, False),
        ("cold", "inductor", {**COLD, "num_files_after": 0}, False),
        ("cold", "inductor", {}, False),
        ("warm", "inductor", WARM, True),
        ("warm", "inductor", {"aot_autograd_hits": 4, "num_files_before": 60}, True),
        ("warm", "inductor", {**WARM, "fx_graph_misses": 1}, False),
        ("warm", "inductor", {**WARM, "fx_graph_bypasses": 1}, False),
        ("warm", "inductor", {"num_files_before": 60}, False),
        ("artifact", "inductor_autotune", WARM, True),
        ("artifact", "inductor_autotune", COLD, False),
        ("cold", "none", {}, True),
        ("warm", "dynamo", {}, True),
        ("warm", "none", {"fx_graph_hits": 1}, False),
    ],
)
def test_cache_state_is_proved_by_counters_and_listing(cache: str, transform: str, use: dict[str, int], proved: bool) -> None:
    found, sentence = prove(cache, CacheUse(**use), Phases(kernel_compile_s=1.5), transform)
    assert found == proved
    assert sentence


def report(**changes: Any) -> dict[str, Any]:
    return {
        "ready_s": 10.0,
        "first_request_s": 10.5,
        "phases": {"import_s": 3.0, "load_s": 1.0, "dynamo_s": 2.0, "inductor_s": 3.9},
        "calls_s": {"decode/1": [5.0, 0.1, 0.1]},
        "cache_use": COLD,
        "missing": "",
        **changes,
    }


def test_what_no_phase_claims_is_unaccounted() -> None:
    start = as_start("cold", report(), "inductor")
    assert start.unaccounted_s == pytest.approx(0.1)
    assert (start.proved, start.proof) == (True, "0 files before, 4 misses, 0 hits, 60 files after")


def test_start_whose_phases_cannot_be_seen_is_not_proved() -> None:
    start = as_start("cold", report(missing="ChromiumEventLogger not found"), "inductor")
    assert (start.proved, start.proof) == (False, "phases unknown: ChromiumEventLogger not found")
