"""The report of resolved labels in a real browser."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright")

from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from gmpll.apps.cli import app

CHROMIUM = os.environ.get("GMPLL_CHROMIUM") or shutil.which("chromium") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE = next(
    (
        file
        for folder in Path(__file__).parents
        if (file := folder / "node_modules" / "axe-core" / "axe.min.js").is_file()
    ),
    None,
)
HOSTILE = "<img src=x onerror=window.hit=1>"

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.RandomState(0)
    truth = rng.randint(3, size=120)
    X = rng.randn(3, 4)[truth] * 2 + rng.randn(120, 4)
    names = np.array(["cat", "dog", HOSTILE])
    tags = ["|".join({names[t], names[rng.randint(3)]}) for t in truth]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(tags=tags)
    frame.to_csv(folder / "in.csv", index=False)
    command = ["disambiguate", str(folder / "in.csv"), "--candidates", "tags", "--method", "plknn"]
    command += ["--review-below", "1"]
    result = CliRunner().invoke(app, [*command, "--out", str(folder / "out")])
    assert result.exit_code == 0, result.output
    return folder / "out" / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_opens_without_trouble_and_shows_its_parts(report, scheme, width):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
        troubles = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text))
        page.on("request", lambda request: troubles.append(request.url))
        page.goto(report.as_uri())
        headings = page.locator("h2").all_inner_texts()
        assert {"Rows worth a look", "Which labels are confused"} <= set(headings)
        first = page.locator("details.row").first
        first.locator("summary").press("Enter")  # reasons open by keyboard
        assert first.get_attribute("open") is not None
        assert page.evaluate("window.hit") is None  # a hostile label stays text
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, "the page scrolls sideways"
        assert page.locator(".bar").count() > 0
        browser.close()
    assert troubles == [report.as_uri()]


def test_rows_are_searched_and_sorted_and_stay_without_scripts(report):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page()
        page.goto(report.as_uri())
        rows = page.locator("#rows > details")
        n = rows.count()
        assert n > 10
        assert page.locator("#shown").inner_text() == f"{n} rows"
        page.select_option("#order", "id")
        ids = [int(text) for text in page.locator(".rowid").all_inner_texts()]
        assert ids == sorted(ids)
        page.select_option("#order", "doubt")
        assert [int(text) for text in page.locator(".rowid").all_inner_texts()] != ids
        page.fill("#search", f"{HOSTILE.upper()} dog")
        assert 0 < page.locator("#rows > details:visible").count() < n
        page.fill("#search", "no such row")
        assert page.locator("#shown").inner_text() == f"0 of {n} rows"
        plain = browser.new_context(java_script_enabled=False).new_page()
        plain.goto(report.as_uri())
        assert plain.locator("#rows > details:visible").count() == n
        assert not plain.locator("#tools").is_visible()
        browser.close()


@pytest.mark.skipif(AXE is None, reason="axe is not installed: npm install --no-save axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(report, scheme):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_context(bypass_csp=True, color_scheme=scheme).new_page()
        page.goto(report.as_uri())
        page.locator("details.row").first.locator("summary").press("Enter")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("async () => (await axe.run()).violations")
        browser.close()
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
