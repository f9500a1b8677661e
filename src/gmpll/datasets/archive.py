"""Taking one file out of a RAR archive with whatever tool the system has.

The member's bytes are read from the tool's standard output into a file of our own choosing, so
that no path inside an archive can lead anywhere.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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


#: Programs, how they list what an archive holds, and how they print a member.
_TOOLS = {
    "bsdtar": (("-tf",), ("-xOf",)),
    "unrar": (("lb", "-p-"), ("p", "-inul", "-p-")),
    "7zz": (("l", "-slt", "-ba"), ("e", "-so")),
    "7z": (("l", "-slt", "-ba"), ("e", "-so")),
}


def extract_member(archive: Path, file_name: str, target: Path) -> None:
    """Write the member ``file_name`` of a RAR archive, in whatever folder it lies there, to a file.

    Spelling is forgiven as everywhere in the data folder.
    """
    programs = [program for program in _TOOLS if shutil.which(program)]
    if not programs:
        raise NoToolError(f"none of the programs {', '.join(_TOOLS)} is installed")
    reasons = []
    for program in programs:
        try:
            return _extract(program, archive, file_name, target)
        except (ArchiveError, subprocess.SubprocessError) as error:
            reasons.append(f"{program}: {error}")
    raise ArchiveError("; ".join(reasons))


def _extract(program: str, archive: Path, file_name: str, target: Path) -> None:
    listing, extraction = ([program, *options, str(archive)] for options in _TOOLS[program])
    too_many = f"{archive.name} holds more files than the known archives"
    failed = f"cannot read {archive.name}"
    listed = b"".join(_output(listing, _MAX_LISTING_BYTES, too_many, failed))
    lines = listed.decode("utf-8", "replace").splitlines()
    members = [line.removeprefix("Path = ").strip() for line in lines]
    wanted = [m for m in members if same_name(re.split(r"[/\\]", m)[-1], file_name)]
    if len(wanted) != 1 or not _PLAIN_NAME.fullmatch(wanted[0]):
        raise ArchiveError(f"{archive.name} does not hold exactly one {file_name}")
    too_large = f"{wanted[0]} is larger than {MAX_MEMBER_BYTES} bytes"
    failed = f"cannot take {wanted[0]} out of {archive.name}"
    with target.open("wb") as file:
        file.writelines(_output([*extraction, *wanted], MAX_MEMBER_BYTES, too_large, failed))
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
