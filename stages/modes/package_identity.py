"""What an AOTInductor package is specialised to, what decides its content (a stale one has another name), where it lies."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.core import digest

if TYPE_CHECKING:
    import torch

# keep_tensor_constants: else weights of up to eight elements become literals, and new values are not followed
OPTIONS = {"aot_inductor.package_constants_in_so": False, "always_keep_tensor_constants": True}
ALIGNMENT_BYTES = 16  # what Inductor's kernels assume of inputs
MOST_LISTS = 16
_PLAIN = (bool, int, float, str, tuple, type(None))


Layout = tuple[Any, ...]
"""Of one tensor: shape, strides, type, device, and whether it is aligned. Of a list of tensors: the layout of each."""


def layout(value: Any) -> Layout:
    """What a package is specialised to in one input: a tensor, or a list of them."""
    if isinstance(value, list | tuple):
        return tuple(map(layout, value))
    return value.shape, value.stride(), value.dtype, value.device, value.data_ptr() % ALIGNMENT_BYTES == 0


def is_aligned(value: Any) -> bool:
    """Whether every tensor begins where Inductor's kernels assume it."""
    return all(map(is_aligned, value)) if isinstance(value, list | tuple) else value.data_ptr() % ALIGNMENT_BYTES == 0


class Layouts:
    """The layouts of a step's inputs as a key. A list (the cache, the same at every step) is looked at once.

    Its tensors are known by identity and held, so none of them may change its layout in place (`resize_`, `set_`).
    """

    def __init__(self) -> None:
        """No list is known yet."""
        self._lists: dict[tuple[int, ...], tuple[list[Any], int]] = {}
        self._numbers: dict[Layout, int] = {}

    def key(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """One entry an input: a tensor's layout, or the number of a list's."""
        return tuple(self._number(value) if isinstance(value, list) else layout(value) for value in inputs)

    def _number(self, tensors: list[Any]) -> int:
        place = tuple(map(id, tensors))
        if place not in self._lists:
            if len(self._lists) >= MOST_LISTS:
                self._lists.clear()
            number = self._numbers.setdefault(layout(tensors), len(self._numbers))
            self._lists[place] = (list(tensors), number)
        return self._lists[place][1]


def packages_folder() -> Path:
    """Beside the worker's compile caches; in the temporary folder for a process without its own."""
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return (Path(cache).parent if cache else Path(tempfile.gettempdir()) / "opmode") / "packages"


def identity(function: Callable[..., Any], module: torch.nn.Module) -> list[Any]:
    """Whatever decides a package besides its inputs: release, machine, code, structure and layout; not the weights' values."""
    import torch

    owner = getattr(function, "__self__", function)
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    gpu = [torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)] if device.type == "cuda" else []
    machine = [torch.__version__, torch.version.cuda, gpu, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()]
    code = [function.__qualname__, digest.of_code([function.__module__]), inspect.getsource(inspect.unwrap(function))]
    plain = [(name, type(part).__qualname__, _plain(vars(part))) for name, part in module.named_modules() if part is not module]
    tensors = [(name, *map(str, layout(value)[:4])) for name, value in [*module.named_parameters(), *module.named_buffers()]]
    return [machine, code, type(owner).__module__, plain, tensors, OPTIONS, torch.get_float32_matmul_precision()]


def _plain(attributes: Mapping[str, Any]) -> list[list[str]]:
    """Numbers, texts and functions among a module's attributes: they become literals of its graph."""
    found = {name: value for name, value in attributes.items() if not name.startswith("_")}
    kept = {name: repr(value) for name, value in found.items() if isinstance(value, _PLAIN)}
    kept |= {name: value.__qualname__ for name, value in found.items() if inspect.isfunction(value)}
    return [[name, text] for name, text in sorted(kept.items())]
