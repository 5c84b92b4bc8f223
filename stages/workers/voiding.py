"""Why a timed window does not count: the compiler ran inside, or calls that should have been replays were none."""

from __future__ import annotations

from stages.workers.service import Service


class Window:
    """From its making until `reason` is asked for."""

    def __init__(self, service: Service) -> None:
        """It begins now."""
        self._phases, self._replays = service.instruments["phases"], service.instruments.get("replays")
        self._compiled_s = self._phases.total_s()
        self._num_before = self._replays.num if self._replays else 0

    def reason(self, num_calls: int) -> str:
        """A sentence, or an empty string, after `num_calls` steps; a mode that replays has at least one replay a step."""
        spent_s = self._phases.total_s() - self._compiled_s
        if spent_s > 0:
            return f"the compiler ran for {spent_s:.3f} s inside"
        num_replays = self._replays.num - self._num_before if self._replays else num_calls
        return f"{num_replays} replays in {num_calls} steps of a mode that replays" if num_replays < num_calls else ""
