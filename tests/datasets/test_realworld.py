"""Loading, and fetching from a stand-in of the origin with a stand-in of the unpacking tool."""

import hashlib
import sys
import zipfile

import numpy as np
import pytest

from gmpll.datasets import (
    DatasetFormatError,
    DatasetUnavailableError,
    archive,
    download,
    list_datasets,
    load_dataset,
    load_real_world,
    realworld,
)
from gmpll.datasets.matfile import read_mat

REAL_WORLD = [info for info in list_datasets() if info.kind == "real-world"]

# Speaks bsdtar's language over a zip file; no test machine needs a real RAR program.
STAND_IN = """#!{python}
import sys, zipfile
mode, archive, *members = sys.argv[1:]
try:
    with zipfile.ZipFile(archive) as file:
        if mode == "-tf":
            print("\\n".join(file.namelist()))
        elif mode == "-xOf":
            sys.stdout.buffer.write(file.read(members[0]))
except zipfile.BadZipFile:
    sys.exit(1)
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """An otherwise empty PATH with the stand-in."""
    folder = tmp_path / "tools"
    folder.mkdir()
    program = folder / "bsdtar"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def origin(server, monkeypatch):
    monkeypatch.setattr(realworld, "ORIGIN", server.address)
    monkeypatch.setattr(download, "RETRY_SECONDS", 0.0)
    return server


@pytest.fixture
def make_archive(tmp_path):
    def make(**members):
        path = tmp_path / "made.zip"
        with zipfile.ZipFile(path, "w") as file:
            for member, content in members.items():
                file.writestr(member, content)
        return path.read_bytes()

    return make


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("info", REAL_WORLD, ids=lambda info: info.name)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_in_the_folder_is_loaded(write_mat, tmp_path, info, sparse):
    path = write_mat(f"realworld/{info.file_name}", sparse=sparse)
    with pytest.warns(UserWarning, match="well formed but not the known file"):
        bunch = load_dataset(info.name, tmp_path)
    expected = read_mat(path)
    np.testing.assert_array_equal(bunch.data, expected.data)
    np.testing.assert_array_equal(bunch.candidates, expected.candidates)
    np.testing.assert_array_equal(bunch.target, expected.target)
    np.testing.assert_array_equal(bunch.target_names, np.arange(4))
    assert bunch.ordered == info.ordered
    assert bunch.name == info.name
    assert len(bunch.feature_names) == 3
    assert info.citation in bunch.DESCR
    assert not bunch.verified


def test_the_known_file_is_verified_without_a_warning(write_mat, tmp_path, known_checksum, recwarn):
    known_checksum("lost", sha256(write_mat("lost.mat").read_bytes()))
    assert load_real_world("lost", tmp_path).verified
    assert not recwarn.list


def test_a_malformed_file_is_refused_not_downloaded_again(tmp_path, origin):
    (tmp_path / "lost.mat").write_bytes(b"junk")
    with pytest.raises(DatasetFormatError, match=r"lost\.mat is not a usable"):
        load_real_world("lost", tmp_path)
    assert not origin.requests


def test_without_download_the_error_says_which_file_to_put_where(tmp_path, origin):
    with pytest.raises(DatasetUnavailableError) as caught:
        load_real_world("yahoo-news", tmp_path, download_if_missing=False)
    assert f"put Yahoo! News.mat into {tmp_path / 'realworld'}" in str(caught.value)
    assert not origin.requests


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("soccer-player", "Soccer Player.mat"),
        ("yahoo-news", "Yahoo! News/Yahoo! News.mat"),
        ("lost", "Lost.mat"),
    ],
)
def test_a_missing_file_is_downloaded_unpacked_checked_and_kept(
    write_mat, make_archive, origin, tools, known_checksum, tmp_path, name, member
):
    content = write_mat("elsewhere.mat").read_bytes()
    known_checksum(name, sha256(content))
    info = next(info for info in list_datasets() if info.name == name)
    url = "/" + info.file_name.replace(".mat", ".rar")
    origin.serve(url, make_archive(**{"readme.txt": "x", member: content}))
    home = tmp_path / "home"
    bunch = load_real_world(name, home)
    assert bunch.verified
    assert [p.name for p in (home / "realworld").iterdir()] == [info.file_name]
    load_real_world(name, home)
    assert origin.requests == {url: 1}


def home_is_empty(home):
    return not home.exists() or not [path for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"lost.mat": "something else"}, "another checksum"),
        ({"found.mat": "x"}, "does not hold exactly one lost.mat"),
        ({"a/lost.mat": "x", "b/lost.mat": "x"}, "does not hold exactly one lost.mat"),
        ({"../../lost.mat": "x"}, "does not hold exactly one lost.mat"),
        ({"/lost.mat": "x"}, "does not hold exactly one lost.mat"),
        ({"-C/lost.mat": "x"}, "does not hold exactly one lost.mat"),
        ({"*/lost.mat": "x"}, "does not hold exactly one lost.mat"),
    ],
)
def test_an_archive_that_is_not_the_expected_one_leaves_nothing(
    make_archive, origin, tools, tmp_path, members, message
):
    origin.serve("/lost.rar", make_archive(**members))
    home = tmp_path / "deep" / "down" / "home"
    with pytest.raises(DatasetUnavailableError, match=message):
        load_real_world("lost", home)
    assert home_is_empty(tmp_path / "deep")


def test_a_page_instead_of_an_archive_leaves_nothing(origin, tools, tmp_path):
    origin.serve("/lost.rar", b"<html>moved</html>")
    with pytest.raises(DatasetUnavailableError, match=r"cannot read lost\.rar"):
        load_real_world("lost", tmp_path / "home")
    assert home_is_empty(tmp_path / "home")


def test_a_bomb_is_not_unpacked(origin, tools, make_archive, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBER_BYTES", 1000)
    origin.serve("/lost.rar", make_archive(**{"lost.mat": "x" * 1001}))
    with pytest.raises(DatasetUnavailableError, match="larger than 1000 bytes"):
        load_real_world("lost", tmp_path / "home")
    assert home_is_empty(tmp_path / "home")


def test_the_origin_being_away_says_which_file_to_put_where(origin, tools, tmp_path):
    origin.serve("/Soccer Player.rar", 503)
    with pytest.raises(DatasetUnavailableError) as caught:
        load_real_world("soccer-player", tmp_path)
    text = str(caught.value)
    assert f"{origin.address}Soccer%20Player.rar could not be fetched: HTTP status 503" in text
    assert f"put Soccer Player.mat into {tmp_path / 'realworld'}" in text
    assert origin.requests["/Soccer Player.rar"] == download.ATTEMPTS


def test_without_a_tool_the_archive_stays_for_the_user(
    write_mat, make_archive, origin, tools, known_checksum, tmp_path, monkeypatch
):
    content = write_mat("elsewhere.mat").read_bytes()
    known_checksum("lost", sha256(content))
    origin.serve("/lost.rar", make_archive(**{"lost.mat": content}))
    home = tmp_path / "home"
    with monkeypatch.context() as without:
        without.setenv("PATH", str(home))
        with pytest.raises(DatasetUnavailableError) as caught:
            load_real_world("lost", home)
    kept = home / "realworld" / "lost.rar"
    assert f"{kept} is to be unpacked but none of the programs bsdtar, unrar" in str(caught.value)
    assert kept.is_file()
    # With a tool, the archive that lies there is used, and left to its owner.
    assert load_real_world("lost", home).verified
    assert origin.requests["/lost.rar"] == 1
    assert kept.is_file()


def test_a_folder_that_cannot_be_written_is_named(origin, tools, tmp_path):
    home = tmp_path / "home"
    home.touch()
    with pytest.raises(DatasetUnavailableError, match="cannot be downloaded to there") as caught:
        load_real_world("lost", home)
    assert str(home) in str(caught.value)
