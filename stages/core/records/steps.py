"""steady_state/<factorial>.json: step times of the cells of one factorial, measured in rotations."""

from __future__ import annotations

from typing import Literal

from stages.core.records.base import Document, Record


class Block(Document):
    """Consecutive calls of one cell at one shape. Nothing is dropped.

    `wall_us`: host clock around one synchronised call, a sample a call. `device_us`: device events around one call
    (empty on a CPU). `pipelined_us`: one number, an unsynchronised burst divided by its length.
    `voided` says why the block does not count (a compile or capture happened inside), or is empty.
    """

    cell: str
    mode: str
    shape: str
    set_index: int
    rotation_index: int
    order_index: int
    wall_us: list[float]
    device_us: list[float]
    pipelined_us: float
    voided: str = ""


class SequenceRun(Document):
    """One pass of one cell over the sampled step sequence, with a synchronisation after every step, as the service has."""

    cell: str
    mode: str
    set_index: int
    rotation_index: int
    sequence_s: float
    num_steps: int
    num_decode_steps: int
    voided: str = ""


class Cell(Document):
    """One cell of the factorial: its key (E, C, R, CR, an extra, or an A/A twin such as `E#2`) and what became of it."""

    cell: str
    mode: str
    status: Literal["ok", "failed", "skipped", "unavailable"]
    reason: str = ""


class Rotations(Document):
    """All blocks of all sets of one factorial, in the order they ran. Shapes are named `decode/8`, `prefill/512`."""

    factorial: str
    cells: list[Cell]
    num_sets: int
    decode_context_tokens: int
    sequence_steps: int
    sequence_steps_in_trace: int
    blocks: list[Block]
    sequences: list[SequenceRun]
    together: bool = True


class SteadyStateRecord(Record[Rotations]):
    """steady_state/<factorial>.json."""
