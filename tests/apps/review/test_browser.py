"""The page in a real browser, by keyboard."""

from __future__ import annotations

import csv

import pytest

pytest.importorskip("playwright")

import review_problem
from browsing import CHROMIUM, READY, launched, served

from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.session import open_review

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def address(session):
    with served(session) as address:
        yield address


@pytest.fixture
def page(browser, address):
    context = browser.new_context(accept_downloads=True)
    context.add_init_script("localStorage.setItem('gmpll-reviewer', 'Ben')")
    page = context.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        # Answers that are no success are told as errors; the tests provoke some.
        lambda m: m.type == "error" and "status of" not in m.text and troubles.append(m.text),
    )
    page.goto(address)
    page.wait_for_selector(READY)
    yield page
    context.close()
    assert troubles == []


def _row(page):
    return page.inner_text("#item-heading").removeprefix("Row ")


def _wait_for_other_row(page, row):
    # A function, not an expression: the page's policy forbids eval to Playwright as well.
    page.wait_for_function(
        "row => document.getElementById('item-heading').innerText !== `Row ${row}`", arg=row
    )
    page.wait_for_selector(READY)


def _press(page, key):
    """Press a key that decides, and wait for the next row."""
    before = _row(page)
    page.keyboard.press(key)
    _wait_for_other_row(page, before)


def _decided(session):
    held = session.store.decisions()
    return {str(session.saved.ids[row]): entry.decision for row, entry in held.items()}


def test_from_opening_to_export_by_keyboard(page, session):
    first = _row(page)
    names = page.locator(".candidate .name").all_inner_texts()
    _press(page, "2")
    second = _row(page)
    _press(page, "n")
    third = _row(page)
    _press(page, "s")
    decided = _decided(session)
    assert str(session.saved.classes[decided[first].code]) == names[1]
    assert decided[second].action == "none"
    assert decided[third].action == "skip"
    assert "2 decided, 1 skipped" in page.inner_text("#counts")

    _press(page, "u")
    assert _row(page) == third
    assert third not in _decided(session)
    _press(page, "u")
    assert _row(page) == second
    _press(page, "1")

    searched = _row(page)
    page.keyboard.press("/")
    page.keyboard.type("hyper")
    page.wait_for_selector("#found [role=option]:has-text('HYPERLINK')")
    page.keyboard.press("Enter")
    _wait_for_other_row(page, searched)
    assert _decided(session)[searched].code == 3

    named = _row(page)
    page.keyboard.press("/")
    page.keyboard.type("mole rat")
    page.keyboard.press("Enter")  # faster than the search, which must not cut the name
    _wait_for_other_row(page, named)
    assert _decided(session)[named].name == "mole rat"
    again = _row(page)
    page.keyboard.press("/")
    page.keyboard.type("mol")
    page.wait_for_selector("#found [role=option]:has-text('mole rat')")
    page.keyboard.press("Enter")
    _wait_for_other_row(page, again)
    assert _decided(session)[again].name == "mole rat"

    page.keyboard.press("m")
    page.wait_for_selector("#notice:has-text('Matched again')")
    session.run.wait()
    page.keyboard.press("c")
    page.wait_for_selector("#list[open]")
    assert page.locator("#list-body tr").count() == session.changes()["count"]
    page.keyboard.press("Escape")

    page.keyboard.press("e")
    page.wait_for_selector("#export[open]")
    with page.expect_download() as download:
        page.keyboard.press("Enter")  # the first button has the focus
    assert download.value.suggested_filename == "reviewed.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert len(rows) == 30
    assert rows[named]["label"] == "mole rat"
    assert rows[searched]["label"] == "'=HYPERLINK(1)"
    assert rows[first]["origin"] == "reviewer"


def test_a_key_pressed_twice_decides_once(page, session):
    before = _row(page)
    page.evaluate(
        """() => {
          for (const _ of [1, 2]) document.dispatchEvent(new KeyboardEvent("keydown", {key: "1"}));
        }"""
    )
    _wait_for_other_row(page, before)
    page.keyboard.press("l")  # waits for its turn behind whatever is under way
    page.wait_for_selector("#list[open]")
    assert list(_decided(session)) == [before]


