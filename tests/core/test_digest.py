"""The hash of what a stage runs: meaning counts, wording does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.core import digest

SOURCES = {
    "warmup.py": '"""Stage."""\nfrom stages.core import atomic\n\nWORK = "stages.workers.timing:time_block"\n\ndef main():\n    return 1\n',
    "core/__init__.py": "",
    "core/atomic.py": "def write():\n    from stages.core.paths import root\n\n    return root()\n",
    "core/paths.py": "def root():\n    return 1\n",
    "workers/timing.py": "import time\n\n\ndef time_block():\n    return time.monotonic()\n",
    "views/page.py": "WIDTH = 100\n",
}


def forget() -> None:
    for cached in (digest._tree_of, digest._meaning_of, digest._imports_of):
        cached.cache_clear()


class Package:
    """A package of a few modules; `edit` replaces text in one of them and says whether the hash of warmup changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in SOURCES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def hash(self, module: str = "stages.warmup") -> str:
        forget()
        return digest.of_code([module])

    def edit_counts(self, name: str, old: str, new: str) -> bool:
        before, text = self.hash(), (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))
        return self.hash() != before


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.setattr(digest, "_PACKAGE", tmp_path / "stages")
    yield Package(tmp_path / "stages")
    forget()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("warmup.py", "Stage.", "Another docstring."),
        ("warmup.py", "def main():", "# a comment\n\n\ndef main():  # another"),
        ("warmup.py", "return 1", "return (\n        1\n    )"),
        ("workers/timing.py", "return time", "# why\n    return time"),
        ("core/paths.py", "def root():\n", 'def root():\n    """Docstring."""\n'),
        ("views/page.py", "100", "120"),
    ],
    ids=["docstring", "comment", "layout", "comment in a named module", "new docstring", "module that it does not import"],
)
def test_edit_without_meaning_for_the_stage_does_not_count(package: Package, name: str, old: str, new: str) -> None:
    assert not package.edit_counts(name, old, new)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("warmup.py", "return 1", "return 2"),
        ("core/atomic.py", "return root()", "return [root()]"),
        ("core/paths.py", "return 1", "return 2"),
        ("workers/timing.py", "monotonic", "perf_counter"),
        ("warmup.py", "timing:time_block", "timing:time_sequence"),
    ],
    ids=["itself", "imported module", "import inside a function", "module named in a string", "the name itself"],
)
def test_edit_with_meaning_for_the_stage_counts(package: Package, name: str, old: str, new: str) -> None:
    assert package.edit_counts(name, old, new)


def test_modules_that_import_one_another_have_a_hash(package: Package) -> None:
    (package.folder / "core" / "paths.py").write_text("from stages.core import atomic\n")
    assert package.hash("stages.core.paths") != package.hash("stages.core.atomic.write")


def test_measuring_stages_of_this_package_have_hashes_of_their_own() -> None:
    stages = ("warmup", "capture", "steady_state", "load", "correctness")
    assert len({digest.of_code([f"stages.{stage}"]) for stage in stages}) == len(stages)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda children: st.dictionaries(st.text(), children), max_leaves=8
)


@given(st.dictionaries(st.text(), _VALUES))
def test_order_of_keys_does_not_change_a_documents_hash(document: dict[str, object]) -> None:
    reversed_document = dict(reversed(list(document.items())))
    assert digest.of_document(document) == digest.of_document(reversed_document) == digest.of_document(json.loads(json.dumps(document)))


def test_other_content_is_another_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    assert digest.of_file(tmp_path / "a") != digest.of_file(tmp_path / "b")
    assert digest.of_document([1]) != digest.of_document([2])
