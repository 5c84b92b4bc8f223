"""What the queue means under load: whether a faster step helps at this rate, and at which rate it would."""

from __future__ import annotations

from stages.core.records.load import LoadRun

DOMINATES = 0.5
"""Of the time of completed requests."""


def sentence(run: LoadRun, max_goodput: float | None) -> str:
    """One sentence a run. `max_goodput`: what the mode serves within the limits at most, 1/s; None where no rate was met."""
    if not run.num_completed:
        return "No request was completed: nothing can be said about the queue."
    text = f"Requests spend {run.queueing_share:.0%} of their time in the queue"
    if run.queueing_share < DOMINATES:
        return f"{text}: a faster step shortens them almost by as much."
    if max_goodput is None:
        return f"{text}, and no rate tried was met: at which load the step decides was not measured."
    if run.arrival_rate_per_s <= max_goodput:
        return f"{text}, though the mode serves {max_goodput:.3g} requests/s: they come in bursts, and the queue is that of the bursts."
    return (
        f"{text}: {run.arrival_rate_per_s:.3g} requests/s arrive, at most {max_goodput:.3g} are served within the limits. A slightly"
        " faster step changes little at this load, since the queue grows until as many are served as arrive;"
        f" below {max_goodput:.3g} requests/s the step decides."
    )
