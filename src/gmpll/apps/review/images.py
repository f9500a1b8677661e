"""Pictures that the rows name, and nothing else of the disk."""

from __future__ import annotations

from pathlib import Path

from gmpll.apps.decisions.errors import RequestError
from gmpll.apps.pages.images import Image, PictureError, read_picture

__all__ = ["Image", "read_image"]


def read_image(name: str, folder: Path) -> Image:
    """Read a picture from inside a folder, out of which links do not lead either."""
    try:
        return read_picture(name, folder)
    except PictureError as error:
        raise RequestError(str(error)) from None
