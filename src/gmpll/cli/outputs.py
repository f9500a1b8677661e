"""May a file be written? Asked before any work."""

from __future__ import annotations

from pathlib import Path

from gmpll._unfinished import is_special
from gmpll.cli.errors import UserError

__all__ = ["check_file"]


def check_file(path: Path, *, force: bool, option: str = "--out") -> None:
    """Refuse a folder, and a file that is there already unless it may be replaced.

    Pipes and devices are written into and not replaced.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file may be replaced.
    option : str, default="--out"
        The option that names the file.

    Raises
    ------
    UserError
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file with {option}.")
    if is_special(path):
        return
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another with {option}, or replace it with --force.")
