"""torch.export, then AOTInductor: one package a planned shape, built once, loaded ever after, dispatched by shape.

Weights and caches stay the service's own: a package holds no constants (`aot_inductor.package_constants_in_so` off), the
module's tensors are given to it by address, and the static inputs are written in place. Without its own check of
shapes a package takes another batch and gives wrong numbers in silence, so the check is made here: what no package
was built for runs the function itself, the baseline path, and is counted.
"""

from __future__ import annotations

import io
import logging
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stages.core import digest
from stages.modes.base import BaseMode
from stages.modes.linking import driver_can_be_linked, no_shared_cxx, no_toolkit
from stages.modes.package_identity import OPTIONS, Layouts, identity, is_aligned, layout, packages_folder

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class AotInductor(BaseMode):
    """`torch._inductor.aoti_compile_and_package(torch.export.export(step, static_inputs))`, loaded and called by shape."""

    transform: str = "aot"
    replay: str = "none"
    replays: ClassVar[tuple[str, ...]] = ("none",)

    def __post_init__(self) -> None:
        """Nothing is built yet."""
        super().__post_init__()
        self.steps: list[PackagedStep] = []

    def transforms(self) -> tuple[str, ...]:
        """Ahead of time, as claimed."""
        return ("aot",)

    def unavailable(self, device: str) -> str:
        """A package is C++; on CUDA it includes the toolkit's headers."""
        return super().unavailable(device) or no_shared_cxx() or (no_toolkit() if device == "cuda" else "")

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """A step that gets a package for every shape it is called with until `warmed_up`."""
        self.steps.append(PackagedStep(function))
        return self.steps[-1]

    def warmed_up(self) -> None:
        """Every planned shape has its package; further shapes run the baseline path."""
        for step in self.steps:
            step.is_open = False

    def weights_changed(self) -> None:
        """Give every package the addresses that the parameters have now."""
        for step in self.steps:
            step.give_constants_again()

    def counts(self) -> Counter[str]:
        """`package_built`, `package_loaded`, `unsupported_call`, and the last by shape (`unsupported_call:...`)."""
        return sum((step.counts for step in self.steps), Counter())

    def artifact(self) -> bytes | None:
        """The packages of this process in one archive, None without any."""
        files = [file for step in self.steps for file in step.files]
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for file in files:
                archive.write(file, file.name)
        return content.getvalue() if files else None

    def load_artifact(self, content: bytes) -> bool:
        """Put the packages where the steps look for them; a stale one has another name there and is not found."""
        folder = packages_folder()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                archive.extractall(folder)
        except zipfile.BadZipFile:
            return False
        return True


class PackagedStep:
    """One function; `is_open`: a shape without a package gets one. `files`: the packages in use."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Nothing is exported before the first call."""
        self.function, self.is_open = function, True
        self.counts: Counter[str] = Counter()
        self.files: list[Path] = []
        self._layouts = Layouts()
        self._packages: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._held: list[tuple[Any, torch.nn.Module]] = []

    def __call__(self, *inputs: Any) -> Any:
        """The package of these shapes, strides and types; without one, the function itself."""
        key = self._layouts.key(inputs)
        package = self._packages.get(key)
        if package is None:
            if not self.is_open or not is_aligned(inputs):
                return self._unsupported(inputs)
            package = self._packages[key] = self._obtained(inputs)
        return package(*inputs)

    def give_constants_again(self) -> None:
        """For parameters that got other storage; new values in place need no call."""
        for package, module in self._held:
            give_constants(package, module)

    def _unsupported(self, inputs: tuple[Any, ...]) -> Any:
        shapes = " ".join(str(list(tensor.shape)) for tensor in inputs if not isinstance(tensor, list | tuple))
        if not self.counts[f"unsupported_call:{shapes}"]:
            _log.warning("no package was built for %s: the baseline path runs", shapes)
        self.counts.update(("unsupported_call", f"unsupported_call:{shapes}"))
        return self.function(*inputs)

    def _obtained(self, inputs: tuple[Any, ...]) -> Callable[..., Any]:
        """Build the package unless it is there, load it, and give it the module's own tensors."""
        import torch
        from torch._dynamo.utils import dynamo_timed

        module = exported_module(self.function)
        file = packages_folder() / f"{digest.of_document([identity(self.function, module), repr(layout(inputs))])}.pt2"
        if not file.is_file():
            self._build(module, inputs, file)
        with dynamo_timed("package_load"):
            package = torch._inductor.aoti_load_package(str(file))
            give_constants(package, module)
        self._held.append((package, module))
        self.counts["package_loaded"] += 1
        self.files.append(file)
        return package

    def _build(self, module: torch.nn.Module, inputs: tuple[Any, ...], file: Path) -> None:
        import torch
        from torch._dynamo.utils import dynamo_timed

        with dynamo_timed("package_export"):
            exported = torch.export.export(module, inputs, strict=True)  # through Dynamo, which knows Triton kernels
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.stem}-{os.getpid()}.pt2")
        with dynamo_timed("package_compile"), driver_can_be_linked():
            torch._inductor.aoti_compile_and_package(exported, package_path=str(partial), inductor_configs=dict(OPTIONS))
        partial.replace(file)
        self.counts["package_built"] += 1


def exported_module(function: Callable[..., Any]) -> torch.nn.Module:
    """A module whose `forward` is the function; the module that the function belongs to is its `owner`."""
    import torch

    class Step(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    class OwnedStep(torch.nn.Module):
        def __init__(self, owner: torch.nn.Module) -> None:
            super().__init__()
            self.owner = owner

        def forward(self, *inputs: Any) -> Any:
            return getattr(self.owner, name)(*inputs)  # from the closure its weights would have other names

    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")  # here: Dynamo of 2.11 cannot trace it
    return OwnedStep(owner) if isinstance(owner, torch.nn.Module) else Step()


def give_constants(package: Any, module: torch.nn.Module) -> None:
    """Let a package read the module's own parameters and buffers, without a copy: new values in place are followed.

    `.data = ...` gives a parameter another address, which the package does not learn by itself (`weights_changed`).
    Raises RuntimeError for a constant that is neither, because it would have to be a copy.
    """
    tensors: Mapping[str, torch.Tensor] = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = package.get_constant_fqns()
    strangers = sorted(set(names) - set(tensors))
    if strangers:
        raise RuntimeError(f"the step uses tensors that are neither parameters nor buffers ({', '.join(strangers)}): register them")
    package.opmode_constants = {name: tensors[name].detach() for name in names}  # alive as long as the package
    package.load_constants(package.opmode_constants, check_full_update=True, user_managed=True)
