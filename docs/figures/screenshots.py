"""Pictures of the report and of the review page for the front page of the site.

``python docs/figures/screenshots.py`` resolves the made-up messages of
``examples/crowd_annotation.py`` and writes ``docs/images/{report,review}-{light,dark}.png``. It
needs ``gmpll[review]``, Playwright and Chromium (``GMPLL_CHROMIUM`` names another one).
"""

from __future__ import annotations

import io
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from gmpll.apps.review.app import make_server
from gmpll.apps.review.session import open_review

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 960, "height": 640}
#: Enough for flat pages, and a quarter of the bytes.
N_COLOURS = 96
MAX_BYTES = 150_000


def resolved(folder: Path) -> Path:
    """Make the messages and resolve them."""
    runpy.run_path(str(ROOT / "examples" / "crowd_annotation.py"))["write_data"](str(folder))
    command = [sys.executable, "-m", "gmpll", "disambiguate", "messages.csv"]
    command += ["--votes", "votes.csv", "--out", "resolved"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "resolved"


def shoot(browser: Browser, address: str, name: str, ready: str) -> None:
    """Write a picture of a page in light and in dark."""
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport=SIZE, color_scheme=scheme)
        context.add_init_script("localStorage.setItem('gmpll-reviewer', 'Ben')")
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(ready)
        page.wait_for_timeout(500)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        path = IMAGES / f"{name}-{scheme}.png"
        picture.quantize(N_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{path} has {path.stat().st_size} bytes: make it smaller.")
        context.close()


def main() -> None:
    """Take all pictures."""
    chromium = os.environ.get("GMPLL_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        raise SystemExit("There is no Chromium: name one in GMPLL_CHROMIUM.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        results = resolved(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shoot(browser, (results / "report.html").as_uri(), "report", "h1")
        session = open_review(results)
        running = make_server(session)
        thread = threading.Thread(target=running.run, daemon=True)
        thread.start()
        while not running.server.started:
            time.sleep(0.01)
        shoot(browser, running.address, "review", "#desk:not([hidden])")
        running.server.should_exit = True
        thread.join(30)
        session.store.close()
        browser.close()


if __name__ == "__main__":
    main()
