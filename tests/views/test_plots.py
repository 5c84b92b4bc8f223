"""`dvc plots show`: the page is drawn without a network, and modes are told apart."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from stages.views.series import all_series
from stages.views.study_files import write_views
from tests.views.chromium import chromium, requests_of

ROOT = Path(__file__).resolve().parents[2]


def project_with(study: dict[str, Any], folder: Path) -> Path:
    """A DVC project without git that has this project's plots and one study's series."""
    (folder / ".dvc").mkdir(parents=True)
    shutil.copytree(ROOT / ".dvc" / "plots", folder / ".dvc" / "plots")
    shutil.copy(ROOT / ".dvc" / "plots_page.html", folder / ".dvc")
    config = (ROOT / ".dvc" / "config").read_text()
    (folder / ".dvc" / "config").write_text(config.replace("[core]", "[core]\n    no_scm = true"))
    plots = yaml.safe_load((ROOT / "dvc.yaml").read_text())["plots"]
    (folder / "dvc.yaml").write_text(yaml.safe_dump({"plots": plots}))
    write_views(study, folder / "reports" / "latest")
    return folder


@pytest.mark.browser
def test_plots_page_draws_every_mode_without_a_network(example: dict[str, Any], tmp_path: Path) -> None:
    project = project_with(example, tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "plots", "show"], cwd=project, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    page = project / "dvc_plots" / "index.html"
    with chromium(tmp_path) as browser:
        browser.get(page.as_uri())
        WebDriverWait(browser, 20).until(lambda opened: len(opened.find_elements(By.CSS_SELECTOR, "canvas, svg.marks")) >= 2)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
        assert [url for url in requests_of(browser, page.as_uri()) if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
    for series in all_series(example).values():
        for mode in {row["mode"] for row in series}:
            assert json.dumps(mode) in page.read_text()


def test_series_of_completions_tell_cold_from_warm_and_end_where_the_figure_ends(example: dict[str, Any]) -> None:
    rows = all_series(example)["completions"]
    assert {row["caches"] for row in rows} >= {"cold", "warm"}
    assert {"eager", "compile"} <= {row["mode"] for row in rows}
    assert len({max(row["lifetime_s"] for row in rows if row["mode"] == mode) for mode in ("eager", "compile")}) == 1
