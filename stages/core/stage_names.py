"""The stages that measure, in the order of the pipeline; each has a folder of records of its name."""

from __future__ import annotations

MODE_STAGES = ("warmup", "capture", "load", "correctness")
"""One record a mode."""
MEASURING_STAGES = ("warmup", "capture", "steady_state", "load", "correctness")
"""With the one that has a record a factorial."""