@pytest.mark.parametrize("key", ["1", "n", "s", "j", "/"])
def test_a_key_pressed_while_a_decision_is_under_way_is_not_for_the_next_row(page, session, key):
    """The server is slow: the key is pressed before the next row is there."""
    before, waiting = _row(page), []
    page.route("**/api/decide", lambda route: waiting.append(route))
    page.keyboard.press("2")
    page.wait_for_selector("#desk[aria-busy=true]")
    page.keyboard.press(key)
    while not waiting:
        page.wait_for_timeout(10)
    waiting[0].continue_()
    _wait_for_other_row(page, before)
    after = _row(page)
    page.keyboard.press("l")  # waits for its turn behind whatever is under way
    page.wait_for_selector("#list[open]")
    assert not page.locator("#search[open]").count()
    assert list(_decided(session)) == [before]
    assert _row(page) == after


def test_a_key_that_is_older_than_the_row_does_not_count(page, session):
    """Pressed before the row was painted, it comes to the page when the row is there."""
    first = _row(page)
    page.evaluate(
        """() => {
          const event = new KeyboardEvent("keydown", {key: "1"});
          Object.defineProperty(event, "timeStamp", {value: 1});
          document.dispatchEvent(event);
        }"""
    )
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    assert _decided(session) == {}
    page.keyboard.press("Escape")
    _press(page, "1")
    assert list(_decided(session)) == [first]


def test_two_quick_clicks_decide_once(page, session):
    before = _row(page)
    page.dblclick(".candidate >> nth=0", delay=60)
    _wait_for_other_row(page, before)
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    assert list(_decided(session)) == [before]


def test_going_on_leaves_the_row_undecided(page, session):
    first = _row(page)
    _press(page, "j")
    second = _row(page)
    _press(page, "j")
    assert len({first, second, _row(page)}) == 3
    assert _decided(session) == {}


def test_help_opens_closes_and_gives_the_focus_back(page):
    page.focus("#show-help")
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("1")  # decides nothing while a dialog is open
    page.keyboard.press("Escape")
    page.wait_for_selector("#help:not([open])", state="attached")
    assert page.evaluate("document.activeElement.id") == "show-help"
    assert "0 decided" in page.inner_text("#counts")


def test_the_focus_is_on_the_row_and_changes_are_read_out(page):
    assert page.evaluate("document.activeElement.id") == "item-heading"
    decided, name = _row(page), page.locator(".candidate .name").first.inner_text()
    _press(page, "1")
    assert page.evaluate("document.activeElement.id") == "item-heading"
    said = page.text_content("#announcement")
    assert said.startswith(f"Row {decided}: {name}. Row {_row(page)}")
    assert page.get_attribute("#announcement", "aria-live") == "polite"


def test_everything_works_without_single_keys(page, session):
    page.keyboard.press("?")
    page.uncheck("#single-keys")
    page.keyboard.press("Escape")
    before = _row(page)
    page.keyboard.press("1")
    page.focus(".candidate >> nth=0")
    page.keyboard.press("Enter")
    _wait_for_other_row(page, before)
    assert list(_decided(session)) == [before]


def test_hostile_names_are_text(page, session):
    """They are shown as candidates, neighbours, labels found and changes; none executes."""
    hostile = review_problem.CLASSES[2]
    page.keyboard.press("/")
    page.keyboard.type("img")
    page.wait_for_selector("#found [role=option]:has-text('onerror')")
    _press(page, "Enter")
    page.keyboard.press("l")
    page.wait_for_selector("#list[open]")
    assert hostile in page.inner_text("#list-body")
    assert page.locator("img[src='x']").count() == 0
    page.keyboard.press("Escape")


def test_text_fields_and_picture_are_shown(page, session):
    row = _row(page)
    number = row.removeprefix("r")
    assert page.inner_text("#text").startswith(f"text {number} about ")
    assert page.inner_text("#fields dd") == number
    page.wait_for_function("() => document.getElementById('image').naturalWidth === 1")
    assert page.get_attribute("#image", "alt") == f"Picture of row {row}"
    assert page.locator(".neighbor").count() == 8


