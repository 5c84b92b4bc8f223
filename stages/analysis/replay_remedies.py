"""What the host does in a step that replays, and what the framework's documentation offers against each part.

Yardstick: pytorch#150488 counts 176 us of guards and wrappers, 128 us of tree checks, 41 us of launch and 72 us of kernels
in a step of 417 us, of which launch and kernels alone would be 113 us.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A field of `ReplayCost`, what it is called, the remedy and where that is documented."""

    key: str
    name: str
    remedy: str
    documented_at: str


YARDSTICK = "pytorch#150488: guards and wrappers 176 µs, tree checks 128 µs, launch 41 µs, kernels 72 µs"
_OWN_CAPTURE = "capture the compiled step yourself (torch.cuda.graph): a replay of your own runs none of it"

PARTS = (
    Part(
        "guards_us",
        "guards",
        f"{_OWN_CAPTURE}; or drop guards that cannot fail: guard_filter_fn=torch.compiler.skip_guard_on_all_nn_modules_unsafe in options",
        "https://docs.pytorch.org/docs/stable/torch.compiler_api.html",
    ),
    Part("wrapper_us", "wrappers", _OWN_CAPTURE, "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"),
    Part(
        "tree_checks_us",
        "tree checks",
        f"{_OWN_CAPTURE}; or fewer graphs a step (fullgraph=True, no graph breaks)",
        "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
    Part(
        "input_copies_us",
        "input copies",
        "keep inputs at their address and say so: torch._dynamo.mark_static_address(tensor)",
        "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
    Part(
        "graph_launch_us",
        "graph launch",
        "fewer graphs a step, each a straight line of kernels, which a driver from CUDA 12.6 on launches in nearly constant time",
        "https://developer.nvidia.com/blog/constant-time-launch-for-straight-line-graphs-and-other-performance-enhancements/",
    ),
    Part("other_us", "Python around it", "", ""),
)
