"""report.html in a real browser: nothing complains, nothing is asked for, the numbers are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from stages.views.study_files import write_views
from tests.views.chromium import chromium, requests_of


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path) as opened:
        yield opened


@pytest.mark.browser
def test_the_page_opens_by_itself_on_a_phone_and_by_keyboard(browser: webdriver.Chrome, example: dict[str, Any], tmp_path: Path) -> None:
    write_views(example, tmp_path)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    browser.get((tmp_path / "report.html").as_uri())
    assert browser.get_log("browser") == []
    asked = requests_of(browser, (tmp_path / "report.html").as_uri())
    assert [url for url in asked if not url.startswith("data:,")] == [(tmp_path / "report.html").as_uri()]
    assert browser.find_element(By.TAG_NAME, "h1").text == example["verdict"]["sentence"]
    body = browser.find_element(By.TAG_NAME, "body").text
    speedup = example["modes"]["compile"]["steady_state"]["sequence"]["vs_baseline"]["speedup"]
    for number in (f"{speedup:.2f}×", "248 MiB", "48.2 s"):
        assert number in body
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the verdict"


@pytest.mark.browser
def test_no_cell_of_a_kept_page_runs_into_the_next(browser: webdriver.Chrome) -> None:
    pages = sorted((Path(__file__).resolve().parents[2] / "reports" / "studies").glob("*/report.html"))
    assert pages
    for page in pages:
        browser.get(page.as_uri())
        cells = browser.execute_script(
            "return [...document.querySelectorAll('th, td')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        )
        assert [cell.text for cell in cells] == [], page.parent.name
