"""The recompile limit that a mode sets for its own process, kept from what runs after it in this one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OF_TORCH = {"recompile_limit": 8, "fail_on_recompile_limit_hit": False}
"""What a torch that was not yet imported would have had."""


@contextmanager
def kept() -> Iterator[None]:
    """Put the limits back as they were; imports no torch."""
    before = OF_TORCH if (config := _config()) is None else {name: getattr(config, name) for name in OF_TORCH}
    try:
        yield
    finally:
        if config := _config():
            for name, value in before.items():
                setattr(config, name, value)


def _config() -> Any:
    return sys.modules.get("torch.compiler.config")
