"""The page, the Markdown and the console: what they say, what they escape, what they leave out."""

from __future__ import annotations

import functools
import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from stages.views import console, markdown, page
from stages.views.badges import badges
from stages.views.drawing import Drawn
from stages.views.figures.all import draw_all
from stages.views.metrics import metrics

CAPTIONS = [
    ("lifetime", "start-up and its backlog included"),
    ("waterfall", "start-up is not included"),
    ("latency", "Start-up is not included"),
]
NOT_RANKED = ("cudagraph_trees", "max_autotune_cuda_graph", "max_autotune")
LOADING = {"src", "href", "xlink:href", "data", "poster", "action", "formaction", "srcset", "background"}


class Elements(HTMLParser):
    """Every start tag with its attributes, and all text, by tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@functools.cache
def _drawn(text: str) -> dict[str, Drawn]:
    return draw_all(json.loads(text))


def page_of(study: dict[str, Any]) -> str:
    return page.render(study, _drawn(json.dumps(study)))


def markdown_of(study: dict[str, Any]) -> str:
    return markdown.render(study, _drawn(json.dumps(study)))


@pytest.mark.parametrize("name", ["example", "hostile", "cpu_study", "bare_study"])
def test_the_page_asks_nothing_of_the_network(name: str, request: pytest.FixtureRequest) -> None:
    text = page_of(request.getfixturevalue(name))
    for tag, attributes in Elements(text).tags:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form")
        for key in LOADING & attributes.keys():
            assert (attributes[key] or "").startswith(("#", "data:,")), (tag, attributes[key])
        assert not [key for key in attributes if key.startswith("on")]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "default-src 'none'" in text


def test_a_name_cannot_leave_its_place_in_the_page(hostile: dict[str, Any]) -> None:
    text = page_of(hostile)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\x00" not in text


def test_command_with_an_at_sign_can_be_copied_from_markdown() -> None:
    from html import unescape

    text = markdown.escaped("dvc repro warmup@eager # again")
    assert unescape(text).replace("\\", "") == "dvc repro warmup@eager # again"
    assert "@" not in text  # which a Git host would make a mention


def test_a_name_cannot_leave_its_place_in_markdown(hostile: dict[str, Any]) -> None:
    text = re.sub(r"^(`{3,})\n.*?^\1$", "", markdown_of(hostile), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?<!\\)`[^`\n]+(?<!\\)`", "", text)
    assert not re.search(r"<(?!/?a[ >])", text)
    assert "http://evil" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
        assert len(widths) == 1, block


def test_the_terminal_gets_no_control_sequence_from_a_name(hostile: dict[str, Any]) -> None:
    text = console.render(hostile)
    assert "\x1b" not in text
    assert "<script>alert(1)</script>" in text


def test_every_anchor_of_the_page_exists_once(example: dict[str, Any]) -> None:
    tags = Elements(page_of(example)).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {(attributes.get("href") or attributes.get("xlink:href") or "") for _, attributes in tags}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_the_first_screen_has_sentence_badges_why_and_price(example: dict[str, Any]) -> None:
    text = html.unescape(page_of(example)).split("<nav")[0]
    assert example["verdict"]["sentence"] in text
    for words in ("llama_1b", "2.13.0", "580.95.05", "NVIDIA H200", "bf16", "flash_fwd_splitkv_kernel", "2 requests/s", "TTFT 1,000 ms"):
        assert words in text
    assert 'href="#paths"' in text
    assert 'href="#correctness"' in text
    assert re.search(r"of \d+ A/A pairs 0 differ", text)
    assert "launch-bound" in text
    for words in ("In numbers", "compile_cuda_graph: longer lives", "248 MiB", "sequences lost of "):
        assert words in text


def test_the_badges_count_what_was_proved_and_checked(example: dict[str, Any]) -> None:
    path, answers, quiet = badges(example)
    assert "6 of 7" in path.text
    assert "6 of 7" in answers.text
    example["attribution"]["inductor_manual"]["twins"]["pairs"][0]["different"] = True
    assert quiet.tone == "good"
    assert badges(example)[2].tone == "warn"
    assert "A/A pairs 1 differ" in badges(example)[2].text


def test_a_machine_that_shifted_its_speed_is_quiet_for_the_recommended_mode_alone(example: dict[str, Any]) -> None:
    shift = {"mode": "eager", "point": "decode/8", "least_us": 213.0, "most_us": 398.0, "num_shifted": 3, "of": 20}
    example["attribution"]["inductor_manual"]["speed_shift"] = shift
    quiet = badges(example)[2]
    assert quiet.tone == "warn"
    assert re.fullmatch(r"Machine quiet for compile_cuda_graph \(A/A (\d+) of \1\), not for all \(\d+ of \d+\)", quiet.text)


def test_a_machine_whose_pairs_are_too_wide_to_tell_is_not_called_quiet(example: dict[str, Any]) -> None:
    example["attribution"]["inductor_manual"]["twins"]["pairs"][1] |= {"ratio": 1.16, "low": 0.15, "high": 8.8, "different": False}
    quiet = badges(example)[2]
    assert quiet.tone == "warn"
    assert "quiet" not in quiet.text
    assert "not told apart" in markdown_of(example)


def test_the_first_screen_says_how_certain_the_verdict_is(example: dict[str, Any]) -> None:
    text = html.unescape(page_of(example)).split("<nav")[0]
    found = example["modes"]["compile_cuda_graph"]["steady_state"]["sequence"]["vs_baseline"]
    assert f"eager / compile_cuda_graph: {found['speedup']:.2f}× [{found['low']:.2f}, {found['high']:.2f}] faster, from 3 sets" in text
    assert "Runner-up: " in text


def test_a_shorter_life_that_asks_for_another_mode_is_said_on_the_first_screen(example: dict[str, Any]) -> None:
    first = page_of(example).split("<nav")[0]
    assert "cuda_graph up to 70.1 min cold / 15.1 min warm." in first
    assert ">cuda_graph: shorter lives, runner-up</th>" in first


def test_a_shorter_life_without_a_decision_is_said_so(example: dict[str, Any]) -> None:
    for choice in example["verdict"]["choices"]["3600"].values():
        choice["mode"] = "undecided"
    del example["verdict"]["spans"]
    first = page_of(example).split("<nav")[0]
    assert "the measurements do not decide" in first
    assert "should run undecided" not in first


def test_a_long_kernel_name_is_shortened_with_the_whole_name_at_hand(example: dict[str, Any]) -> None:
    name = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64"
    example["model"]["attention_kernels"] = [name]
    assert f'<dd title="{name}">cuDNN fused attention</dd>' in page_of(example)
    assert f"{name}" in markdown_of(example).replace("\\", "")


def test_stages_skipped_for_one_reason_are_one_row(example: dict[str, Any]) -> None:
    stages = ("warmup", "capture", "load", "correctness")
    example["modes"]["dynamo"] |= {"status": "skipped", "reason": "capture: no record", "evidence": None, "startup": {}, "load": {}}
    example["modes"]["dynamo"]["records"] = {
        stage: {"status": "skipped", "reason": f"no record: stage {stage} did not run", "command": f"dvc repro {stage}@dynamo"}
        for stage in stages
    }
    rows = [line for line in markdown_of(example).splitlines() if line.startswith("| dynamo |") and "no record" in line]
    assert any("| all | skipped | no record: the stage did not run | dvc repro |" in row for row in rows)
    assert len(rows) == 2


def test_each_gain_stands_beside_its_ceiling(example: dict[str, Any]) -> None:
    example["modes"]["eager"]["bottleneck"]["1"]["ceilings"] = {"replay_us": 20000.0, "kernels_us": None}
    saved = example["attribution"]["inductor_manual"]["1"]["replay_alone"]["value"]
    row = next(line for line in markdown_of(example).split("### Gains and their ceilings")[1].splitlines() if "decode batch 1 " in line)
    assert f"20.0 ms | {saved / 200:.1f} %" in row


def test_the_product_of_speed_ups_is_explained_where_it_differs(example: dict[str, Any]) -> None:
    found = example["attribution"]["inductor_manual"]["sequence"]
    found |= {"measured_speedup": 3.94, "product_of_speedups": 5.06}
    assert "measured 3.94×, product of the separate speed-ups 5.06×. They differ because" in markdown_of(example)
    found |= {"measured_speedup": 5.06, "product_of_speedups": 3.94}
    assert "save more than the product says" in markdown_of(example)


def test_profile_and_timing_that_disagree_are_not_reconciled(example: dict[str, Any]) -> None:
    contrasts = example["attribution"]["inductor_manual"]["1"]
    contrasts["kernels_given_replay"] |= {"value": 400.0, "low": 390.0, "high": 410.0}
    for saved, word in ((425.0, "| reconciled |"), (500.0, "| not reconciled |")):
        contrasts["busy_saved_us"] = saved
        assert f"{saved:.0f} µs | 400 µs \\[390, 410\\] {word}" in markdown_of(example)


def test_the_speed_up_of_study_json_is_the_one_shown(example: dict[str, Any]) -> None:
    wanted = f"{example['modes']['compile']['steady_state']['sequence']['vs_baseline']['speedup']:.2f}×"
    assert re.search(rf">compile</th>.*?{wanted} <span", page_of(example), flags=re.DOTALL)
    for text in (markdown_of(example), console.render(example)):
        assert [line for line in text.splitlines() if re.match(r"(\| )?compile ", line) and wanted in line]


@pytest.mark.parametrize("name", NOT_RANKED)
def test_a_mode_that_failed_a_proof_gets_its_reason_and_no_speed_up(name: str, example: dict[str, Any]) -> None:
    rows = [line for line in markdown_of(example).splitlines() if line.startswith(f"| {name} |")]
    assert any("refuted" in row or "wrong" in row or "unavailable" in row for row in rows)
    assert not [row for row in rows if re.search(r"\d×.*(faster|slower)", row)]
    printed = [line for line in console.render(example).splitlines() if line.startswith(f"{name} ")]
    assert printed
    assert not [line for line in printed if "×" in line]
    assert not [key for key in metrics(example).get(name, {}) if key.startswith(("speedup", "ready", "decode"))]


def test_metrics_say_that_a_mode_is_wrong_or_refuted(example: dict[str, Any]) -> None:
    found = metrics(example)
    assert found["max_autotune_cuda_graph"]["correct"] == 0
    assert found["cudagraph_trees"]["confirmed"] == 0
    assert found["compile"]["speedup_sequence"] == example["modes"]["compile"]["steady_state"]["sequence"]["vs_baseline"]["speedup"]
    assert "max_autotune" not in found
    assert "speedup_sequence" not in found["eager"]


def test_one_set_shows_no_interval_and_absent_modes_say_why(cpu_study: dict[str, Any]) -> None:
    text = markdown_of(cpu_study)
    speedups = [line for line in text.splitlines() if line.startswith("| compile |") and "×" in line]
    assert speedups
    assert not [line for line in speedups if "\\[" in line]
    for name in ("cuda_graph", "compile_cuda_graph", "cudagraph_trees", "max_autotune_cuda_graph"):
        assert f"| {name} | unavailable |" in text
    assert "waterfall.svg" not in text
    assert "unavailable" in console.render(cpu_study)


def test_a_study_in_which_all_failed_still_says_so(bare_study: dict[str, Any]) -> None:
    for text in (page_of(bare_study), markdown_of(bare_study), console.render(bare_study)):
        assert "Undecided: nothing ran." in text
        assert "out of memory" in text


def test_without_load_the_page_has_no_price_of_churn_and_no_completions(example: dict[str, Any]) -> None:
    for mode in example["modes"].values():
        mode["load"], mode["lifetime"] = {}, None
    example["verdict"] |= {"choices": {}, "recommended": {}}
    text = page_of(example)
    assert 'id="lifetime-title"' not in text
    assert "Break-even" not in text
    assert "Step times" in text


@pytest.mark.parametrize(("name", "words"), CAPTIONS)
def test_a_chart_that_ranks_modes_says_whether_start_up_is_in_it(name: str, words: str, example: dict[str, Any]) -> None:
    assert words in _drawn(json.dumps(example))[name].caption


def test_every_section_with_measured_numbers_says_how_to_measure_them_again(example: dict[str, Any]) -> None:
    text = markdown_of(example)
    for part in text.split("\n## ")[1:]:
        heading = part.splitlines()[0]
        if "|" in part and not heading.startswith("Not ranked"):
            assert "Measure again: `" in part, heading
    assert "python -m stages.load --mode compile" in text
