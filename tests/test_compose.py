"""compose: every choice in conf/ composes and builds; a wrong one is one line with key, rule, value and remedy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages.compose import compose_mode, compose_study
from stages.core.bounds import MOST
from stages.core.composed import MeasureSettings, read_settings, typed_settings
from stages.core.errors import UserError
from stages.core.field_kinds import field_paths, kind_at
from stages.core.settings import Params, read_params
from stages.core.stage_names import MEASURING_STAGES

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
FACTORIAL = "factorial/baseline_only.yaml"


def names(group: str) -> list[str]:
    return sorted(file.stem for file in (CONF / group).glob("*.yaml"))


def params(**changes: Any) -> Params:
    defaults: dict[str, Any] = {"name": "a", "model": "tiny", "trace": "smoke", "modes": ["eager"], "factorials": [], "measure": "smoke"}
    return Params(**{**defaults, **changes})


def composed(mode: str = "eager", **changes: Any) -> dict[str, Any]:
    return compose_mode(params(**changes), mode, "cpu", CONF)


@pytest.fixture
def azure_file(tmp_path: Path) -> str:
    """A trace file of one's own, for the traces that need one."""
    file = tmp_path / "trace.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,10,5\n2023-11-16 18:15:47.6805900,10,5\n")
    return str(file)


@pytest.mark.parametrize("mode", names("mode"))
def test_every_mode_composes(mode: str) -> None:
    document = composed(mode)
    assert (document["mode"]["name"], document["device"]) == (mode, "cpu")
    assert set(document["code"]) == {*MEASURING_STAGES, "mode", "trace", "files"}


@pytest.mark.parametrize("model", names("model"))
def test_every_model_composes(model: str) -> None:
    assert composed(model=model)["model"]["name"] == model


@pytest.mark.parametrize("trace", names("trace"))
def test_every_trace_composes(trace: str, azure_file: str) -> None:
    overrides = [f"trace.path={azure_file}"] if trace in ("azure", "canonical") else []
    assert composed(trace=trace, overrides=overrides)["trace"]["name"] == trace


@pytest.mark.parametrize("measure", names("measure"))
def test_every_measure_composes(measure: str) -> None:
    assert composed(measure=measure)["measure"]["preset"] == measure


@pytest.mark.parametrize("factorial", names("factorial"))
def test_every_factorial_composes_with_its_own_modes(factorial: str) -> None:
    modes = list(yaml.safe_load((CONF / "factorial" / f"{factorial}.yaml").read_text())["cells"].values())
    documents = compose_study(params(modes=modes, factorials=[factorial]), "cpu", CONF)
    found = documents[f"factorial/{factorial}.yaml"]
    assert list(found["modes"].values()) == modes
    assert {cell: document["mode"]["name"] for cell, document in found["cells"].items()} == found["modes"]


@pytest.mark.parametrize("study", names("params"))
def test_every_prepared_study_composes(study: str, azure_file: str) -> None:
    given = read_params(CONF / "params" / f"{study}.yaml")
    path = [f"trace.path={azure_file}"] if given.trace == "azure" else []
    documents = compose_study(replace(given, overrides=[*given.overrides, *path]), "cuda", CONF)
    assert set(documents) == {f"{mode}.yaml" for mode in given.modes} | {f"factorial/{name}.yaml" for name in given.factorials}
    if len(given.arrival_rates) > 1:
        assert all(documents[f"{mode}.yaml"]["measure"]["load"]["one_worker"] for mode in given.modes)


def test_factorial_names_the_cells_whose_mode_nobody_asked_for() -> None:
    found = compose_study(params(modes=["eager", "dynamo"], factorials=["inductor_manual"]), "cpu", CONF)["factorial/inductor_manual.yaml"]
    assert {cell for cell, document in found["cells"].items() if document is None} == {"C", "R", "CR"}
    assert set(found["measured"]) == {"E", "dynamo"}


def test_every_mode_knows_the_baseline_that_its_answers_are_compared_with() -> None:
    documents = compose_study(params(modes=["eager", "dynamo"]), "cpu", CONF)
    assert documents["dynamo.yaml"]["baseline"] == documents["eager.yaml"]["mode"]


