from __future__ import annotations

import re
import sqlite3

import pytest

pytest.importorskip("httpx")

import review_problem
from starlette.testclient import TestClient

from gmpll.apps.review.app import make_app
from gmpll.apps.review.session import open_review


@pytest.fixture
def client(session):
    return TestClient(make_app(session), raise_server_exceptions=False)


def _decide(client, **changed):
    asked = {"row": 5, "version": 0, "tab": "a", "action": "label", "code": 1, **changed}
    return client.post("/api/decide", json=asked)


def test_the_page_needs_nothing_from_elsewhere(client):
    """Every address in the page, the style and the scripts is one of its own."""
    asked, seen = ["/"], set()
    while asked:
        path = asked.pop()
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200
        text = answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        found = re.findall(r'(?:href|src)="(/[^"]*)"', text)
        found += [f"/static/{name}" for name in re.findall(r'from "\./([^"]*)"', text)]
        asked += [path for path in found if path not in seen]
    assert {"/static/review.css", "/static/review.js", "/static/render.js"} <= seen


def test_the_page_has_no_inline_script_or_style(client):
    page = client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    for script in ("review.js", "render.js", "server.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b",
            client.get(f"/static/{script}").text,
        )


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
        "/api/images/../../etc/passwd",
        "/api/images/-1",
        "/api/images/p5.png",
        "/api/none",
    ],
)
def test_a_path_leads_nowhere_else(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json() == {"error": "There is no such page."}


def test_deciding_brings_the_next_row(client):
    first = client.get("/api/next?tab=a").json()["item"]
    answer = _decide(client, row=first["row"], version=first["version"])
    assert answer.status_code == 200
    assert answer.json()["item"]["row"] != first["row"]
    assert answer.json()["progress"]["decided"] == 1
    back = client.post("/api/undo", json={"tab": "a"}).json()
    assert back["item"]["row"] == first["row"]
    assert back["progress"]["decided"] == 0
    assert client.post("/api/undo", json={"tab": "a"}).json()["item"] is None


def test_the_slower_of_two_tabs_is_told_and_shown_the_other_decision(client):
    assert _decide(client, tab="a", code=0).status_code == 200
    answer = _decide(client, tab="b", code=1)
    assert answer.status_code == 409
    assert "elsewhere" in answer.json()["error"]
    item = answer.json()["item"]
    assert item["decision"]["label"] == "cat"
    assert _decide(client, tab="b", code=1, version=item["version"]).status_code == 200
    assert client.get("/api/items/5").json()["item"]["decision"]["label"] == "dog"


@pytest.mark.parametrize(
    "changed",
    [
        {"row": "5"},
        {"row": True},
        {"row": -1},
        {"row": 2**63},
        {"row": 30},
        {"version": None},
        {"code": 1.5},
        {"code": 99},
        {"action": "undo"},
        {"action": ["label"]},
        {"action": "other", "code": None, "name": 7},
        {"tab": ""},
        {"tab": "x" * 65},
        {"tab": "a'; --"},
        {"tab": None},
        {"reviewer": 7},
        {"reviewer": ["Ben"]},
        {"reviewer": "x" * 61},
        {"reviewer": "a\x1b[2Jb"},
    ],
)
def test_senseless_requests_are_one_sentence(client, session, changed):
    answer = _decide(client, **changed)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert session.store.log() == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 60000])
def test_what_is_no_json_object_is_one_sentence(client, body):
    answer = client.post("/api/decide", content=body)
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]


def test_methods_are_kept_apart(client, session):
    assert client.get("/api/decide").status_code == 405
    assert client.post("/api/state").status_code == 405
    assert session.store.log() == []


def test_pictures_are_served_with_their_type(client, tmp_path):
    answer = client.get("/api/images/5")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == review_problem.png(40)
    (tmp_path / "input" / "p5.png").write_text("<script>alert(1)</script>")
    assert client.get("/api/images/5").status_code == 400
    assert client.get("/api/images/99").status_code == 400


