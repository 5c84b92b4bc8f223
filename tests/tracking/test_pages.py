"""MLflow's own pages over a published study, in a browser: the numbers are there, and nothing leaves this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.support.ui import WebDriverWait

from stages.tracking import ranking_view
from stages.tracking.publishing import publish_study
from tests.tracking.study_folder import example, write_study
from tests.views.chromium import chromium, requests_of

README = Path(__file__).resolve().parents[2] / "README.md"
START_S, PAGE_S = 90, 60
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")]


class Server(NamedTuple):
    """A running MLflow server over one published study. `runs`: mode -> run id."""

    url: str
    experiment: str
    runs: dict[str, str]
    study: dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("mlflow")
    study = example(("eager", "compile", "cuda_graph", "compile_cuda_graph"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPMODE_ROOT", str(root))
        patched.delenv("MLFLOW_TRACKING_URI", raising=False)
        publish_study(write_study(root / "study", study))
    uri = f"sqlite:///{root / 'mlflow.db'}"
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", uri, "--artifacts-destination", str(root / "mlartifacts")]
    quiet = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
    with (root / "server.log").open("w") as log:
        running = subprocess.Popen(command, cwd=root, env=quiet, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", running, root / "server.log")
        yield Server(f"http://127.0.0.1:{port}", *published(uri), study)
    finally:
        end(running)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up and running.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    pytest.fail(f"mlflow server does not answer at {url}: {log.read_text()[-2000:]}")


def end(running: subprocess.Popen[bytes]) -> None:
    """End the server and its worker: they are a process group of their own."""
    os.killpg(running.pid, 15)
    try:
        running.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, 9)
        running.wait(5)


def published(uri: str) -> tuple[str, dict[str, str]]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("opmode").experiment_id
    runs = client.search_runs([experiment], "tags.kind = 'mode'")
    return experiment, {run.info.run_name: run.info.run_id for run in runs}


@pytest.fixture(scope="module")
def browser(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        opened.set_window_size(1680, 900)
        yield opened


def shown(browser: webdriver.Chrome, server: Server, path: str, *expected: str) -> str:
    """The text of a page once it holds every expected text; fails with what is missing, and on any outside request."""
    browser.get("about:blank")
    browser.get(server.url + path)
    try:
        WebDriverWait(browser, PAGE_S).until(lambda opened: all(text in body(opened) for text in expected))
    except TimeoutException:
        pytest.fail(f"{path}: not on the page: {[text for text in expected if text not in body(browser)]}")
    asked = {urlsplit(url) for url in requests_of(browser, server.url)}
    assert {url.hostname for url in asked if url.scheme in ("http", "https", "ws", "wss")} == {"127.0.0.1"}
    return body(browser)


def body(browser: webdriver.Chrome) -> str:
    return str(browser.execute_script("return document.body.innerText"))


def readme_link(server: Server, parameter: str) -> str:
    """The path below the server of the README's link that has this parameter, for the experiment of this store."""
    (link,) = set(re.findall(rf"/#/experiments/1/runs\?[^`\s)]*{parameter}[^`\s)]*", README.read_text(encoding="utf-8")))
    return str(link).replace("/experiments/1/", f"/experiments/{server.experiment}/")


def in_order(text: str, names: list[str]) -> bool:
    places = [re.search(rf"^{name}$", text, re.MULTILINE) for name in names]
    return all(places) and [place.start() for place in places if place] == sorted(place.start() for place in places if place)


def sequence(server: Server, mode: str) -> dict[str, Any]:
    found: dict[str, Any] = server.study["modes"][mode]["steady_state"]["sequence"]
    return found


RANKED = ["compile_cuda_graph", "cuda_graph", "compile", "eager"]


def test_the_link_of_the_readme_ranks_modes_flat(browser: webdriver.Chrome, server: Server) -> None:
    text = shown(browser, server, readme_link(server, "orderByKey="), "4 matching runs", *RANKED)
    assert "Sort: steady_state/sequence_s" in text
    assert in_order(text, RANKED)


def test_the_saved_view_shows_the_deciding_numbers_without_a_click(browser: webdriver.Chrome, server: Server) -> None:
    speedup = sequence(server, "compile_cuda_graph")["vs_baseline"]["speedup"]
    ready = server.study["modes"]["cuda_graph"]["startup"]["cold"]["ready_s"]
    path = f"/#/experiments/{server.experiment}/runs?viewStateShareKey={ranking_view.KEY}"
    text = shown(browser, server, path, "4 matching runs", f"{speedup:.5g}"[:5], f"{ready:.5g}"[:4], "steady_state/sequence_speedup")
    assert in_order(text, RANKED)


def test_the_charts_page_draws_the_modes(browser: webdriver.Chrome, server: Server) -> None:
    link = readme_link(server, "orderByKey=") + "&compareRunsMode=CHART"
    shown(browser, server, link, "Add chart", "attribution", "steady_state", *RANKED)


def test_the_compare_page_has_params_and_metrics_of_each_mode(browser: webdriver.Chrome, server: Server) -> None:
    ids = "%2C".join(f"%22{server.runs[mode]}%22" for mode in ("eager", "compile_cuda_graph"))
    busy_us = [server.study["modes"][mode]["bottleneck"]["1"]["busy_us"] for mode in ("eager", "compile_cuda_graph")]
    path = f"/#/compare-runs?runs=%5B{ids}%5D&experiments=%5B%22{server.experiment}%22%5D"
    values = [f"{value:.0f}" for value in busy_us]  # the page draws the metrics in view only, in the order of the alphabet
    shown(browser, server, path, "Comparing 2 Runs", "attribution/bottleneck_1_busy_us", "NVIDIA H200", *values)
