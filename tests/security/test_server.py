"""The review server against clients that no browser is: bytes on a socket."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import review_problem

from gmpll.apps.review.app import TERMS, make_server
from gmpll.apps.review.session import open_review
from gmpll.apps.web import security

ANSWER_SECONDS = 30  # far more than needed: only a hanging server reaches it


class Served:
    """A running server; ``ask`` sends bytes and returns all that comes until it hangs up."""

    def __init__(self, server, session):
        self.session = session
        self.port = server.listener.getsockname()[1]
        self.token = server.address.partition("#token=")[2]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_SECONDS)

    def head(self, line, *headers, token=True):
        """The head of a request from the page itself."""
        lines = [line, f"Host: 127.0.0.1:{self.port}", *headers]
        if token:
            lines.append(f"Authorization: Bearer {self.token}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def ask(self, content):
        with self.connect() as client:
            answer = b""
            with suppress(ConnectionError):  # a server may hang up before it has read everything
                client.sendall(content)
                while part := client.recv(65536):
                    answer += part
        return answer


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = review_problem.write(tmp_path_factory.mktemp("served"))
    session = open_review(folder, rematch=review_problem.rematch)
    server = make_server(session)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.server.started:
        time.sleep(0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(security, "BODY_SECONDS", 0.5)
        yield Served(server, session)
    server.server.should_exit = True
    thread.join(ANSWER_SECONDS)
    session.store.close()


def _statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]


JSON = "Content-Type: application/json"
DECISION = b'{"row": 5, "version": 0, "tab": "a", "action": "label", "code": 0}'


def test_the_client_of_these_tests_is_answered(served):
    assert _statuses(served.ask(served.head("GET /api/state HTTP/1.1", "Connection: close"))) == [
        200
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/static/%2e%2e/%2e%2e/session.py",
        "/static/%252e%252e/session.py",
        "/static/..%5c..%5csession.py",
        "/static/..\\session.py",
        "/static/%2e%2e%00/review.js",
        "/static/review.js%00.png",
        "/static/review.js/../session.py",
        "/static/%c0%ae%c0%ae/session.py",
        "//etc/passwd",
        "/%2fetc/passwd",
        "http://evil.example/api/state",
        "/api/images/5%2f..%2f..%2f..%2fmatching.npz",
        "/api/images/%35%00",
        "/api/images/99999999999999999999",
        "/api/items/-1",
        "/api/items/\u0665",
        "/api/export/..%2fmatching",
    ],
)
def test_paths_lead_to_no_file(served, path):
    line = f"GET {path} HTTP/1.1".encode().decode("latin-1")
    answer = served.ask(served.head(line, "Connection: close"))
    assert _statuses(answer) in ([400], [404], [421])
    for secret in (b"ReviewSession", b"root:", b"PK\x03\x04", b"Traceback", served.token.encode()):
        assert secret not in answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "X"])
@pytest.mark.parametrize("path", ["/", "/api/state", "/api/decide"])
def test_other_methods_are_not_allowed(served, method, path):
    answer = served.ask(served.head(f"{method} {path} HTTP/1.1", JSON, "Connection: close"))
    assert _statuses(answer) == [405]
    assert served.session.store.log() == []


# Two parties that read the borders of a request differently see different requests. There is no
# second party here, but none of these may be taken for anything but one refused request.
SMUGGLED = b"POST /api/decide HTTP/1.1\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 0"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: +5",),
        ("Content-Length: 5 5",),
        ("Content-Length: 0x5",),
        ("Content-Length: -1",),
        ("Content-Length : 5",),
        (" Content-Length: 5",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding:\x0bchunked",),
        ("X: a\nContent-Length: 5",),
        ("X\0: a",),
    ],
)
def test_requests_of_two_readings_are_refused(served, headers):
    body = b"0\r\n\r\n" + SMUGGLED
    head = served.head("POST /api/undo HTTP/1.1", JSON, "Connection: close", *headers)
    answer = served.ask(head + body)
    statuses = _statuses(answer)
    assert statuses, "refused with an answer"
    assert all(400 <= status < 500 or status == 501 for status in statuses)
    assert served.session.store.log() == []


def test_what_follows_a_refused_request_is_not_read(served):
    smuggled = served.head("POST /api/decide HTTP/1.1", JSON, f"Content-Length: {len(DECISION)}")
    first = served.head("POST /api/decide HTTP/1.1", JSON, "Content-Length: 9", token=False)
    assert _statuses(served.ask(first + b"{}       " + smuggled + DECISION)) == [401]
    assert served.session.store.log() == []


def test_a_length_that_lies_decides_nothing(served):
    more = served.head("POST /api/decide HTTP/1.1", JSON, f"Content-Length: {len(DECISION) + 9}")
    assert _statuses(served.ask(more + DECISION)) == [408]
    shorter = (f"Content-Length: {len(DECISION) - 9}", "Connection: close")
    less = served.head("POST /api/decide HTTP/1.1", JSON, *shorter)
    assert 200 not in _statuses(served.ask(less + DECISION))
    huge = served.head("POST /api/decide HTTP/1.1", JSON, f"Content-Length: {10**18}")
    assert _statuses(served.ask(huge)) == [413]
    assert served.session.store.log() == []


def test_chunks_without_end_are_refused(served):
    head = served.head("POST /api/decide HTTP/1.1", JSON, "Transfer-Encoding: chunked")
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    assert _statuses(served.ask(head + chunk * (TERMS.max_body // 0x4000 + 2))) == [413]
    assert 200 not in _statuses(served.ask(head + b"ffffffffffffffffffff\r\nx"))
    assert served.session.store.log() == []


def test_slow_clients_do_not_keep_others_from_being_answered(served):
    """Each has sent a part of a request, and one byte more between the others' requests."""
    request = served.head("GET /api/state HTTP/1.1", "Connection: close")
    slow = [served.connect() for _ in range(30)]
    try:
        for number, client in enumerate(slow):
            client.sendall(request[: 1 + number])
        for turn in range(3):
            assert _statuses(served.ask(request)) == [200]
            for number, client in enumerate(slow):
                client.sendall(request[1 + number + turn : 2 + number + turn])
    finally:
        for client in slow:
            client.close()


def test_more_clients_than_it_can_take_are_told(served):
    request = served.head("GET /api/state HTTP/1.1", "Connection: close")
    waiting = [served.connect() for _ in range(80)]
    try:
        assert _statuses(served.ask(request)) == [503]
    finally:
        for client in waiting:
            client.close()
    until = time.monotonic() + ANSWER_SECONDS
    while _statuses(served.ask(request)) != [200]:
        assert time.monotonic() < until, "it does not recover"


@pytest.mark.parametrize("path", ["/", "/static/review.js", "/api/state", "/nowhere"])
def test_every_answer_is_hardened_on_the_wire(served, path):
    answer = served.ask(served.head(f"GET {path} HTTP/1.1", "Connection: close")).lower()
    for header in (
        b"content-security-policy: default-src 'none'",
        b"frame-ancestors 'none'",
        b"x-content-type-options: nosniff",
        b"referrer-policy: no-referrer",
        b"cross-origin-resource-policy: same-origin",
    ):
        assert header in answer
    assert b"\r\nserver:" not in answer
