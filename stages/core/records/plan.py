"""trace/: the requests, the shapes planned for them, and the step sequence of the simulated scheduler."""

from __future__ import annotations

from stages.core.records.base import Document


class Request(Document):
    """One request of a trace, lengths already scaled to the model's context. `arrival_s` counts from 0, sorted.

    `adapter_id`: the LoRA adapter that it asks for, or None.
    """

    request_id: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    adapter_id: int | None = None


class StepRun(Document):
    """Consecutive steps of one kind. `size`: active sequences (decode) or prompt tokens (prefill)."""

    phase: str
    size: int
    padded_size: int
    count: int


class Plan(Document):
    """What the trace asks of a mode: the shapes to prepare and the sequence of steps, the same for every mode.

    `capture_sizes`: decode batches; `prompt_sizes`: prefill lengths in tokens (both ascending). `length_factor`
    scaled the trace's lengths to fit `context_tokens`. `recorded_rate_per_s`: requests / span.
    """

    trace: str
    num_requests: int
    span_s: float
    recorded_rate_per_s: float
    context_tokens: int
    max_batch: int
    length_factor: float
    capture_sizes: list[int]
    prompt_sizes: list[int]
    num_steps: int
    num_decode_steps: int
    runs: list[StepRun]
    statistics: dict[str, float]
    scheduler: dict[str, float | str]
