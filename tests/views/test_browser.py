"""report.html in a real browser: nothing complains, nothing is asked for, the numbers are there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from stages.views.study_files import write_views

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
INSTALL = "install the browser first: apt-get update && apt-get install -y chromium chromium-driver"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        pytest.fail(INSTALL)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


def requests_of(browser: webdriver.Chrome, document: str) -> list[str]:
    """What one page asked for; the browser's own pages ask as well."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent if each["documentURL"] == document]


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
    for number in (f"{speedup:.2f}×", "248 MiB of graphs", "48.2 s cold"):
        assert number in body
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the verdict"
