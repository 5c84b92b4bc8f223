"""Attributes of torch's classes and modules, replaced for a while."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Replacements:
    """What was replaced, so that it can be put back in reverse order."""

    def __init__(self) -> None:
        """Nothing is replaced yet."""
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class or module."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))  # absent: inherited
        setattr(owner, name, value)

    @property
    def active(self) -> bool:
        """Something is replaced at the moment."""
        return bool(self._before)

    def restore(self) -> None:
        """Put back everything; a second call does nothing."""
        while self._before:
            owner, name, original = self._before.pop()
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
