"""A walk by the documentation: from one column per annotator to a served model, in seven commands.

    python benchmarks/walk.py FOLDER [--rows 400] [--seed 0]

An invented table of tickets (wrong_labels.py: texts, four annotators, a tenth of the rows without
the right label) whose labels are written in several ways. A reviewer sits at the page in Chromium
and decides the rows that it offers, until it says that the doubtful ones are done, by the true
label: the key of the candidate or of the suggestion, else the search. Accuracy before and after,
and that of new tickets over HTTP. Needs playwright and Chromium (GMPLL_CHROMIUM names it).
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from wrong_labels import CARE, tickets, with_votes

CHROMIUM = os.environ.get("GMPLL_CHROMIUM") or shutil.which("chromium")
SHOUTED, SPACED = 0.15, 0.1


def write_tickets(path, rows, seed):
    """Write the table; return the true topics."""
    rng = np.random.default_rng(seed)
    frame, truth = tickets(rng, rows)
    frame = with_votes(frame, truth, rng.random(rows) < 0.1, rng)
    frame.insert(0, "ticket_id", [f"T{row:04d}" for row in range(rows)])
    for who in CARE:
        chance, cells = rng.random(rows), frame[who]
        cells = cells.where(chance >= SHOUTED, cells.str.capitalize())
        frame[who] = cells.where((cells == "") | (chance <= 1 - SPACED), cells + " ")
    frame.to_csv(path, index=False)
    return dict(zip(frame["ticket_id"], truth, strict=True))


def run(*arguments, **more):
    print(f"\n$ gmpll {' '.join(map(str, arguments))}", flush=True)
    subprocess.run([gmpll(), *map(str, arguments)], check=True, **more)


def gmpll():
    return str(Path(sys.executable).with_name("gmpll"))


def accuracy(folder, truth):
    with (folder / "resolved.csv").open(newline="") as file:
        found = {row["ticket_id"]: row["label"] for row in csv.DictReader(file)}
    return np.mean([plain(found[key]) == label for key, label in truth.items()])


def plain(label):
    return label.strip().lower()


@contextmanager
def started(*arguments, mark, **more):
    """Start a server and give the address in the line that holds the mark."""
    print(f"\n$ gmpll {' '.join(map(str, arguments))}", flush=True)
    server = subprocess.Popen([gmpll(), *map(str, arguments)], stdout=-1, text=True, **more)
    line = next(line for line in server.stdout if mark in line)
    print(line.strip())
    try:
        yield line.split()[-1]
    finally:
        server.terminate()
        server.wait()


def review(address, truth):
    """Decide what the page offers; return how many rows that were."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(10_000)
        page.goto(address)
        page.fill("#reviewer", "Ben")
        page.keyboard.press("Enter")
        ready = "#desk:not([hidden]):not([aria-busy])"
        decided = 0
        while page.wait_for_selector(f"{ready}, #done:not([hidden])").get_attribute("id") == "desk":
            heading = page.inner_text("#item-heading")
            right = truth[heading.removeprefix("Row ")]
            names = [
                plain(name) for name in page.locator(".candidate:visible .name").all_inner_texts()
            ]
            if right in names and names.index(right) < page.locator("#candidates li").count():
                page.keyboard.press(str(names.index(right) + 1))
            elif right in names:
                page.keyboard.press("y")
            else:
                page.keyboard.press("/")
                page.keyboard.type(right)
                page.wait_for_selector("#found [role=option]")
                page.keyboard.press("Enter")
            page.wait_for_function(
                "was => document.getElementById('item-heading').innerText !== was"
                " || !document.getElementById('done').hidden",
                arg=heading,
            )
            decided += 1
        print(
            page.inner_text("#done-heading"), *page.inner_text("#summary").splitlines(), sep="\n  "
        )
        browser.close()
    return decided


def ask(address, token, texts):
    body = json.dumps([{"text": text} for text in texts]).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}predict", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return [plain(row["label"]) for row in json.load(answer)["predictions"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True)
    os.chdir(given.folder)
    truth = write_tickets("tickets.csv", given.rows, given.seed)
    folder = Path("tickets-resolved")
    run("disambiguate", "tickets.csv", "--dry-run")
    run("disambiguate", "tickets.csv", "--merge-labels")
    print(f"Accuracy before the review: {accuracy(folder, truth):.3f}")
    with started("review", folder, mark="Review page") as address:
        print(f"Rows decided: {review(address, truth)}")
    run("review", folder, "--apply")
    print(f"Accuracy after the review: {accuracy(folder, truth):.3f}")
    run("review", folder, "--export", "labels.csv")
    new, topics = tickets(np.random.default_rng(given.seed + 1), 200)
    new.to_csv("new.csv", index=False)
    run("predict", folder, "new.csv")
    token = "a-token-for-this-walk"
    serving = {"env": os.environ | {"GMPLL_TOKEN": token}}
    with started("serve", folder, "--port", 0, mark="Serving", **serving) as address:
        right = np.array(ask(address, token, new["text"])) == topics
    print(f"Accuracy of {len(new)} new tickets over HTTP: {right.mean():.3f}")


if __name__ == "__main__":
    main()
