"""What the queue means: by its share, and by what the mode serves at most."""

from __future__ import annotations

import pytest

from stages.analysis.queueing import sentence
from stages.core.records.load import LoadRun
from tests.analysis.hand_made import example_records


def run(share: float, rate_per_s: float = 12.0, num_completed: int = 60) -> LoadRun:
    data = example_records().load["eager"].data
    assert data is not None
    return data.runs[0].model_copy(update={"queueing_share": share, "arrival_rate_per_s": rate_per_s, "num_completed": num_completed})


@pytest.mark.parametrize(
    ("share", "max_goodput", "said"),
    [
        (0.02, 40.0, "Requests spend 2% of their time in the queue: a faster step shortens them almost by as much."),
        (0.8, 40.0, "though the mode serves 40 requests/s: they come in bursts"),
        (0.8, None, "no rate tried was met: at which load the step decides was not measured"),
        (0.8, 6.0, "12 requests/s arrive, at most 6 are served within the limits"),
        (0.8, 6.0, "below 6 requests/s the step decides."),
    ],
)
def test_queue_is_judged_by_what_the_mode_serves_at_most(share: float, max_goodput: float | None, said: str) -> None:
    assert said in sentence(run(share), max_goodput)


def test_nothing_is_said_without_a_completed_request() -> None:
    assert "nothing can be said" in sentence(run(0.0, num_completed=0), 40.0)
