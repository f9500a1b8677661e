"""``gmpll serve`` under load, on loopback: ``python benchmarks/serving.py MODEL TABLE``.

Parallel clients send rows of a table, one in every request. Then come requests that are malformed
or too large, and the service is told to stop while clients are asking. Counts and times are
bounded.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import itertools
import json
import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOKEN = secrets.token_urlsafe(32)
JSON = "application/json"
#: Nothing takes longer than this, or it is given up.
MAX_SECONDS = 600.0
MALFORMED = (
    (b"{", JSON),
    (b"7", JSON),
    (b'[{"no": 1}]', JSON),
    (b"\xff", JSON),
    (b"a,b\n1\n", "text/csv"),
)


def ask(
    connection: http.client.HTTPConnection, body: bytes, kind: str = JSON
) -> tuple[int, dict[str, Any]]:
    """Send a request; return the status and what came back."""
    headers = {"Content-Type": kind, "Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/predict", body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


class Load:
    """Clients that share out a number of requests and count what came of them."""

    def __init__(self, address: str, bodies: list[bytes], n_requests: int, n_clients: int) -> None:
        self.address = urlsplit(address)
        self.bodies = bodies
        self.numbers = iter(range(n_requests))
        self.lock = threading.Lock()
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self.broken = 0  # connections that ended without an answer, as when the service stops
        self.until = time.monotonic() + MAX_SECONDS
        self.clients = [
            threading.Thread(target=self._client, daemon=True) for _ in range(n_clients)
        ]

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            self.address.hostname or "", self.address.port, timeout=60
        )

    def _client(self) -> None:
        connection = self.connected()
        while time.monotonic() < self.until:
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                break
            begun = time.perf_counter()
            try:
                status, answer = ask(connection, self.bodies[number % len(self.bodies)])
            except (OSError, http.client.HTTPException):
                self.broken += 1
                break
            except ValueError as error:  # half an answer
                self.errors.append(str(error))
                break
            self.seconds.append(time.perf_counter() - begun)
            if status != 200 or len(answer["predictions"]) != 1:
                self.errors.append(f"{status}: {answer}")
        connection.close()

    def run(self) -> float:
        """Return how many seconds all clients together took."""
        begun = time.monotonic()
        for client in self.clients:
            client.start()
        for client in self.clients:
            client.join(MAX_SECONDS)
        return time.monotonic() - begun


def started(model: Path) -> tuple[subprocess.Popen[str], str]:
    """Start the service; return its process and its address."""
    command = [sys.executable, "-m", "gmpll", "serve", str(model), "--port", "0"]
    environment = os.environ | {"GMPLL_TOKEN": TOKEN}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    if found is None:
        raise SystemExit(process.communicate(timeout=60)[1])
    return process, found[0]


def main() -> None:
    """Put the service under load and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("table", type=Path, help="CSV with the columns of the model")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    given = parser.parse_args()
    with given.table.open(newline="", encoding="utf-8") as file:
        rows = list(itertools.islice(csv.DictReader(file), 500))
    bodies = [json.dumps([row]).encode() for row in rows]
    process, address = started(given.model)
    try:
        load = Load(address, bodies, min(given.requests, 100_000), min(given.clients, 200))
        elapsed = load.run()
        asked = load.seconds or [0.0]
        print(
            f"{len(load.seconds)} requests by {len(load.clients)} clients in {elapsed:.1f} s: "
            f"{len(load.errors)} errors, {load.broken} broken off; "
            f"median {1000 * statistics.median(asked):.0f} ms, slowest {1000 * max(asked):.0f} ms"
        )
        for body, kind in (*MALFORMED, (b"[" + b" " * 2**24, JSON)):
            connection = load.connected()
            try:
                status, answer = ask(connection, body, kind)
                print(f"{status}: {answer['error']}")
            except OSError as error:  # the service hangs up on who goes on sending
                print(f"refused while sending {len(body) >> 20} MiB: {error}")
            connection.close()
        last = Load(address, bodies, 100_000, min(given.clients, 200))
        stop = threading.Timer(1.0, process.send_signal, [signal.SIGTERM])
        stop.start()
        begun = time.monotonic()
        last.run()
        _, complaints = process.communicate(timeout=60)
        print(
            f"stopped {time.monotonic() - begun - 1:.1f} s after it was told to, exit code "
            f"{process.returncode}: {len(last.seconds)} requests answered in full, "
            f"{len(last.errors)} in part, {last.broken} connections closed"
        )
        print(complaints or "It printed no complaint.")
    finally:
        process.kill()
        process.wait()
    sys.exit(bool(load.errors or load.broken or last.errors or process.returncode))


if __name__ == "__main__":
    main()
