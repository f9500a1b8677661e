"""May a file be written? Asked before any work."""

import os
from pathlib import Path

from gmpll._atomic_io import is_special, nearest_folder, takes_files
from gmpll.apps.errors import UserError


def check_file(path: Path, *, force: bool, option: str = "--out") -> None:
    """Refuse what cannot be written, and a file that is there already unless it may be replaced.

    Pipes and devices are written into and not replaced; ``option`` is what names the file.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file with {option}.")
    if is_special(path):
        return
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another with {option}, or replace it with --force.")
    check_folder(Path(os.path.realpath(path)).parent, option=option)


def check_folder(folder: Path, *, option: str = "--out") -> None:
    """Refuse a folder that cannot be made or written to."""
    near = nearest_folder(folder)
    if not takes_files(near):
        reason = "cannot be written to" if near.is_dir() else "is no folder"
        raise UserError(f"{near} {reason}: name another with {option}.")


def table_stem(path: Path) -> str:
    """Return the name of a table without its endings, of which a packed one has two."""
    return path.with_suffix("").stem if path.suffix.lower() in (".gz", ".zst") else path.stem
