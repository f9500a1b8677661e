"""Pictures that the rows name, and nothing else of the disk."""

from pathlib import Path
from typing import NamedTuple

#: A larger file is no picture to look at in passing.
MAX_BYTES = 32 * 2**20
#: Cells of any length must leave the sentence readable.
_MAX_NAME = 100

#: What a file of each type begins with. SVG is missing on purpose: it can carry scripts.
_BEGINNINGS = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpeg": (b"\xff\xd8\xff",),
    "gif": (b"GIF87a", b"GIF89a"),
    "webp": (b"RIFF",),
    "bmp": (b"BM",),
}


class PictureError(Exception):
    """There is no such picture; the text says why."""


class Image(NamedTuple):
    """A picture and its media type."""

    content: bytes
    media_type: str


def read_picture(name: str, folder: Path) -> Image:
    """Read a picture from inside a folder, out of which links do not lead either."""
    shown = repr(name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…")
    refusal = PictureError(f"{shown} names no picture beside the input.")
    kind = Path(name).suffix.lower().removeprefix(".").replace("jpg", "jpeg")
    if kind not in _BEGINNINGS:
        raise refusal
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve(strict=True)
        # Whether it is a plain file is asked last: a path outside must not even tell whether it
        # exists, and a pipe must not be opened.
        if not path.is_relative_to(root) or not path.is_file():
            raise refusal
        if path.stat().st_size > MAX_BYTES:
            raise PictureError(f"{shown} is larger than {MAX_BYTES >> 20} MiB.")
        content = path.read_bytes()
    except (OSError, ValueError, RuntimeError):  # missing, a zero byte, a circle of links
        raise refusal from None
    if not content.startswith(_BEGINNINGS[kind]):
        raise refusal
    return Image(content, f"image/{kind}")
