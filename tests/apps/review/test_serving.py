from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("httpx")

import httpx
import review_problem

from gmpll.apps.decisions.store import FILE_NAME
from gmpll.apps.errors import UserError
from gmpll.apps.review.app import make_server
from gmpll.apps.review.session import open_review
from gmpll.apps.web import security
from gmpll.apps.web import server as server_module

ANSWER_SECONDS = 30  # far more than needed: only a hanging server reaches it


@contextmanager
def _running(session, **options):
    """Serve in a thread; uvicorn leaves signals alone outside of the main thread."""
    running = make_server(session, **options)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.server.started:
        time.sleep(0.01)
    try:
        yield running
    finally:
        running.server.should_exit = True
        thread.join(ANSWER_SECONDS)


def _parts(address):
    base, _, token = address.partition("/#token=")
    return base, {"authorization": f"Bearer {token}"}


def test_it_listens_on_loopback_only_and_the_address_opens_it(session):
    with _running(session) as running:
        assert running.listener.getsockname()[0] == "127.0.0.1"
        base, headers = _parts(running.address)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", base)
        assert httpx.get(f"{base}/api/state", headers=headers).json()["rows"] == 30
        assert httpx.get(f"{base}/api/state").status_code == 401
        answer = httpx.get(base)
        assert "server" not in answer.headers
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_every_server_draws_its_own_token(session):
    servers = [make_server(session) for _ in range(2)]
    assert len({_parts(server.address)[1]["authorization"] for server in servers}) == 2
    for server in servers:
        server.listener.close()


def test_a_port_in_use_is_one_sentence(session):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} on 127\.0\.0\.1 cannot be used"):
            make_server(session, port=port)


def test_a_host_that_is_not_here_is_one_sentence(session):
    with pytest.raises(UserError, match="cannot be used"):
        make_server(session, host="203.0.113.1")


def _connected(address):
    host, port = re.search(r"//([\d.]+):(\d+)", address).groups()
    return socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)


def _rest(client):
    """Return what comes until the server hangs up."""
    answer = b""
    while part := client.recv(65536):
        answer += part
    return answer


def _until_closed(address, *pieces):
    with _connected(address) as client:
        for piece in pieces:
            client.sendall(piece)
        return _rest(client)


@pytest.mark.parametrize(
    "pieces", [[], [b"GET / HTTP/1.1\r\n"], [b"GET / HT", b"TP/1.1\r\nHost: "]]
)
def test_whoever_does_not_finish_the_head_is_hung_up_on(session, monkeypatch, pieces):
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.2)
    with _running(session) as running:
        assert _until_closed(running.address, *pieces) == b""


def test_the_head_of_a_second_request_is_not_waited_for_either(session, monkeypatch):
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.2)
    with _running(session) as running, _connected(running.address) as client:
        host = _parts(running.address)[0][7:]
        client.sendall(f"GET /static/icon.svg HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = b""
        while b"</svg>" not in answer:
            answer += client.recv(65536)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert _rest(client).strip() == b""


def test_whoever_does_not_finish_the_body_is_hung_up_on(session, monkeypatch):
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    with _running(session) as running:
        base, headers = _parts(running.address)
        head = (
            f"POST /api/decide HTTP/1.1\r\nHost: {base[7:]}\r\nContent-Type: application/json\r\n"
            f"Authorization: {headers['authorization']}\r\nContent-Length: 100\r\n\r\n"
        )
        assert _until_closed(running.address, head.encode(), b"{").startswith(b"HTTP/1.1 408")
    assert session.store.log() == []


def test_a_head_without_end_is_refused(session):
    with _running(session) as running:
        answer = _until_closed(running.address, b"GET / HTTP/1.1\r\nX: " + b"x" * 40000)
        assert answer.startswith(b"HTTP/1.1 400")


def test_two_host_headers_are_refused(session):
    with _running(session) as running:
        host = _parts(running.address)[0][7:]
        request = f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n"
        status = _until_closed(running.address, request.encode()).split(b" ", 2)[1]
        assert status in (b"400", b"421")


def test_a_decision_that_was_acknowledged_survives_kill_9(folder):
    """The server dies without warning right after it said yes."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom gmpll.apps.cli.review import review\n"
        "review(Path(sys.argv[1]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        base, headers = _parts(process.stdout.readline().split()[-1])
        for row in (5, 6, 7):
            asked = {"row": row, "version": 0, "tab": "a", "action": "label", "code": 1}
            answer = httpx.post(f"{base}/api/decide", json=asked, headers=headers)
            assert answer.status_code == 200
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(ANSWER_SECONDS) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert (folder / FILE_NAME).is_file()
    again = open_review(folder, rematch=review_problem.rematch)
    assert again.gold() == {0: 0, 5: 1, 6: 1, 7: 1}
    assert again.progress()["decided"] == 3
    again.store.close()
