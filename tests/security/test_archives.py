"""What a hostile archive or server can make the data folder hold: nothing but the known file."""

from __future__ import annotations

import http.server
import sys
import threading
from contextlib import contextmanager, suppress

import pytest

from gmpll.datasets import archive, download, storage
from gmpll.datasets.archive import ArchiveError, extract_member
from gmpll.datasets.download import DownloadError

# Says what the test wants to hear; no test machine needs a real RAR program.
TOOL = """#!{python}
import sys
mode = sys.argv[1]
if mode == "-tf":
    sys.stdout.write({listing!r})
else:
    open({asked!r}, "a").write(sys.argv[-1] + "\\n")
    sys.stdout.write({content!r})
"""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Install a tool with a listing and a content; return where the members asked for are noted."""
    folder = tmp_path / "tools"
    folder.mkdir()
    asked = tmp_path / "asked"
    monkeypatch.setenv("PATH", str(folder))

    def install(listing, content="content"):
        program = folder / "bsdtar"
        program.write_text(
            TOOL.format(python=sys.executable, listing=listing, content=content, asked=str(asked))
        )
        program.chmod(0o755)
        return asked

    return install


def _extract(tmp_path):
    (tmp_path / "data").mkdir(exist_ok=True)
    extract_member(tmp_path / "lost.rar", "lost.mat", tmp_path / "data" / "target")


@pytest.mark.parametrize(
    "member",
    [
        "../../lost.mat",
        "/etc/lost.mat",
        "-lost.mat",
        "@lost.mat",
        "*/lost.mat",
        "$(touch x)/lost.mat",
        "`x`/lost.mat",
        "a;b/lost.mat",
        "C:\\lost.mat",
        "\x1b[2Jlost.mat",
    ],
)
def test_names_that_are_more_than_names_are_not_asked_for(pretend, tmp_path, member):
    asked = pretend(member + "\n")
    with pytest.raises(ArchiveError, match=r"does not hold exactly one lost\.mat"):
        _extract(tmp_path)
    assert not asked.exists()
    assert list((tmp_path / "data").iterdir()) == []


def test_content_goes_to_the_target_wherever_the_archive_would_put_it(pretend, tmp_path):
    asked = pretend("folder/../../lost.mat\nreadme\n")
    _extract(tmp_path)
    assert asked.read_text() == "folder/../../lost.mat\n"
    assert (tmp_path / "data" / "target").read_text() == "content"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked", "data", "tools"]


def test_links_and_devices_give_nothing(pretend, tmp_path):
    """Asked to print a link or a device, the tools print nothing."""
    pretend("lost.mat\n", content="")
    with pytest.raises(ArchiveError, match=r"cannot take lost\.mat"):
        _extract(tmp_path)


def test_two_files_of_the_name_are_one_too_many(pretend, tmp_path):
    pretend("lost.mat\nother/LOST.mat\n")
    with pytest.raises(ArchiveError, match="exactly one"):
        _extract(tmp_path)


def test_more_members_than_reason_are_not_listed(pretend, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_MAX_LISTING_BYTES", 1000)
    pretend("x\n" * 2000 + "lost.mat\n")
    with pytest.raises(ArchiveError, match="holds more files"):
        _extract(tmp_path)


def test_a_bomb_is_stopped(pretend, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBER_BYTES", 1000)
    monkeypatch.setattr(storage, "_CHUNK_BYTES", 100)
    pretend("lost.mat\n", content="0" * 2000)
    with pytest.raises(ArchiveError, match="larger than 1000 bytes"):
        _extract(tmp_path)
    assert (tmp_path / "data" / "target").stat().st_size <= 1000


def test_a_tool_that_hangs_is_ended(pretend, tmp_path, monkeypatch):
    pretend("lost.mat\n")
    (tmp_path / "tools" / "bsdtar").write_text(
        f"#!{sys.executable}\nimport time\ntime.sleep(1000)\n"
    )
    monkeypatch.setattr(archive, "_TIMEOUT_SECONDS", 0.3)
    with pytest.raises(ArchiveError, match=r"cannot read lost\.rar"):
        _extract(tmp_path)


@contextmanager
def _serving(write):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with suppress(OSError):  # the client has had enough
                write(self)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/file"
        server.shutdown()
        thread.join()


def test_a_download_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 10**6)
    requests = []

    def pour(handler):
        requests.append(handler.path)
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(2**16))

    with _serving(pour) as address, pytest.raises(DownloadError, match="larger than"):
        download.download(address, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    assert len(requests) == 1


@pytest.mark.parametrize("length", ["none", "-5", "1e9", "٣"])
def test_a_length_that_is_none_is_not_believed(tmp_path, monkeypatch, length):
    monkeypatch.setattr(download, "RETRY_SECONDS", 0.0)

    def answer(handler):
        handler.wfile.write(f"HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\ncontent".encode())

    with _serving(answer) as address:
        try:
            download.download(address, tmp_path / "file")
        except DownloadError:
            assert list(tmp_path.iterdir()) == []
        else:
            assert (tmp_path / "file").read_bytes() == b"content"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/x"])
def test_a_redirect_does_not_lead_to_this_machines_files(tmp_path, target):
    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.end_headers()

    with _serving(redirect) as address, pytest.raises(DownloadError, match="302"):
        download.download(address, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
