"""Taking one file out of a RAR archive with whatever tool the system has.

The member's bytes are read from the tool's standard output into a file of our own choosing, so
that no path inside an archive can lead anywhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gmpll.datasets.storage import chunks, same_name

#: The largest set unpacks to some tens of megabytes; an archive that gives more is not ours.
MAX_MEMBER_BYTES = 2**30
_TIMEOUT_SECONDS = 300
#: The archives of the field hold a handful of files.
_MAX_LISTING_BYTES = 2**20
#: Member names that no tool can take for an option, a pattern or a list of files.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w .!()/\\-]*", re.ASCII)


class ArchiveError(OSError):
    """An archive cannot be unpacked."""


class NoToolError(ArchiveError):
    """There is no program that unpacks RAR archives."""


class _Tool(NamedTuple):
    program: str
    listing: Sequence[str]
    extraction: Sequence[str]


_TOOLS = (
    _Tool("bsdtar", ("-tf",), ("-xOf",)),
    _Tool("unrar", ("lb", "-p-"), ("p", "-inul", "-p-")),
    *(_Tool(name, ("l", "-slt", "-ba"), ("e", "-so")) for name in ("7zz", "7z")),
)


def extract_member(archive: Path, file_name: str, target: Path) -> None:
    """Write the member ``file_name`` of a RAR archive, in whatever folder it lies there, to a file.

    Spelling is forgiven as everywhere in the data folder.
    """
    tools = [tool for tool in _TOOLS if shutil.which(tool.program)]
    if not tools:
        names = ", ".join(tool.program for tool in _TOOLS)
        raise NoToolError(f"none of the programs {names} is installed")
    reasons = []
    for tool in tools:
        try:
            return _write_member(tool, archive, _find_member(tool, archive, file_name), target)
        except (ArchiveError, subprocess.SubprocessError) as error:
            reasons.append(f"{tool.program}: {error}")
    raise ArchiveError("; ".join(reasons))


def _find_member(tool: _Tool, archive: Path, file_name: str) -> str:
    command = [tool.program, *tool.listing, str(archive)]
    too_many = f"{archive.name} holds more files than the known archives"
    listing = b"".join(
        _output(command, _MAX_LISTING_BYTES, too_many, f"cannot read {archive.name}")
    )
    lines = listing.decode("utf-8", "replace").splitlines()
    members = [line.removeprefix("Path = ").strip() for line in lines]
    wanted = [m for m in members if same_name(re.split(r"[/\\]", m)[-1], file_name)]
    if len(wanted) != 1 or not _PLAIN_NAME.fullmatch(wanted[0]):
        raise ArchiveError(f"{archive.name} does not hold exactly one {file_name}")
    return wanted[0]


def _write_member(tool: _Tool, archive: Path, member: str, target: Path) -> None:
    command = [tool.program, *tool.extraction, str(archive), member]
    too_large = f"{member} is larger than {MAX_MEMBER_BYTES} bytes"
    failed = f"cannot take {member} out of {archive.name}"
    with target.open("wb") as file:
        file.writelines(_output(command, MAX_MEMBER_BYTES, too_large, failed))
        if not file.tell():
            raise ArchiveError(failed)


def _output(command: Sequence[str], limit: int, too_much: str, failed: str) -> Iterator[bytes]:
    """Yield what a program prints; it is killed if it prints too much or takes too long."""
    process: Any
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        impatience = threading.Timer(_TIMEOUT_SECONDS, process.kill)
        impatience.daemon = True
        impatience.start()
        try:
            yield from chunks(process.stdout, limit, ArchiveError(too_much))
        except BaseException:
            process.kill()
            raise
        finally:
            impatience.cancel()
    if process.returncode:
        raise ArchiveError(failed)
