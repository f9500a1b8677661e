"""The annotator is guided: in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright")

import review_problem
from browsing import CHROMIUM, READY, launched, served

from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.session import open_review

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")

PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 800}
AXE = next(
    (
        file
        for folder in Path(__file__).parents
        if (file := folder / "node_modules" / "axe-core" / "axe.min.js").is_file()
    ),
    None,
)
GUIDE = "# Animals\n\n- **dog**: barks\n\n<img src=x onerror=alert(1)> [x](javascript:alert(2))\n"


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def problem(tmp_path):
    """Rows of which one has a wrong set, three are very sure, and most are in no doubt."""
    confidence = review_problem.arrays(tmp_path)["confidence"].copy()
    labels = confidence.argmax(axis=1)
    others = np.flatnonzero(np.arange(30) >= 4)
    confidence[others] = 0.05
    confidence[others, labels[others]] = 0.85
    confidence[[20, 21, 22]] = 0.002
    confidence[[20, 21, 22], labels[[20, 21, 22]]] = 0.994
    outside, suggested = np.zeros(30), labels.copy()
    outside[1], suggested[1] = 0.9, 1
    cells = {"text": "very long text " * 200, **dict.fromkeys("abcdefgh", "x")}
    display = np.array([json.dumps({**cells, "image": f"p{i}.png"}) for i in range(30)])
    changed = {"confidence": confidence, "outside": outside, "suggested": suggested}
    folder = review_problem.write(tmp_path, display=display, **changed)
    (tmp_path / "guide.md").write_text(GUIDE)
    rematch, guidelines = review_problem.rematch, tmp_path / "guide.md"
    session = open_review(folder, rematch=rematch, guidelines=guidelines)
    with closing(session.store):
        yield session


@pytest.fixture
def problem_of_votes(tmp_path):
    """The label of row 1 is one that nobody gave."""
    found = review_problem.arrays(tmp_path)
    outside, suggested = np.zeros(30), found["labels"].copy()
    labels, confidence = found["labels"].copy(), found["confidence"].copy()
    outside[1], suggested[1], labels[1] = 0.9, 1, 1
    confidence[1] = 0.05, 0.9, 0.03, 0.02
    changed = {"labels": labels, "confidence": confidence, "weights": found["mask"].astype(float)}
    folder = review_problem.write(tmp_path, outside=outside, suggested=suggested, **changed)
    return open_review(folder, rematch=review_problem.rematch)


@pytest.fixture
def address(problem):
    with served(problem) as address:
        yield address


def _open(browser, address, name="Ben", **options):
    context = browser.new_context(**{"viewport": WIDE, **options})
    if name is not None:
        context.add_init_script(f"localStorage.setItem('gmpll-reviewer', '{name}')")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    return page


def _row(page):
    return page.inner_text("#item-heading").removeprefix("Row ")


def _press(page, key):
    before = _row(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "row => document.getElementById('item-heading').innerText !== `Row ${row}`"
        " || !document.getElementById('done').hidden",
        arg=before,
    )
    page.wait_for_selector(f"{READY}, #done:not([hidden])")


def test_the_first_visit_asks_for_a_name_that_goes_with_every_decision(browser, address, problem):
    page = _open(browser, address, name=None)
    page.wait_for_selector("#welcome[open]")
    assert "Choose the label that is right" in page.inner_text("#welcome")
    page.fill("#reviewer", "Ana")
    page.keyboard.press("Enter")
    page.wait_for_selector("#who:has-text('You: Ana')")
    decided = _row(page)
    _press(page, "1")
    entry = problem.store.current(int(decided.removeprefix("r")))
    assert entry.reviewer == "Ana"
    page.reload()
    page.wait_for_selector(READY)
    assert not page.locator("#welcome[open]").count()
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    page.click(f"#list-body button:has-text('{decided}')")
    page.wait_for_selector("#standing:has-text('Decided by Ana')")
    page.context.close()


def test_the_task_and_the_percentage_are_explained(browser, address):
    page = _open(browser, address)
    assert "Choose the one label" in page.inner_text("#task")
    assert "of labels at 80 %, about 8 in 10 are" in page.inner_text("#task")
    page.context.close()


def test_similar_rows_suggest_a_label_where_no_candidate_is_right(browser, address, problem):
    page = _open(browser, address)
    while _row(page) != "r1":
        _press(page, "j")
    assert page.inner_text("#take-suggested").split("\n")[-1] == "Similar rows say: dog"
    assert "probably missing here (90 %)" in page.inner_text("#suggestion")
    _press(page, "y")
    assert problem.store.current(1).decision == Decision("label", code=1)
    assert page.locator("#suggestion:visible").count() == 0
    page.context.close()


def test_a_label_that_nobody_gave_is_not_offered_twice(browser, problem_of_votes):
    with closing(problem_of_votes.store), served(problem_of_votes) as address:
        page = _open(browser, address)
        while _row(page) != "r1":
            _press(page, "j")
        assert page.inner_text("#candidates li:first-child .name") == "dog"
        assert page.inner_text("#suggestion") == (
            "Nobody gave the label that is probably right (90 %). Similar rows say: dog"
        )
        assert page.locator("#suggestion button").count() == 0
        _press(page, "y")
        assert problem_of_votes.store.current(1).decision == Decision("label", code=1)
        page.context.close()


def test_the_list_of_keys_begins_at_its_top_and_an_empty_list_says_why(browser, address):
    page = _open(browser, address, viewport={"width": 390, "height": 500})
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    assert page.evaluate("document.getElementById('help').scrollTop") == 0
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    assert page.inner_text("#list-summary") == "Nothing is decided yet."
    page.fill("#filter-text", "unicorn")
    page.wait_for_selector("#list-summary:has-text('No decision is like that.')")
    page.context.close()


def test_on_a_phone_the_candidates_are_on_the_first_screen(browser, address):
    page = _open(browser, address, viewport=PHONE)
    page.wait_for_function("() => document.getElementById('image').naturalWidth === 1")
    first = page.locator(".candidate").first.bounding_box()
    assert first["y"] + first["height"] < PHONE["height"]
    fields = page.locator("#fields").bounding_box()
    assert fields["y"] > first["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.context.close()


def test_pictures_can_be_enlarged(browser, address):
    page = _open(browser, address)
    page.wait_for_function("() => document.getElementById('image').naturalWidth === 1")
    page.click("#zoom")
    page.wait_for_selector("#zoomed[open]")
    page.wait_for_function("() => document.getElementById('zoomed-image').naturalWidth === 1")
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    page.wait_for_selector("#zoomed[open]")
    page.context.close()


def test_guidelines_are_shown_as_text_and_with_their_label(browser, address):
    page = _open(browser, address)
    dialogs = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    dog = "#candidates .candidate:has-text('dog')"
    while page.locator(dog).count() == 0:
        _press(page, "j")
    assert page.inner_text(f"{dog} .definition") == "barks"
    page.keyboard.press("g")
    page.wait_for_selector("#guide[open]")
    assert page.inner_text("#guide-text h3") == "Animals"
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#guide-text")
    assert page.locator("#guide-text img, #guide-text a").count() == 0
    assert dialogs == []
    page.context.close()


def test_when_the_doubtful_rows_are_done_it_sums_up_and_asks(browser, address, problem):
    page = _open(browser, address)
    while page.locator("#done:visible").count() == 0:
        _press(page, "1")
    told = problem.summary()
    assert page.inner_text("#done-heading") == "The doubtful rows are done"
    summary = page.inner_text("#summary")
    assert f"{told['decided']} rows decided" in summary
    assert f"the model was right in {told['agreed']}" in summary
    assert "wrong label" in summary
    assert str(problem.folder) in page.inner_text(".steps")
    assert problem.progress()["doubtful"] == 0
    page.click("#go-on-now")
    page.wait_for_selector(READY)
    _press(page, "1")
    assert page.locator("#desk:visible").count() == 1
    page.context.close()


def test_sure_rows_are_accepted_together_and_undone(browser, address, problem):
    page = _open(browser, address)
    page.keyboard.press("b")
    page.wait_for_selector("#sure[open]")
    assert "at least 99 %: 3 rows, hardly any of them wrong" in page.inner_text("#limits")
    page.click("#accept")
    page.wait_for_selector("#notice:has-text('3 rows accepted together')")
    assert set(problem.store.decisions()) == {20, 21, 22}
    page.keyboard.press("u")
    page.wait_for_selector("#counts:has-text('0 decided')")
    assert page.locator("#notice:visible").count() == 0  # nothing is accepted any more
    page.context.close()


def test_the_list_has_filters_and_agreement(browser, address, problem):
    found = problem.saved.labels
    for row, who, code in ((2, "Ana", found[2]), (2, "Ben", 3), (3, "Ben", found[3])):
        decision, seen = Decision("label", code=int(code)), problem.store.version(row)
        problem.decide(row, decision, seen_version=seen, tab=who, reviewer=who)
    page = _open(browser, address)
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    figures = page.inner_text("#figures")
    assert "Ben: 2 decided, agrees with the model in 1 of 2 (50 %)" in figures
    assert "Ana and Ben: alike in 0 of 1 (0 %) that both decided" in figures
    assert page.locator("#list-body tr").count() == 3
    page.select_option("#filter-reviewer", "Ana")
    page.wait_for_function("() => document.querySelectorAll('#list-body tr').length === 1")
    assert "(replaced)" in page.inner_text("#list-body")
    page.select_option("#filter-reviewer", "")
    page.fill("#filter-text", "r3")
    page.wait_for_selector("#list-body tr:only-child:has-text('r3')")
    page.context.close()


def test_applying_tells_what_hinders_it(browser, address, problem):
    page = _open(browser, address)
    page.keyboard.press("a")
    page.wait_for_selector("#alarm:has-text('Decide a row first')")
    _press(page, "1")
    page.keyboard.press("a")  # the results were written by hand, so there is no input
    page.wait_for_selector("#alarm:has-text('The results were not changed')")
    assert "--force" in page.inner_text("#alarm")
    page.context.close()


def test_a_tab_that_is_closed_frees_its_row(browser, address, problem):
    page = _open(browser, address)
    first = _row(page)
    other = _open(browser, address)
    assert _row(other) != first
    page.close(run_before_unload=False)
    _wait_until(lambda: problem.next_item("third")["id"] == first, other)
    other.context.close()


def _wait_until(holds, page):
    for _ in range(100):
        if holds():
            return
        page.wait_for_timeout(50)
    pytest.fail("it never came true")


@pytest.mark.skipif(AXE is None, reason="axe is not installed: npm install --no-save axe-core")
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser, address, problem, viewport, scheme):
    problem.decide(2, Decision("label", code=0), seen_version=0, tab="z", reviewer="Ana")
    page = _open(browser, address, viewport=viewport, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(path=AXE)

    def violations():
        found = page.evaluate("async () => (await axe.run()).violations")
        return [(v["id"], [n["target"] for n in v["nodes"]]) for v in found]

    assert violations() == []
    dialogs = ("g guide", "l list", "b sure", "? help", "e export", "/ search", "z zoomed")
    for key, dialog in (line.split() for line in dialogs):
        page.keyboard.press(key)
        page.wait_for_selector(f"#{dialog}[open]")
        assert (dialog, violations()) == (dialog, [])
        page.keyboard.press("Escape")
    page.click("#who")
    page.wait_for_selector("#welcome[open]")
    assert violations() == []
    page.keyboard.press("Escape")
    while page.locator("#done:visible").count() == 0:
        _press(page, "1")
    assert violations() == []
    page.context.close()
