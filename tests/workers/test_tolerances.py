"""The tolerances of the correctness stage are those that docs/methodology.md gives: a change of one is a change of both."""

from __future__ import annotations

import re
from pathlib import Path

from stages.workers.probes import adapter_switch, bench, known_answers, repeated_calls, rounding, teacher_forced

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "methodology.md").read_text(encoding="utf-8")
PRECISIONS = ("fp32", "bf16")


def documented() -> dict[str, tuple[float, ...]]:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([-e.\d]+) \| ([-e.\d]+) \|", TEXT, re.MULTILINE)
    return {name: (float(fp32), float(bf16)) for name, fp32, bf16 in rows}


def test_every_tolerance_is_documented_with_its_value() -> None:
    by_precision = {
        "ERROR_MULTIPLE": bench.ERROR_MULTIPLE,
        "ERROR_FLOOR": bench.ERROR_FLOOR,
        "KL_FLOOR": teacher_forced.KL_FLOOR,
        "MOST_NOISE": repeated_calls.MOST_NOISE,
    }
    equal = {
        "TIE": bench.TIE,
        "FALSE_ALARM": rounding.FALSE_ALARM,
        "MIN_EXACT_MATCH": known_answers.MIN_EXACT_MATCH,
        "LEAST_DIFFERENCE": adapter_switch.LEAST_DIFFERENCE,
    }
    expected = {name: tuple(found[precision] for precision in PRECISIONS) for name, found in by_precision.items()}
    assert documented() == expected | {name: (value, value) for name, value in equal.items()}
