import pytest

from gmpll.datasets import download as module
from gmpll.datasets.download import DownloadError, download


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)


BODY = bytes(range(256)) * 1000


def test_fetches_the_bytes(server, tmp_path):
    server.serve("/a file!.bin", BODY)
    download(server.address + "a%20file!.bin", tmp_path / "new" / "file.bin")
    assert (tmp_path / "new" / "file.bin").read_bytes() == BODY


@pytest.mark.parametrize("trouble", [503, (BODY, 70_000), (BODY, 0)])
def test_passing_trouble_is_tried_again(server, tmp_path, trouble):
    server.serve("/file", trouble, trouble, BODY)
    download(server.address + "file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert server.requests["/file"] == 3


@pytest.mark.parametrize(
    ("trouble", "requests", "message"),
    [
        (404, 1, "HTTP status 404"),
        (500, module.ATTEMPTS, "HTTP status 500"),
        ((BODY, 70_000), module.ATTEMPTS, "only 70000 of 256000 bytes arrived"),
    ],
)
def test_lasting_trouble_ends_and_leaves_nothing(server, tmp_path, trouble, requests, message):
    server.serve("/file", trouble)
    path = tmp_path / "file"
    path.write_text("what was there before")
    with pytest.raises(DownloadError, match=message):
        download(server.address + "file", path)
    assert server.requests["/file"] == requests
    assert path.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_waits_longer_each_time(server, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(module, "RETRY_SECONDS", 1.5)
    monkeypatch.setattr(module.time, "sleep", waited.append)
    server.serve("/file", 500)
    with pytest.raises(DownloadError):
        download(server.address + "file", tmp_path / "file")
    assert waited == [1.5, 3.0]


def test_nobody_there(tmp_path, server):
    import socket

    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match="refused"):
            download(address, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_not_the_networks_fault(server, tmp_path):
    (tmp_path / "file").touch()
    server.serve("/x", BODY)
    with pytest.raises((NotADirectoryError, FileExistsError)):
        download(server.address + "x", tmp_path / "file" / "x")
    assert server.requests["/x"] == 0