def test_only_code_of_its_own_mode_and_model_counts_for_a_mode() -> None:
    eager, dynamo, compiled = (composed(mode)["code"] for mode in ("eager", "dynamo", "compile"))
    assert dynamo == compiled  # the same module
    assert all(eager[stage] != dynamo[stage] for stage in MEASURING_STAGES)
    assert eager["trace"] == dynamo["trace"]
    other = composed(model="known_answer", trace="chat")["code"]
    assert all(other[key] != eager[key] for key in eager if key not in ("trace", "mode"))


@pytest.mark.parametrize(
    "name", ["plain", "with space", "café", "50%", "a,b", 'say "x"', "a=b", "{x}", "it's", "back\\slash", "[1]", "null", "7"]
)
def test_name_of_the_study_stays_as_it_was_written(name: str) -> None:
    assert composed(name=name)["name"] == name


WRONG: list[tuple[str, dict[str, Any], str]] = [
    # a name that is not in conf/
    ("model: unknown", {"model": "gpt5"}, "model: must name a file in conf/model/; got gpt5. Available: "),
    ("trace: unknown", {"trace": "mine"}, "trace: must name a file in conf/trace/; got mine. Available: "),
    ("measure: unknown", {"measure": "fast"}, "measure: must name a file in conf/measure/; got fast. Available: "),
    ("mode: unknown", {"modes": ["eager", "turbo"]}, "mode: must name a file in conf/mode/; got turbo. Available: "),
    ("factorial: unknown", {"factorials": ["pairs"]}, "factorial: must name a file in conf/factorial/; got pairs. Available: "),
    ("mode: a path", {"modes": ["eager", "../mode/eager"]}, "mode: must name a file in conf/mode/; got ../mode/eager"),
    # a key that nothing has
    ("model: key", {"overrides": ["+model.heads=4"]}, "model.heads: must be a known key; got 4. Did you mean num_heads"),
    ("trace: key", {"overrides": ["+trace.speed=4"]}, "trace.speed: must be a known key; got 4. .*Keys here: name, "),
    ("mode: key", {"overrides": ["+mode.flags=x"]}, "mode.flags: .*; got x. Keys here: name, "),
    ("measure: key", {"overrides": ["+measure.repeats=4"]}, "measure.repeats: "),
    ("measure: deep key", {"overrides": ["+measure.load.seconds=4"]}, "measure.load.seconds: "),
    ("measure: plan key", {"overrides": ["+measure.plan.speed=4"]}, "measure.plan.* speed: "),
    ("launch: key", {"overrides": ["+launch.gpus=4"]}, "launch.gpus: "),
    ("top: key", {"overrides": ["+speed=4"]}, "speed: "),
    ("key without plus", {"overrides": ["model.heads=4"]}, "got model.heads=4. The nearest key is model.num_heads: model.num_heads=4"),
    ("broken override", {"overrides": ["model.seed"]}, "overrides: must read key=value, or ~key; got model.seed. For"),
    ("override of a choice", {"overrides": ["mode=dynamo"]}, "overrides: must not override mode, .*; got mode=dynamo. Set"),
    ("override of a group", {"overrides": ["model=known_answer"]}, "overrides: must not override model, .*; got model=known_answer"),
    ("override of a params key", {"overrides": ["++device=cuda"]}, "overrides: must not override device, .*; got .*device=cuda"),
    ("override of a params section", {"overrides": ["slo.ttft_ms=5"]}, "overrides: must not override slo.ttft_ms, .*; got slo.ttft_ms=5"),
    ("override of a factorial", {"overrides": ["+factorial.twins=[]"]}, "overrides: must not override factorial.twins, "),
    # a wrong type
    ("model: type", {"overrides": ["model.num_layers=two"]}, "model.num_layers: must be a whole number; got two. Fix conf/model/ or"),
    ("trace: type", {"overrides": ["trace.rate_per_s=fast"]}, "trace.rate_per_s: must be a number; got fast. Fix conf/trace/ or"),
    ("mode: type", {"overrides": ["mode.stability=[1]"]}, "mode.stability: must be text; got "),
    ("measure: type", {"overrides": ["measure.warmup.cold_starts=few"]}, "cold_starts: must be a whole number; got few. Fix"),
    ("measure: section type", {"overrides": ["measure.load=4"]}, "measure.load: must be a mapping of the keys duration_s, "),
    ("launch: type", {"overrides": ["launch.num_threads=many"]}, "launch.num_threads: must be a whole number; got many"),
    ("seed: type", {"overrides": ["seed=x"]}, "seed: must be a whole number; got x"),
    # a value out of range
    ("model: range", {"overrides": ["model.num_layers=0"]}, "model.num_layers: must be positive; got 0. Give"),
    ("trace: range", {"overrides": ["trace.num_requests=1"]}, "trace.num_requests: must be from 2 to .*; got 1. Change"),
    ("mode: range", {"overrides": ["mode.stability=stable"]}, "mode.stability: must be one of .*; got stable. Fix"),
    ("measure: range", {"overrides": ["measure.load.duration_s=0"]}, "duration_s: must be positive and finite; got 0.0. Fix conf/measure/"),
    ("measure: starts", {"overrides": ["measure.warmup.cold_starts=-1"]}, "measure.warmup.cold_starts: must be .*; got -1. Fix"),
    ("measure: no cold start", {"overrides": ["measure.warmup.cold_starts=0"]}, "measure.warmup.cold_starts: must be "),
    ("measure: infinite", {"overrides": ["measure.load.duration_s=inf"]}, "measure.load.duration_s: must be .*; got inf"),
    ("measure: too few calls", {"overrides": ["measure.correctness.calls_per_shape=5"]}, "calls_per_shape: must be at least 6; got 5"),
    ("measure: plan range", {"overrides": ["measure.plan.virtual_decode_step_ms=0"]}, "virtual_decode_step_ms: must be from .*; got 0"),
    ("launch: threads", {"overrides": ["launch.num_threads=0"]}, "launch.num_threads: must be positive.*; got 0"),
    ("launch: timeout", {"overrides": ["launch.request_timeout_s=0"]}, "launch.request_timeout_s: must be positive.*; got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_wrong_choice_is_one_user_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error_info:
        compose_study(params(**changes), "cpu", CONF)
    assert "\n" not in str(error_info.value)


def test_whole_numbers_of_a_model_and_a_measure_may_have_an_exponent() -> None:
    found = composed(overrides=["model.seed=1e3", "model.capture_sizes=[1.0, 2e0]", "measure.warmup.cold_starts=2.0"])
    assert (found["model"]["seed"], found["model"]["capture_sizes"]) == (1000, [1, 2])
    assert typed_settings(found, "a").measure.warmup.cold_starts == 2


def test_flag_pair_that_torch_ignores_is_refused() -> None:
    with pytest.raises(UserError, match=r"mode.compile_mode: is ignored by torch unless backend is inductor; got backend=eager. Drop one"):
        composed("dynamo", overrides=["+mode.compile_mode=reduce-overhead"])


def edited_conf(folder: Path, file: str, text: str) -> Path:
    """conf/ with one file replaced."""
    shutil.copytree(CONF, folder / "conf")
    (folder / "conf" / file).write_text(text)
    return folder / "conf"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("mode/eager.yaml", "name: [", "overrides: .*eager.yaml"),
        ("mode/eager.yaml", "- 1\n", "mode: "),
        ("mode/eager.yaml", "", "mode"),
        ("mode/eager.yaml", "_target_: os.system\nname: x\n", "mode._target_: must name a class under"),
        ("mode/eager.yaml", "_target_: stages.modes.eager.Eager\n", "mode.*: must be given"),
        ("model/tiny.yaml", "_target_: stages.models.random_llama.RandomLlama\nname: ${nothing}\n", "overrides: .*nothing"),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager}\n", "factorial.baseline_only: twins: must be given"),
        (FACTORIAL, "name: baseline_only\ntwins: []\n", "factorial.baseline_only: cells: must be given"),
        (FACTORIAL, "name: other\ncells: {E: eager}\ntwins: []\n", "factorial.baseline_only.name: must be baseline_only, .*; got other"),
        (FACTORIAL, "name: baseline_only\ncells: {C: dynamo}\ntwins: []\n", "factorial.baseline_only.cells: must have E: eager"),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager, C: eagre}\ntwins: []\n", "cells.C: must name a file in conf/mode/; got eagre"),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager}\ntwins: [X]\n", "twins: must name cells of the factorial; got X. Cells: E"),
        (FACTORIAL, "name: baseline_only\ncells: [eager]\ntwins: []\n", "factorial.baseline_only: cells: "),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager}\ntwins: []\nfinalists: 2\n", "finalists: must be 0 .*; got 2"),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager}\ntwins: 3\n", "factorial.baseline_only: twins: "),
        (FACTORIAL, "name: baseline_only\ncells: {E: eager}\ntwins: []\npairs: 1\n", "factorial.baseline_only: pairs: "),
    ],
)  # fmt: skip
def test_broken_file_in_conf_is_one_user_error(file: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error_info:
        compose_study(params(factorials=["baseline_only"]), "cpu", edited_conf(tmp_path, file, text))
    assert "\n" not in str(error_info.value)


@pytest.mark.parametrize(("key", "file"), [("model.name", "tiny"), ("trace.name", "smoke"), ("measure.preset", "smoke")])
def test_what_a_file_is_called_is_no_setting(key: str, file: str) -> None:
    given = replace(read_params(), model="tiny", trace="smoke", measure="smoke", overrides=[f"{key}=other"])
    with pytest.raises(UserError, match=rf"{key}: must be {file}, as its file; got other. Fix conf/"):
        compose_study(given, "cpu", CONF)


def test_mode_must_be_called_what_its_file_is_called(tmp_path: Path) -> None:
    text = (CONF / "mode" / "eager.yaml").read_text().replace("name: eager", "name: other")
    with pytest.raises(UserError, match=r"mode.name: must be eager, as its file; got other"):
        compose_mode(params(), "eager", "cpu", edited_conf(tmp_path, "mode/eager.yaml", text))


class Command:
    """compose as a command, in a study of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "study").mkdir()
        (home / "study" / "environment.json").write_text('{"device": "cpu"}')

    def run(self, *arguments: str, **changes: Any) -> tuple[int, str]:
        defaults = {"name": "a", "model": "tiny", "trace": "smoke", "modes": ["eager"], "factorials": [], "measure": "smoke"}
        (self.home / "params.yaml").write_text(yaml.safe_dump({**defaults, **changes}))
        variables = {"OPMODE_PARAMS": str(self.home / "params.yaml"), "OPMODE_STUDY": str(self.home / "study")}
        command = [sys.executable, "-m", "stages.compose", *arguments]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def files(self) -> dict[str, bytes]:
        folder = self.home / "study" / "config"
        return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.yaml"))}


def test_command_writes_the_files_of_the_study_and_removes_those_of_the_one_before(tmp_path: Path) -> None:
    command = Command(tmp_path)
    assert command.run(modes=["eager", "dynamo"], factorials=["inductor_manual"]) == (0, "")
    first = command.files()
    assert set(first) == {"eager.yaml", "dynamo.yaml", "factorial/inductor_manual.yaml"}
    assert read_settings(tmp_path / "study" / "config" / "eager.yaml").model["name"] == "tiny"
    assert command.run(modes=["eager"]) == (0, "")
    assert command.files() == {"eager.yaml": first["eager.yaml"]}


def test_wrong_params_are_one_line_and_leave_the_files_as_they_were(tmp_path: Path) -> None:
    command = Command(tmp_path)
    assert command.run() == (0, "")
    before = command.files()
    for changes in ({"modes": ["eager", "eager"]}, {"model": "gpt5"}, {"precision": "fp8"}, {"overrides": ["model.seed=x"]}):
        status, text = command.run(**changes)
        assert (status, text.count("\n")) == (2, 1), text
        assert text.startswith("error: ")
    assert command.files() == before


def test_environment_must_have_been_described(tmp_path: Path) -> None:
    command = Command(tmp_path)
    (tmp_path / "study" / "environment.json").unlink()
    status, text = command.run()
    assert (status, text.count("\n")) == (2, 1)
    assert "environment.json: must exist; got no such file. Run dvc repro first." in text


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["seed=-1"], "seed: must be from 0 to .*; got -1"),
        (["measure.load.duration_s=1e10"], "measure.load.duration_s: must be at most 604,800; got 1"),
        (["launch.request_timeout_s=1e300"], "launch.request_timeout_s: must be at most"),
        (["launch.num_threads=100000"], "launch.num_threads: must be at most 4,096; got 100000"),
        (["+measure.load.gamma_shape=1e-9"], "measure.load.gamma_shape: must be from 0.001"),
        (["measure.steady_state.twins=3"], "measure.steady_state.twins: must be true or false; got 3"),
        (["model.tied=3"], "model.tied: must be true or false; got 3"),
        (["model.rope_theta=inf"], "model.rope_theta: must be a finite number; got inf"),
        (["+model.adapter_scale=nan"], "model.adapter_scale: must be a finite number; got nan"),
        (["model.capture_sizes=[a]"], r"model.capture_sizes\[0\]: .*; got a"),
        (["++code.warmup=x"], "overrides: must not override code.warmup"),
        (["++baseline.name=x"], "overrides: must not override baseline.name"),
        (["hydra.run.dir=/tmp/x"], "overrides: must not override hydra.run.dir"),
        (["hydra/launcher=x"], "overrides: must not override hydra/launcher"),
        (["seed=1", "++seed=2"], "overrides: must not set seed twice; got seed=1, "),
    ],
)
def test_an_override_that_would_be_misread_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        composed(overrides=overrides)


@pytest.mark.parametrize(
    ("override", "written"),
    [
        ("measure.load.duration=3", "measure.load.duration_s=3"),
        ("modle.seed=3", "model.seed=3"),
        ("launch.threads=2", "launch.num_threads=2"),
        ("measure.load.process=poisson", "+measure.load.process=poisson"),
        ("measure.load.proces=poisson", "+measure.load.process=poisson"),
        ("+seed=3", "seed=3"),
    ],
)
def test_what_is_advised_instead_of_an_unknown_key_works(override: str, written: str) -> None:
    with pytest.raises(UserError, match=rf"^overrides: must .*; got {re.escape(override)}\. .*{re.escape(written)}\.$"):
        composed(overrides=[override])
    assert composed(overrides=[written])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("nokey=1", "overrides: must name a key that conf/ has, which nokey is not; got nokey=1. The nearest key is m"),
        ("~nokey", "overrides: must name a key that conf/ has, which nokey is not; got ~nokey. The nearest key is m"),
        ("+nokey=1", "nokey: must be a known key; got 1. Keys here: name, "),
        ("seed=1=2", "overrides: must have a value that Hydra can read; got seed=1=2. Quote"),
        ("launch=big", "launch: must name a file in conf/launch/; got big. Available: local"),
        ("", "overrides: must read key=value, or ~key; got "),
    ],
)
def test_an_override_that_nothing_takes_is_refused_in_our_words(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error_info:
        composed(overrides=[override])
    assert "append" not in str(error_info.value)


@pytest.mark.parametrize("key", sorted(MOST))
def test_a_number_that_would_take_years_is_refused(key: str) -> None:
    with pytest.raises(UserError, match=rf"^{key}: must be at most {MOST[key]:,}; got {10 * MOST[key]}"):
        composed(overrides=[f"++{key}={10 * MOST[key]}"])


def test_every_number_of_a_measurement_has_a_largest_value() -> None:
    numbers = {path for path in field_paths(MeasureSettings, "measure.") if kind_at(MeasureSettings, path.split(".")[1:]) in (int, float)}
    assert numbers - {"measure.load.gamma_shape"} <= set(MOST)  # that one has a range of its own
    assert composed(overrides=[f"++{key}={MOST[key]}" for key in numbers & set(MOST)])


def test_a_key_may_be_deleted_and_given_again() -> None:
    assert composed(overrides=["~measure.load.grace_s", "+measure.load.grace_s=3"])["measure"]["load"]["grace_s"] == 3


@pytest.mark.parametrize(("rate", "is_taken"), [(0.05, False), (0.1, True), (1e6, True), (1.001e6, False)])
def test_arrivals_in_the_measured_time_are_one_at_least_and_not_too_many(rate: float, is_taken: bool) -> None:
    given: dict[str, Any] = {"arrival_rates": [min(rate, 1e6)], "overrides": [f"measure.load.duration_s={10 if rate <= 1e6 else 11}"]}
    if is_taken:
        assert composed(**given)["arrival_rates"] == [rate]
    else:
        with pytest.raises(UserError, match=r"arrival_rates: must let 1 to 10000000 requests arrive in measure.load.duration_s"):
            composed(**given)


def test_params_can_be_checked_alone_and_a_list_without_brackets_is_one_line(tmp_path: Path) -> None:
    command = Command(tmp_path)
    assert command.run("--check") == (0, "")
    assert not (tmp_path / "study" / "config").exists()
    for changes in ({"modes": "eager"}, {"factorials": "inductor_manual"}, {"modes": None}):
        status, text = command.run("--check", **changes)
        assert (status, text.count("\n")) == (2, 1), text
        assert text.startswith(f"error: params.yaml: {next(iter(changes))}: ")
