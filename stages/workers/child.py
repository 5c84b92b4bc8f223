"""The worker process: hold one model in one mode, then do what the parent asks, until the pipe closes.

Started by `stages.workers.process` with two pipe descriptors. The first message is the order:
`{label, settings, plan, proof, spawned_s}`; every further one `{activity: "module:function", arguments}`. Each gets
one answer, `{result}` or `{error, trace}`. A worker whose parent is gone ends itself.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the pipe."""
    end_with_parent()
    with os.fdopen(int(sys.argv[1]), "r", encoding="utf-8") as inbox, os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as outbox:
        order = json.loads(inbox.readline())
        service: list[Any] = []

        def start() -> dict[str, Any]:
            from stages.workers.starting import start_service

            started, report = start_service(order)
            service.append(started)
            return report

        if _answer(outbox, start):
            for line in inbox:
                message = json.loads(line)
                _answer(outbox, partial(perform, service[0], message))


def perform(service: Any, message: dict[str, Any]) -> Any:
    """Run one activity on the service."""
    return activity(message["activity"])(service, **message["arguments"])


def end_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies (Linux prctl; elsewhere the closed pipe does it)."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (AttributeError, OSError):
        return


def activity(name: str) -> Callable[..., Any]:
    """The function that `stages.workers.module:function` names."""
    module, _, function = name.partition(":")
    assert module.startswith("stages.workers."), f"{name} is not an activity of a worker"
    return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]


def _answer(outbox: Any, work: Callable[[], Any]) -> bool:
    try:
        answer = {"result": work()}
    except Exception as error:  # noqa: BLE001 - whatever a mode breaks with becomes its record
        trace = traceback.format_exc().splitlines()
        answer = {"error": f"{type(error).__name__}: {str(error).strip()[:600]}", "trace": trace}
    outbox.write(json.dumps(answer) + "\n")
    outbox.flush()
    return "result" in answer


if __name__ == "__main__":
    main()
