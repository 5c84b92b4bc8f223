"""Torch's own messages, as it wrote them, and the sentence that each becomes."""

from __future__ import annotations

import pytest

from stages.instruments.compiler_sentences import SENTENCES, kind_of, limit_reached, unknown_thread

MESSAGES = {
    "recompiled": (
        "recompiles",
        "Recompiling function step in /home/me/serve/model.py:19\n    triggered by the following guard failure(s):\n"
        "    - 4/1: tensor 'x' size mismatch at index 0. expected 3, actual 4\n"
        "    - 4/0: tensor 'x' size mismatch at index 0. expected 2, actual 4",
        "recompile",
        "step at model.py:19 recompiled: tensor 'x' size mismatch at index 0. expected 3, actual 4",
    ),
    "inference mode": (
        "recompiles",
        "Recompiling function step in /a/model.py:26\n    triggered by the following guard failure(s):\n"
        "    - 6/0: tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, ADInplaceOrView), actual DispatchKeySet(CPU)",
        "recompile",
        "step at model.py:26 recompiled: tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, ADInplaceOrView), "
        "actual DispatchKeySet(CPU) (a tensor made outside inference_mode, or inside it before)",
    ),
    "guard with code": (
        "recompiles",
        "Recompiling function step in /a/model.py:26\n    triggered by the following guard failure(s):\n"
        "    - 6/0: ___stack0 == 1.5          # y = x.item()  # home/me/serve/model.py:27 in step",
        "recompile",
        "step at model.py:26 recompiled: ___stack0 == 1.5 # y = x.item() # model.py:27 in step",
    ),
    "branch": (
        "graph_breaks",
        "Graph break in user code at /a/b/model.py:12\nGraph Break Reason: Data-dependent branching\n  Explanation: Detected it.",
        "graph_break",
        "graph break at model.py:12: Data-dependent branching",
    ),
    "branch again": (
        "graph_breaks",
        "Graph break (user stack suppressed due to duplicate graph break) in user code at /a/b/model.py:12\n"
        "Graph Break Reason: Data-dependent branching\n  Explanation: Detected it.",
        "graph_break",
        "graph break at model.py:12: Data-dependent branching",
    ),
    "item": (
        "graph_breaks",
        "Graph break in user code at /a/b/model.py:16\nGraph Break Reason: Encountered graph break when attempting to trace CALL: "
        "a function call, e.g. f(x, y):\n\nUnsupported Tensor.item() call with capture_scalar_outputs=False\n  Explanation: No.",
        "graph_break",
        "graph break at model.py:16: Unsupported Tensor.item() call with capture_scalar_outputs=False",
    ),
    "skip": (
        "cudagraphs",
        'skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1). Found from : \n   File "/a/model.py", line 22, in m\n',
        "cudagraph_skip",
        "CUDA graphs skipped: cpu device (arg0_1), first at model.py:22",
    ),
    "mutated inputs": (
        "cudagraphs",
        "skipping cudagraphs due to mutated inputs (32 instances). Found from : \n",
        "cudagraph_skip",
        "CUDA graphs skipped: mutated inputs (32 instances)",
    ),
    "limit": (
        "recompile_limits",
        "torch._dynamo hit config.recompile_limit (8)\n   function: 'step' (/a/model.py:19)\n"
        "   last reason: 4/7: tensor 'x' size mismatch at index 0. expected 9, actual 10\nTo log all reasons, use TORCH_LOGS.",
        "recompile_limit",
        "step at model.py:19 reached recompile_limit 8: tensor 'x' size mismatch at index 0. expected 9, actual 10; "
        "what is new runs eagerly",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_message_becomes_one_sentence_with_reason_and_line(case: str) -> None:
    artifact, message, kind, sentence = MESSAGES[case]
    assert kind_of(artifact, message) == kind
    assert SENTENCES[kind](message) == sentence


@pytest.mark.parametrize("kind", SENTENCES)
def test_message_of_another_form_is_kept_on_one_line_and_cut(kind: str) -> None:
    text = SENTENCES[kind]("something\nnew " + "x" * 400)
    assert "something new" in text
    assert len(text) <= 280
    assert "\n" not in text


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Re-recording function=1, reason=StaticInputIdx", "rerecording"),
        ("Created 3 graph partitions: 2 cudagraphable", "partition"),
        ("recording cudagraph tree for graph without symints", None),
    ],
)
def test_only_what_concerns_a_path_has_a_kind(message: str, kind: str | None) -> None:
    assert kind_of("cudagraphs", message) == kind


def test_limit_is_found_in_a_whole_log_with_its_prefixes() -> None:
    prefix = "W1129 23:19:52 convert_frame.py:1994] [4/8] "
    log = "\n".join(["starting", *(prefix + line for line in MESSAGES["limit"][1].splitlines()), "the end"])
    assert limit_reached(log) == "step at model.py:19 reached recompile_limit 8: tensor 'x' size mismatch at index 0. expected 9, actual 10"
    assert limit_reached("nothing happened") is None


def test_assertion_without_a_text_is_explained_by_its_line() -> None:
    trace = [
        '  File "torch/_inductor/cudagraph_trees.py", line 359, in get_obj',
        "    assert torch._C._is_key_in_tls(attr_name)",
        "AssertionError",
    ]
    assert "from a thread that it does not know" in str(unknown_thread(trace))
    assert unknown_thread(trace[::2]) is None
