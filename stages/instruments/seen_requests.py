"""From the steps that a program was seen to run to requests: a canonical trace that a study can replay.

More than one token a sequence is a prefill: each of its sequences is a request that arrives then. One token a sequence is a
decode step: every active request gets a token, and when it has fewer sequences than there are active requests the oldest
have finished. Where a program pads its batches, its sizes are the padded ones, so that requests seem to last longer.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from stages.core import atomic
from stages.core.errors import UserError
from stages.core.records.plan import Request
from stages.instruments.token_shapes import Seen

COLUMNS = ("request_id", "arrival_s", "prompt_tokens", "output_tokens")


def requests_of(steps: Iterable[Seen]) -> list[Request]:
    """Requests in order of arrival, the first at 0 s."""
    requests: list[dict[str, float]] = []
    active: list[dict[str, float]] = []
    for step in steps:
        if step.num_tokens > 1:
            new = [{"at_s": step.at_s, "prompt": step.num_tokens, "output": 1} for _ in range(step.num_sequences)]
        else:
            active = active[max(0, len(active) - step.num_sequences) :]
            new = [] if active else [{"at_s": step.at_s, "prompt": 1, "output": 0} for _ in range(step.num_sequences)]
        requests += new
        active += new
        for request in active if step.num_tokens == 1 else []:
            request["output"] += 1
    start_s = requests[0]["at_s"] if requests else 0.0
    return [
        Request(request_id=i, arrival_s=one["at_s"] - start_s, prompt_tokens=int(one["prompt"]), output_tokens=int(one["output"]))
        for i, one in enumerate(requests)
    ]


def write_requests(file: Path, requests: Sequence[Request]) -> int:
    """Write the canonical CSV; the number of requests. Raises UserError where they arrive at fewer than two times."""
    num_times = len({request.arrival_s for request in requests})
    if num_times < 2:
        rule = (
            "a trace needs prompts that arrive at two times at least:"
            " steps on token ids, seen in compiled calls, eager embeddings or replays"
        )
        raise UserError(str(file), rule, f"{len(requests)} requests at {num_times} times", "Watch the program while it serves.")
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(request.model_dump(include=set(COLUMNS)) | {"arrival_s": f"{request.arrival_s:.6f}"} for request in requests)
    atomic.write_text(file, text.getvalue())
    return len(requests)
