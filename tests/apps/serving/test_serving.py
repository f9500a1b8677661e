"""``gmpll serve``: what it answers, whom it refuses, and how it stops."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("httpx")

from starlette.testclient import TestClient

import gmpll
from gmpll.apps.cli.serve import serve
from gmpll.apps.errors import UserError
from gmpll.apps.serving import app as module
from gmpll.apps.serving.app import TERMS, make_app
from gmpll.apps.serving.requests import MAX_ROWS
from gmpll.apps.web.security import Guard, host_check

TOKEN = "t" * 32
ROWS = [{"size": 4.2, "home": "farm"}, {"size": "-0.5", "home": "flat"}]


@pytest.fixture(scope="module")
def client(folder):
    guarded = Guard(make_app(gmpll.load(folder)), TOKEN, host_check("127.0.0.1", 8000), TERMS)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return TestClient(guarded, base_url="http://127.0.0.1:8000", headers=headers)


def sentence(answer, status):
    assert answer.status_code == status, answer.text
    (key, text), *more = answer.json().items()
    assert (key, more) == ("error", [])
    assert re.fullmatch(r"[A-Z].{10,300}\.", text)
    return text


def test_rows_in_json_get_what_the_command_writes(client, folder):
    answer = client.post("/predict", json=ROWS)
    assert answer.status_code == 200
    found = answer.json()["predictions"]
    assert [row["label"] for row in found] == gmpll.load(folder).predict(ROWS).tolist()
    assert list(found[0]) == ["label", "confidence", "runner_up", "margin", "review"]
    asked = {"rows": ROWS, "probabilities": True}
    answer = client.post("/predict", json=asked).json()
    assert answer["classes"] == ["=cat", "dog"]
    assert [round(sum(shares), 4) for shares in answer["probabilities"]] == [1.0, 1.0]


def test_rows_in_csv_get_csv_that_is_no_formula(client):
    sent = "home,size,more\nfarm,4.2,x\nflat,-0.5,y\n"
    answer = client.post("/predict", content=sent, headers={"Content-Type": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    lines = answer.text.splitlines()
    assert lines[0] == "label,confidence,runner_up,margin,review"
    assert [line.split(",")[0] for line in lines[1:]] == ["dog", "'=cat"]


def test_it_tells_what_it_needs(client, folder):
    schema = client.get("/schema").json()
    assert schema["columns"] == {"size": "number", "home": "category"}
    assert schema["classes"] == ["=cat", "dog"]
    assert schema["versions"]["gmpll"] == gmpll.__version__
    assert client.get("/health", headers={"Authorization": ""}).json() == {"status": "ok"}


def test_odd_rows_are_told(client):
    answer = client.post("/predict", json=[{"size": 1, "home": "castle"}]).json()
    assert "category that the model does not know" in answer["notes"][0]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"{", "json", "not valid JSON"),
        (b"[" * 100_000, "json", "not valid JSON"),
        (b"\xff", "json", "not UTF-8"),
        (b"7", "json", "list of objects"),
        (b"[7]", "json", "list of objects"),
        (b"[]", "json", "0 rows"),
        (b'[{"size": 1}]', "json", "no column 'home'"),
        (b'[{"size": "big", "home": "x"}]', "json", "holds 'big'"),
        (b'[{"size": 1e999, "home": "x"}]', "json", "infinite number"),
        (b'[{"size": 1, "home": "\\ud800"}]', "json", "half of a pair"),
        (b"", "csv", "0 rows"),
        (b"size,home\n1\n", "csv", "1 cells but the header 2"),
        (b"size,size\n1,2\n", "csv", "two columns of the same name"),
        (b'size,home\n"1,2\n', "csv", "is no CSV"),
        (b"a\n1\n", "csv", "no column 'size'"),
    ],
)
def test_malformed_requests_are_answered_with_one_sentence(client, body, kind, words):
    kind = {"json": "application/json", "csv": "text/csv"}[kind]
    answer = client.post("/predict", content=body, headers={"Content-Type": kind})
    assert words in sentence(answer, 400)


def test_too_much_is_refused(client, monkeypatch):
    many = [{"size": 1, "home": "x"}] * (MAX_ROWS + 1)
    assert "10,001" not in sentence(client.post("/predict", json=many), 400)
    body = b"[" + b" " * TERMS.max_body
    headers = {"Content-Type": "application/json"}
    assert "KiB" in sentence(client.post("/predict", content=body, headers=headers), 413)
    monkeypatch.setattr(module, "PREDICT_SECONDS", 0.0)
    assert "fewer rows" in sentence(client.post("/predict", json=ROWS), 503)


def test_strangers_are_refused(client):
    post = client.post
    for path in ("/schema", "/predict", "/nowhere"):
        answer = client.request("POST", path, json=ROWS, headers={"Authorization": "Bearer x"})
        assert "Authorization: Bearer TOKEN" in sentence(answer, 401)
    assert sentence(post("/predict", json=ROWS, headers={"Host": "evil.example"}), 421)
    assert sentence(post("/predict", json=ROWS, headers={"Origin": "http://evil.example"}), 403)
    assert sentence(post("/predict", json=ROWS, headers={"Sec-Fetch-Site": "cross-site"}), 403)
    answer = post("/predict", content="x", headers={"Content-Type": "text/plain"})
    assert "CSV" in sentence(answer, 415)
    assert sentence(client.get("/predict"), 405)
    assert sentence(client.get("/nowhere"), 404)


def test_a_failure_is_a_sentence_too(folder, monkeypatch):
    monkeypatch.setattr(module, "answered", lambda model, asked: 1 / 0)
    failing = TestClient(make_app(gmpll.load(folder)), raise_server_exceptions=False)
    assert "failed to answer" in sentence(failing.post("/predict", json=ROWS), 500)


def test_what_cannot_be_served_is_said(folder, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="There is no model"):
        serve(tmp_path)
    monkeypatch.setenv("GMPLL_TOKEN", "short")
    with pytest.raises(UserError, match="GMPLL_TOKEN is no token"):
        serve(folder)


def test_the_command_serves_and_stops_when_asked(folder):
    environment = {**os.environ, "GMPLL_TOKEN": TOKEN}
    command = [sys.executable, "-m", "gmpll", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        printed = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", printed)[0]
        request = urllib.request.Request(
            f"{address}predict",
            json.dumps(ROWS).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        for attempt in range(50):
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    assert len(json.load(answer)["predictions"]) == 2
                break
            except urllib.error.URLError:
                assert attempt < 49
                time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=20)
        assert (process.returncode, error) == (0, "")
        assert TOKEN not in printed + out
        assert out.endswith("Stopped.\n")
    finally:
        process.kill()
        process.wait()
