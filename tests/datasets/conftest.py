"""Small files of the real layouts and a server on the loopback address; no test goes further."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from gmpll.datasets import catalogue


def small_arrays(n: int = 12, d: int = 3, q: int = 4, seed: int = 0) -> dict[str, Any]:
    """The three variables of a real-world file, labels transposed and dense."""
    rng = np.random.RandomState(seed)
    truth = np.arange(n) % (q - 1)  # the last label is never true
    target = np.zeros((q, n))
    target[truth, np.arange(n)] = 1
    partial = np.maximum(target, rng.random_sample((q, n)) < 0.4)
    return {
        "data": rng.standard_normal((n, d)),
        "partial_target": partial,
        "target": target,
    }


@pytest.fixture
def write_mat(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str = "lost.mat", *, sparse: bool = False, **changes: Any) -> Path:
        arrays = {**small_arrays(), **changes}
        arrays = {key: value for key, value in arrays.items() if value is not None}
        if sparse:
            for key in ("partial_target", "target"):
                arrays[key] = sp.csc_array(arrays[key].astype(float))
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        savemat(path, arrays, do_compression=True)
        return path

    return write


@pytest.fixture
def known_checksum(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Let the catalogue know another checksum of a set."""

    def change(name: str, checksum: str) -> None:
        info = replace(catalogue.dataset_info(name), checksum=checksum)
        monkeypatch.setitem(catalogue._ALL, name, info)

    return change


@dataclass
class Server:
    """Answers by path: bytes, a status, or (bytes, how many of them to send)."""

    address: str
    answers: dict[str, list[Any]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)

    def serve(self, path: str, *answers: Any) -> None:
        """Give these answers one after the other; the last one for ever."""
        self.answers[path] = list(answers)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            queue = state.answers.get(path, [404])
            answer = queue[0] if len(queue) == 1 else queue.pop(0)
            state.requests[path] += 1
            if isinstance(answer, int):
                self.send_error(answer)
                return
            body, sent = answer if isinstance(answer, tuple) else (answer, len(answer))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:sent])

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.address = f"http://127.0.0.1:{http.server_address[1]}/"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield state
        http.shutdown()
        thread.join()
