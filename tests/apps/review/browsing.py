"""A real browser in front of a review, for the tests that need one."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

from gmpll.apps.review.app import make_server

CHROMIUM = os.environ.get("GMPLL_CHROMIUM") or shutil.which("chromium") or ""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: A row is there and takes keys.
READY = "#desk:not([hidden]):not([aria-busy])"


@contextmanager
def launched():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def served(session):
    """The address of a page that is served while the block runs."""
    running = make_server(session)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.server.started:
        time.sleep(0.01)
    yield running.address
    running.server.should_exit = True
    thread.join(30)
