from __future__ import annotations

import os

import pytest
from review_problem import png

from gmpll.apps.pages.images import PictureError, read_picture


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.png").write_bytes(png(1))
    (inside / "deep" / "b.PNG").write_bytes(png(2))
    (tmp_path / "secret.png").write_bytes(png(3))
    (tmp_path / "inside-too").mkdir()
    (tmp_path / "inside-too" / "c.png").write_bytes(png(4))
    return inside


@pytest.mark.parametrize("name", ["a.png", "./deep/../a.png", "deep/b.PNG"])
def test_pictures_inside_are_read(folder, name):
    image = read_picture(name, folder)
    assert image.media_type == "image/png"
    assert image.content.startswith(b"\x89PNG")


def test_an_absolute_path_inside_is_read(folder):
    assert read_picture(str(folder / "a.png"), folder).content == png(1)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "deep/../../secret.png",
        "../inside-too/c.png",
        "/etc/passwd",
        "/etc/passwd\0.png",
        "..\\secret.png",
        "%2e%2e/secret.png",
        "missing.png",
        "",
        ".",
        "deep",
        "http://127.0.0.1/a.png",
        "x" * 5000 + ".png",
    ],
)
def test_everything_else_is_refused(folder, name):
    with pytest.raises(PictureError, match="names no picture"):
        read_picture(name, folder)


def test_an_absolute_path_outside_is_refused(folder):
    with pytest.raises(PictureError):
        read_picture(str(folder.parent / "secret.png"), folder)


def test_links_that_lead_out_are_refused_and_those_inside_are_not(folder):
    (folder / "out.png").symlink_to(folder.parent / "secret.png")
    (folder / "in.png").symlink_to(folder / "a.png")
    (folder / "round.png").symlink_to(folder / "round.png")
    assert read_picture("in.png", folder).content == png(1)
    for name in ("out.png", "round.png"):
        with pytest.raises(PictureError):
            read_picture(name, folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.html", b"<script>alert(1)</script>"),
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        ("lie.png", b"<script>alert(1)</script>"),
        ("empty.png", b""),
        ("notes.txt", b"\x89PNG\r\n\x1a\n"),
    ],
)
def test_only_pictures_are_read(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(PictureError):
        read_picture(name, folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_opened(folder):
    os.mkfifo(folder / "pipe.png")
    with pytest.raises(PictureError):
        read_picture("pipe.png", folder)


def test_a_huge_file_is_refused(folder, monkeypatch):
    monkeypatch.setattr("gmpll.apps.pages.images.MAX_BYTES", 10)
    with pytest.raises(PictureError, match="larger than"):
        read_picture("a.png", folder)
