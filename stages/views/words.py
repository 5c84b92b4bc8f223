"""Numbers and names as people read them; the same words in every view."""

from __future__ import annotations

import math
import re
from typing import Any

ABSENT = "–"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def clean(value: object) -> str:
    """Text without control characters, which XML refuses and a terminal would obey; line breaks become spaces."""
    return _CONTROL.sub("", str(value).replace("\n", " ").replace("\t", " "))


def clean_lines(text: object) -> str:
    """The same for a text of several lines, which stay apart."""
    return "\n".join(clean(line) for line in str(text).splitlines())


def number(value: object) -> float | None:
    """A finite float, or None for anything else (booleans too)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


NOISE = 1e-9
"""What floating-point sums leave of nothing, in any unit shown here."""


def significant(value: float, digits: int = 3) -> str:
    """`value` rounded to significant digits, with thousands separators and never an exponent."""
    if abs(value) < NOISE:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):,.{decimals}f}"


def plain(value: Any, unit: str = "") -> str:
    """Three significant digits and a unit, or a dash."""
    found = number(value)
    return ABSENT if found is None else f"{significant(found)} {unit}".rstrip()


def given(value: Any) -> str:
    """A number that somebody chose, as they would write it: no trailing zeros."""
    found = number(value)
    return ABSENT if found is None else f"{found:,.10g}"


def count(value: Any) -> str:
    """A whole number with thousands separators, or a dash."""
    found = number(value)
    return ABSENT if found is None else f"{found:,.0f}"


def percent(value: Any) -> str:
    """A share of 1 as per cent, or a dash."""
    found = number(value)
    return ABSENT if found is None else f"{100 * found:.1f} %"


def microseconds(value: Any) -> str:
    """A time given in us, shown in us below 10 ms, in ms below 10 s, else in s."""
    found = number(value)
    if found is None:
        return ABSENT
    scale, unit = microsecond_unit(found)
    return plain(found / scale, unit)


def microsecond_unit(value_us: float) -> tuple[float, str]:
    """What to divide us by, and the unit that gives: us below 10 ms, ms below 10 s, else s."""
    if abs(value_us) < 1e4:
        return 1.0, "µs"
    return (1e3, "ms") if abs(value_us) < 1e7 else (1e6, "s")


def seconds(value: Any) -> str:
    """A duration given in s: `0.53 s`, `412 s`, `12 min`, `4.5 h`, `7 d`."""
    found = number(value)
    if found is None:
        return ABSENT
    for least, unit_s, unit in ((3 * 86400, 86400, "d"), (3 * 3600, 3600, "h"), (600, 60, "min")):
        if abs(found) >= least:
            return plain(found / unit_s, unit)
    return plain(found, "s")


def chosen_seconds(value: float) -> str:
    """A lifetime that somebody chose: `10 min`, `1 d`, without trailing zeros."""
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= unit_s and value % unit_s == 0:
            return f"{given(value / unit_s)} {unit}"
    return f"{given(value)} s"


def size(value: Any) -> str:
    """Bytes as GiB, MiB or KiB."""
    found = number(value)
    if found is None:
        return ABSENT
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if abs(found) >= 2**power:
            return plain(found / 2**power, unit)
    return plain(found, "B")


def speedup(value: Any) -> str:
    """A ratio eager / mode: `1.84x`."""
    found = number(value)
    return ABSENT if found is None else f"{found:.2f}×"


def interval(low: Any, high: Any) -> str:
    """` [1.79, 1.88]`, or nothing where there is no interval."""
    first, last = number(low), number(high)
    return "" if first is None or last is None else f" [{first:.2f}, {last:.2f}]"


def rate(key: str) -> str:
    """A rate key of study.json: requests a second, or the word `saturation`."""
    try:
        return f"{given(float(key))} requests/s"
    except ValueError:
        return clean(key)
