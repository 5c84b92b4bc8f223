"""Exclusive seconds of each compilation phase on the main thread.

torch reports every timed region of its compiler as a begin and an end event (`ChromiumEventLogger`, private, checked
on 2.11 and 2.13). Following them as a stack gives, at any moment, the innermost phase; that phase gets the time.
Work inside compile pools (other processes and threads) is not on the main thread: only waiting for it is counted.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

_CATEGORY_BY_PREFIX = (
    ("package_export", "export_s"),
    ("package_load", "package_load_s"),
    ("package_compile", "inductor_s"),
    ("CUDAGraphNode.record", "record_s"),
    ("CachingAutotuner.benchmark", "autotune_s"),
    ("CachingAutotuner.coordinate_descent", "autotune_s"),
    ("CachingAutotuner.autotune", "autotune_s"),
    ("benchmark", "autotune_s"),
    ("async_autotune", "autotune_s"),
    ("AlgorithmSelectorCache", "autotune_s"),
    ("_template_precompiling", "kernel_compile_s"),
    ("precompile", "kernel_compile_s"),
    ("compile_file", "kernel_compile_s"),
    ("async_compile", "kernel_compile_s"),
    ("CachingAutotuner", "kernel_compile_s"),
    ("triton_compile", "kernel_compile_s"),
    ("inductor_compile", "inductor_s"),
    ("fx_codegen", "inductor_s"),
    ("compile_fx", "inductor_s"),
    ("AOTAutogradCache.inductor_load", "inductor_s"),
    ("TritonBundler", "inductor_s"),
    ("PyCodeCache", "inductor_s"),
    ("backend_compile", "aot_autograd_s"),
    ("create_aot", "aot_autograd_s"),
    ("aot_", "aot_autograd_s"),
    ("AOTAutogradCache", "aot_autograd_s"),
    ("dynamo", "dynamo_s"),
    ("entire_frame_compile", "dynamo_s"),
    ("build_guards", "dynamo_s"),
    ("bytecode_tracing", "dynamo_s"),
)


@dataclass
class CompilePhases:
    """Seconds a category so far; `install()` once a process, before the first compilation.

    `regions` counts the regions entered on the main thread by torch's own name; `pool_s` is the time of the outermost
    regions on other threads (a compile pool inside the process), apart because it overlaps with the main thread's.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    regions: Counter[str] = field(default_factory=Counter)
    pool_s: float = 0.0
    missing: str = ""
    _stack: list[str] = field(default_factory=list)
    _since: float = 0.0
    _elsewhere: threading.local = field(default_factory=threading.local)

    def install(self) -> None:
        """Wrap torch's event logger. Where its names are gone, `missing` says so and every phase stays zero."""
        import torch._dynamo.utils as dynamo_utils

        logger = getattr(dynamo_utils, "ChromiumEventLogger", None)
        if logger is None or not hasattr(logger, "log_event_start") or not hasattr(logger, "log_event_end"):
            self.missing = "torch._dynamo.utils.ChromiumEventLogger.log_event_start/log_event_end not found"
            return
        self._wrap(logger)

    def total_s(self, without: str = "") -> float:
        """Seconds in all phases together, or in all but one."""
        return sum(seconds for phase, seconds in self.seconds.items() if phase != without)

    def begin(self, event: str) -> None:
        """Enter a timed region. Regions with an unknown name count for the region around them."""
        self._charge()
        self.regions[event] += 1
        self._stack.append(_category(event) or (self._stack[-1] if self._stack else "dynamo_s"))

    def end(self) -> None:
        """Leave the innermost region."""
        self._charge()
        if self._stack:
            self._stack.pop()

    def begin_elsewhere(self) -> None:
        """Enter a region on another thread than the main one."""
        starts: list[float] = self._elsewhere.__dict__.setdefault("starts", [])
        starts.append(time.monotonic())

    def end_elsewhere(self) -> None:
        """Leave it; only the outermost region of the thread counts."""
        starts: list[float] = self._elsewhere.__dict__.setdefault("starts", [])
        if starts:
            since = starts.pop()
            self.pool_s += 0.0 if starts else time.monotonic() - since

    def _charge(self) -> None:
        now = time.monotonic()
        if self._stack:
            self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def _wrap(self, logger: Any) -> None:
        start, end = logger.log_event_start, logger.log_event_end
        main = threading.main_thread()

        def log_event_start(this: Any, event_name: str, *arguments: Any, **keywords: Any) -> Any:
            if threading.current_thread() is main:
                self.begin(event_name)
            else:
                self.begin_elsewhere()
            return start(this, event_name, *arguments, **keywords)

        def log_event_end(this: Any, event_name: str, *arguments: Any, **keywords: Any) -> Any:
            if threading.current_thread() is main:
                self.end()
            else:
                self.end_elsewhere()
            return end(this, event_name, *arguments, **keywords)

        logger.log_event_start, logger.log_event_end = log_event_start, log_event_end


def _category(event: str) -> str | None:
    return next((category for prefix, category in _CATEGORY_BY_PREFIX if event.startswith(prefix)), None)