def test_a_row_that_names_a_file_elsewhere_gets_no_picture(tmp_path, folder):
    import json

    import numpy as np

    (tmp_path / "secret.png").write_bytes(review_problem.png(1))
    names = ["../secret.png", str(tmp_path / "secret.png"), "/etc/passwd"]
    display = np.array([json.dumps({"image": names[i % 3]}) for i in range(30)])
    review_problem.write(tmp_path, display=display)
    session = open_review(folder, rematch=review_problem.rematch)
    client = TestClient(make_app(session))
    assert [client.get(f"/api/images/{row}").status_code for row in range(3)] == [400] * 3
    session.store.close()


def test_hostile_names_come_as_json(client):
    answer = client.get("/api/labels?q=img")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == [{"code": 2, "name": "<img src=x onerror=alert(1)>"}]


@pytest.mark.parametrize(
    ("format", "type", "name"),
    [
        ("csv", "text/csv; charset=utf-8", "reviewed.csv"),
        ("label-studio", "application/json", "label-studio.json"),
        ("argilla", "application/json", "argilla.json"),
    ],
)
def test_exports_are_downloads(client, format, type, name):
    answer = client.get(f"/api/export/{format}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == type
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_an_unknown_format_is_one_sentence(client):
    answer = client.get("/api/export/xls")
    assert answer.status_code == 400
    assert answer.json()["error"] == "The formats are csv, label-studio, argilla."


def test_matching_again_runs_beside_and_shows_in_the_state(client, session):
    assert client.post("/api/rematch", json={}).status_code == 409
    _decide(client, row=25, code=2)
    assert client.post("/api/rematch", json={}).status_code == 202
    session.run.wait()
    state = client.get("/api/state").json()
    assert state["run"]["state"] == "done"
    assert state["rematched_at"] == client.get("/api/changes").json()["at"]


def test_a_full_disk_is_told(client, session):
    with sqlite3.connect(session.store.path) as raw:
        raw.execute(
            "CREATE TRIGGER full BEFORE INSERT ON log "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    raw.close()
    answer = _decide(client)
    assert answer.status_code == 507
    assert "(database or disk is full): make the folder writable" in answer.json()["error"]
    assert session.store.log() == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/accept", {"tab": "a", "at_least": 0.5}),
        ("/api/accept", {"tab": "a", "at_least": 1}),
        ("/api/accept", {"tab": "a", "at_least": "0.99"}),
        ("/api/accept", {"tab": "a"}),
        ("/api/accept", {"at_least": 0.99}),
        ("/api/accept", {"tab": "a", "at_least": 0.99, "reviewer": {}}),
        ("/api/release", {}),
        ("/api/release", {"tab": "x' OR 1"}),
    ],
)
def test_senseless_acceptances_are_one_sentence(client, session, path, asked):
    answer = client.post(path, json=asked)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert session.store.log() == []


def test_decisions_can_be_filtered_and_a_senseless_filter_is_told(client):
    _decide(client, row=5, reviewer="Ben")
    _decide(client, row=6, reviewer="Ana", code=0)
    found = client.get("/api/decisions", params={"reviewer": "Ben"}).json()
    assert [line["id"] for line in found["rows"]] == ["r5"]
    assert client.get("/api/decisions?label=cat").json()["count"] == 1
    assert client.get("/api/decisions?doubt=x").status_code == 400


def test_sure_rows_summary_release_and_guidelines_are_served(client):
    limits = client.get("/api/sure").json()
    assert [limit["at_least"] for limit in limits] == [0.99, 0.98, 0.95, 0.9]
    accepted = client.post("/api/accept", json={"tab": "a", "at_least": 0.9}).json()
    assert accepted["accepted"] == limits[-1]["rows"]
    assert client.get("/api/summary").json()["decided"] == accepted["accepted"]
    assert client.get("/api/guidelines").json() == {"nodes": [], "definitions": {}}
    assert client.post("/api/release", json={"tab": "a"}).json() == {}
    assert client.post("/api/apply", json={}).status_code in (202, 409)
