"""What a composed node may name, and what it may say."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.build import build
from stages.core.errors import UserError
from stages.modes.eager import Eager

EAGER = {
    "_target_": "stages.modes.eager.Eager",
    "name": "eager",
    "documented_at": "https://example.org",
    "stability": "public",
    "configuration": "model(x)",
}


def test_node_becomes_the_object_it_names() -> None:
    mode = build(EAGER, "mode")
    assert isinstance(mode, Eager)
    assert (mode.name, mode.transform, mode.replay) == ("eager", "none", "none")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_target_": "os.system"}, "mode._target_: must name a class under stages.modes"),
        ({"_target_": None}, "mode._target_: must name a class under"),
        ({"_target_": ["stages.modes.eager.Eager"]}, "mode._target_: must name a class under"),
        (
            {"_target_": "stages.modes.eager.Missing"},
            "mode._target_: must name a class that can be imported; got stages.modes.eager.Missing",
        ),
        ({"_target_": "stages.modes.nowhere.Eager"}, "mode._target_: must name a class that can be imported"),
        ({"_target_": "stages.modes.base.Any"}, "mode._target_: must name a dataclass"),
        ({"_target_": "stages.modes.captured.ManualCapture"}, "mode._target_: must name a dataclass"),
        ({"backend": "inductor"}, "mode.backend: .*got inductor. Keys here: name, family"),
        ({"name": ["eager"]}, "mode.name: "),
        ({"name": "???"}, "mode.name: must be given; got nothing"),
        ({"stability": "stable"}, "mode.stability: must be one of public, prototype, private; got stable"),
    ],
)
def test_wrong_node_is_one_user_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error_info:
        build({**EAGER, **changes}, "mode")
    assert "\n" not in str(error_info.value)


def test_key_that_has_no_default_must_be_given() -> None:
    node = {key: value for key, value in EAGER.items() if key != "stability"}
    with pytest.raises(UserError, match=r"mode.stability: must be given"):
        build(node, "mode")
