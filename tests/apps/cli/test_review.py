from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from gmpll.apps.cli.review import review
from gmpll.apps.errors import UserError


@pytest.fixture
def folder(tmp_path):
    np.savez_compressed(
        tmp_path / "matching.npz",
        format=np.asarray(1),
        ids=np.array(["a", "b", "c"]),
        classes=np.array(["cat", "dog"]),
        mask=np.array([[1, 1], [1, 1], [1, 0]], dtype=bool),
        gold=np.array([-1, -1, -1]),
        labels=np.array([0, 1, 0]),
        confidence=np.array([[0.6, 0.4], [0.1, 0.9], [1, 0]], dtype=np.float32),
        features=np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32),
        display=np.array(['{"text": "x"}'] * 3),
        text_column=np.asarray("text"),
        image_column=np.asarray(""),
        source=np.asarray(""),
        settings=np.asarray("{}"),
        weights=np.empty((0, 0), dtype=np.float32),
    )
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """Stand in for the serving itself; keep what would have been served."""
    from gmpll.apps.web import server as web

    made = []

    def run(server):
        made.append(server)
        server.listener.close()

    monkeypatch.setattr(web.LocalServer, "run", run)
    return made


def test_the_address_is_printed_and_no_browser_opened(folder, served, capsys, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: pytest.fail("a browser was opened"))
    review(folder)
    printed = capsys.readouterr()
    assert re.search(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}\n", printed.out)
    assert printed.err == ""
    assert served[0].address in printed.out
    assert str(folder / "review.sqlite") in printed.out


def test_open_opens_the_browser_at_the_address(folder, served, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    review(folder, open_browser=True)
    assert opened == [served[0].address]


def test_listening_for_others_needs_the_host_and_warns(folder, served, capsys):
    review(folder, host="0.0.0.0")
    assert "Warning: the page listens on 0.0.0.0" in capsys.readouterr().err


def test_labels_are_exported_without_a_page(folder, served, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    review(folder, export=out)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("id,label,origin")
    assert [line.split(",")[:2] for line in lines[1:]] == [["a", "cat"], ["b", "dog"], ["c", "cat"]]
    assert capsys.readouterr().out.strip() == str(out)
    assert served == []


def test_an_existing_file_is_replaced_only_by_force(folder, tmp_path):
    out = tmp_path / "mine.csv"
    out.write_text("mine")
    with pytest.raises(UserError, match=r"mine\.csv exists: name another with --export"):
        review(folder, export=out)
    assert out.read_text() == "mine"
    review(folder, export=out, force=True)
    assert out.read_text().startswith("id,label")
    with pytest.raises(UserError, match="is a folder: name a file"):
        review(folder, export=tmp_path, force=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"export_format": "xls"}, "--format xls is unknown"),
        ({"export": Path("tasks.json")}, r"does not end in \.csv: say what to write with --format"),
        ({"export": Path("/dev/null/at/all.csv")}, "/dev/null is no folder: name another with"),
        ({"images": Path("/nowhere/at/all")}, "is no folder"),
        ({"export": None, "export_format": "csv"}, "--format is about a file to write"),
        ({"export": None, "force": True}, "it goes with --export only"),
        ({"export": None, "host": "203.0.113.1"}, "cannot be used"),
    ],
)
def test_wrong_options_are_one_sentence(folder, tmp_path, options, sentence):
    with pytest.raises(UserError, match=sentence):
        review(folder, **{"export": tmp_path / "x.csv", **options})


def test_a_folder_without_a_matching_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"holds no matching\.npz"):
        review(tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        review(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_matching_is_one_sentence(tmp_path):
    (tmp_path / "matching.npz").write_bytes(b"PK\x03\x04 junk")
    with pytest.raises(UserError, match="damaged"):
        review(tmp_path)


def test_a_missing_library_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in ("gmpll.apps.review.app", "gmpll.apps.web.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(
        UserError, match=r"need uvicorn: install it with pip install 'gmpll\[review"
    ):
        review(folder)


def test_the_command_line_does_not_load_the_server():
    code = "import sys, gmpll.apps.cli.review as c; sys.exit('uvicorn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way")
def test_ctrl_c_ends_it_in_order(folder):
    code = (
        "import sys\nfrom pathlib import Path\nfrom gmpll.apps.cli.review import review\n"
        "review(Path(sys.argv[1]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().split()[-1].partition("#")[0]
        _wait_for(address)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "Traceback" not in err
    assert out.splitlines()[-1] == f"Decisions: {folder / 'review.sqlite'}"


def _wait_for(address):
    """The answer to a request: from then on the server handles signals itself."""
    import urllib.request

    with urllib.request.urlopen(address, timeout=30) as answer:
        assert answer.status == 200