def test_two_tabs_do_not_lose_each_others_decisions(page, address, session):
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector(READY)
    assert _row(other) != _row(page)
    contested = _row(page)
    index = int(contested.removeprefix("r"))
    # A third one comes to the same row by way of the neighbours, and is faster.
    session.decide(index, Decision("other", name="mole"), seen_version=0, tab="other")
    page.keyboard.press("1")
    page.wait_for_selector("#alarm:has-text('not written')")
    assert "mole" in page.inner_text("#standing")
    assert _decided(session)[contested].name == "mole"
    _press(page, "1")
    assert _decided(session)[contested].name is None
    _press(other, "1")
    assert len(_decided(session)) == 2


def test_a_reload_keeps_the_token_and_the_undo_of_the_tab(page, session):
    assert "token" not in page.url
    decided = _row(page)
    _press(page, "1")
    page.reload()
    page.wait_for_selector(READY)
    page.keyboard.press("u")
    page.wait_for_selector("#counts:has-text('0 decided')")
    assert _row(page) == decided


def test_without_the_token_the_page_asks_for_it(browser, address):
    base, _, token = address.partition("#token=")
    context = browser.new_context()
    page = context.new_page()
    page.goto(base)
    page.wait_for_selector("#ask-token[open]")
    assert page.inner_text("main").strip() == ""
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    context.close()


def test_the_token_is_never_sent_to_another_place(browser, address):
    """Neither address nor Referer of any request holds it; it goes in one header, to one host."""
    base, _, token = address.partition("#token=")
    context = browser.new_context()
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request))
    page.goto(address)
    page.wait_for_selector(READY)
    page.wait_for_load_state("networkidle")
    assert len(requests) > 5
    for request in requests:
        assert request.url.startswith((base, f"blob:{base}"))
        assert token not in request.url.partition("#")[0]
        assert not request.headers.get("referer")
    context.close()


def test_another_site_cannot_post(browser, address, session, tmp_path):
    """A page of another origin tries a form, a fetch and a fetch that asks first."""
    base, _, token = address.partition("#token=")
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "http://evil.example/",
        lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"),
    )
    page.goto("http://evil.example/")
    outcomes = page.evaluate(
        """async ([target, token]) => {
          const body = JSON.stringify({row: 5, version: 0, tab: "a", action: "label", code: 0});
          const json = {"Content-Type": "application/json"};
          const tries = [
            {method: "POST", body, mode: "no-cors"},
            {method: "POST", body, headers: json},
            {method: "POST", body, headers: {...json, Authorization: "Bearer " + token}},
          ];
          const outcome = (options) => fetch(target, options).then((r) => r.type, () => "refused");
          return Promise.all(tries.map(outcome));
        }""",
        [f"{base}api/decide", token],
    )
    assert outcomes[1:] == ["refused", "refused"]
    assert outcomes[0] in ("opaque", "refused")
    with page.expect_navigation():
        page.evaluate(
            """(target) => {
              const form = document.createElement("form");
              form.method = "POST";
              form.action = target;
              form.enctype = "text/plain";
              document.body.append(form);
              form.submit();
            }""",
            f"{base}api/decide",
        )
    assert "other sites" in page.inner_text("body")
    assert session.store.log() == []
    context.close()


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_and_the_colours_follow(browser, address, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    for selector in ("#help", "#export"):
        page.evaluate("id => document.querySelector(id).showModal()", selector)
        box = page.locator(selector).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
    context.close()


def test_a_review_goes_on_after_the_server_was_started_anew(browser, folder, session):
    """What was decided is not asked about again, in a browser that knows nothing of it."""
    row = session.next_item("gone")["row"]
    session.decide(row, Decision("label", code=0), seen_version=0, tab="gone")
    session.store.close()
    again = open_review(folder, rematch=review_problem.rematch)
    context = browser.new_context()
    page = context.new_page()
    with served(again) as address:
        page.goto(address)
        page.wait_for_selector(READY)
        assert _row(page) != f"r{row}"
        assert page.inner_text("#counts").startswith("1 decided")
        context.close()
    again.store.close()
