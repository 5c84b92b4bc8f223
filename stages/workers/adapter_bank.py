"""The adapters that a walked trace asks for: one at a time in the service's static buffers, switched by copy."""

from __future__ import annotations

from typing import Any

from stages.models.adapters import Adapter, random_adapter, switch_adapter
from stages.workers.service import Service


class AdapterBank:
    """Seeded adapters by id, made when first asked for and kept."""

    def __init__(self, service: Service) -> None:
        """None is in use."""
        self._module: Any = service.module
        self._adapters: dict[int, Adapter] = {}
        self.current: int | None = None

    def use(self, adapter_id: int | None) -> bool:
        """Whether it had to switch. None leaves the adapter that is there: a batch may hold requests of several."""
        if adapter_id is None or adapter_id == self.current:
            return False
        if adapter_id not in self._adapters:
            self._adapters[adapter_id] = random_adapter(self._module, adapter_id)
        switch_adapter(self._module, self._adapters[adapter_id])
        self.current = adapter_id
        return True
