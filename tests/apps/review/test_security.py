from __future__ import annotations

import hmac

import pytest

pytest.importorskip("httpx")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from gmpll.apps.review.app import TERMS, make_app
from gmpll.apps.web import security
from gmpll.apps.web.security import Guard, host_check, is_loopback, new_token

TOKEN = "a-token-for-the-tests"
HOST = "127.0.0.1:8000"
GOOD = {"authorization": f"Bearer {TOKEN}"}
DECISION = {"row": 5, "version": 0, "tab": "a", "action": "label", "code": 0}


@pytest.fixture
def client(session):
    app = Guard(make_app(session), TOKEN, host_check("127.0.0.1", 8000), TERMS)
    return TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=True)


def _decide(client, **headers):
    return client.post("/api/decide", json=DECISION, headers={**GOOD, **headers})


API = [
    ("GET", "/api/state"),
    ("GET", "/api/next?tab=a"),
    ("GET", "/api/items/5"),
    ("GET", "/api/images/5"),
    ("GET", "/api/labels?q="),
    ("GET", "/api/decisions"),
    ("GET", "/api/changes"),
    ("GET", "/api/summary"),
    ("GET", "/api/sure"),
    ("GET", "/api/guidelines"),
    ("GET", "/api/export/csv"),
    ("POST", "/api/decide"),
    ("POST", "/api/undo"),
    ("POST", "/api/release"),
    ("POST", "/api/accept"),
    ("POST", "/api/rematch"),
    ("POST", "/api/apply"),
]


def test_the_list_of_routes_is_complete(session):
    paths = {route.path for route in make_app(session).routes if route.path.startswith("/api/")}
    asked = {path.partition("?")[0] for _, path in API}
    pattern = {"/api/items/5": "/api/items/{row:int}", "/api/images/5": "/api/images/{row:int}"}
    pattern["/api/export/csv"] = "/api/export/{format}"
    assert {pattern.get(path, path) for path in asked} == paths


WRONG = [
    {},
    {"authorization": ""},
    {"authorization": TOKEN},
    {"authorization": f"Bearer {TOKEN}x"},
    {"authorization": f"Bearer {TOKEN[:-1]}"},
    {"authorization": f"bearer {TOKEN}"},
    {"authorization": "Bearer ünlike".encode("latin-1")},
    {"cookie": f"token={TOKEN}"},
]


@pytest.mark.parametrize(("method", "path"), API)
def test_without_the_token_nothing_is_told(client, session, method, path):
    body = {} if method == "POST" else None
    for headers in WRONG:
        answer = client.request(method, path, json=body, headers=headers)
        assert answer.status_code == 401, headers
        assert set(answer.json()) == {"error"}
    assert session.store.log() == []


def test_the_token_in_the_address_of_a_request_is_not_accepted(client):
    assert client.get(f"/api/state?token={TOKEN}").status_code == 401


def test_the_token_opens_everything(client):
    for method, path in API[:8]:
        assert client.request(method, path, headers=GOOD).status_code == 200, path
    assert _decide(client).status_code == 200


def test_the_token_is_compared_in_constant_time(client, monkeypatch):
    compared, compare = [], hmac.compare_digest

    def spy(given, expected):
        compared.append((given, expected))
        return compare(given, expected)

    monkeypatch.setattr(security.hmac, "compare_digest", spy)
    client.get("/api/state", headers={"authorization": "Bearer x"})
    assert compared == [(b"Bearer x", f"Bearer {TOKEN}".encode())]


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:8001",
        "http://localhost:8000",  # another origin than the one that the page came from
        "https://127.0.0.1:8000",
        "http://127.0.0.1:8000.evil.example",
        "null",
        "",
    ],
)
def test_another_origin_is_refused_even_with_the_token(client, session, origin):
    assert _decide(client, origin=origin).status_code == 403
    assert client.get("/api/state", headers={**GOOD, "origin": origin}).status_code == 403
    assert session.store.log() == []


def test_the_page_itself_is_accepted(client):
    headers = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    assert _decide(client, **headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_browsers_word_for_other_sites_is_heard(client, session, site):
    assert _decide(client, **{"sec-fetch-site": site}).status_code == 403
    assert session.store.log() == []


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1:8001",
        "127.0.0.1",
        "localhost.evil.example:8000",
        "127.0.0.1:8000@evil.example",
        "evil@127.0.0.1:8000",
        "127.0.0.1:8000/x",
        "192.168.0.7:8000",
        "",
        "[",
        "127.0.0.1:99999999",
    ],
)
def test_a_foreign_host_is_refused_for_every_path(client, session, host):
    """A name of an attacker's that points to this machine (DNS rebinding) comes as Host."""
    for path in ("/", "/static/review.js", "/api/state"):
        assert client.get(path, headers={**GOOD, "host": host}).status_code == 421
    assert _decide(client, host=host).status_code == 421
    assert session.store.log() == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST:8000"]
)
def test_the_names_of_loopback_are_accepted(client, host):
    assert client.get("/api/state", headers={**GOOD, "host": host}).status_code == 200


def test_where_others_are_let_in_addresses_are_good_hosts_but_names_are_not():
    good = host_check("0.0.0.0", 8000)
    assert good("192.168.0.7:8000")
    assert good("[fe80::1]:8000")
    assert not good("evil.example:8000")
    assert not good("192.168.0.7:8001")


@pytest.mark.parametrize(
    "content_type",
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""],
)
def test_a_form_of_another_site_is_refused(client, session, content_type):
    """These are the bodies that a page may post anywhere without asking; see what comes of it."""
    body = '{"row": 5, "version": 0, "tab": "a", "action": "label", "code": 0}'
    headers = {"content-type": content_type, "origin": "http://evil.example"}
    assert client.post("/api/decide", content=body, headers=headers).status_code == 403
    del headers["origin"]
    assert client.post("/api/decide", content=body, headers=headers).status_code == 401
    assert client.post("/api/decide", content=body, headers={**headers, **GOOD}).status_code == 415
    assert session.store.log() == []


def test_no_other_site_is_ever_allowed_to_read(client):
    headers = {
        "origin": "http://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    answer = client.options("/api/decide", headers=headers)
    assert answer.status_code == 403
    for given in (answer, client.get("/api/state", headers=GOOD), client.get("/")):
        assert not [name for name in given.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/static/review.js", "/api/state", "/api/none", "/x"])
def test_every_answer_is_hardened(client, path):
    for headers in (GOOD, {}):
        answer = client.get(path, headers=headers)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers
        assert TOKEN not in answer.text


def test_a_large_body_is_refused_whether_it_says_so_or_not(client, session):
    filler = b" " * TERMS.max_body + b"{}"
    headers = {**GOOD, "content-type": "application/json"}
    assert client.post("/api/decide", content=filler, headers=headers).status_code == 413
    pieces = (filler[i : i + 1000] for i in range(0, len(filler), 1000))
    assert client.post("/api/decide", content=pieces, headers=headers).status_code == 413
    lying = {**headers, "content-length": "-1"}
    assert client.post("/api/decide", content=b"{}", headers=lying).status_code == 413
    assert session.store.log() == []


def test_websockets_are_not_answered(client):
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/api/state", headers=GOOD),
    ):
        pass


def test_tokens_are_long_and_never_the_same():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(len(token) for token in tokens) >= 43  # 256 bits


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("example.org", False),
    ],
)
def test_what_is_loopback(host, expected):
    assert is_loopback(host) is expected
