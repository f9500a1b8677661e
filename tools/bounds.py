"""The oldest versions that the project allows, as ``pyproject.toml`` states them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

__all__ = ["PROJECT", "lower_bounds"]

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
#: Extras of those who work on the project: their tools are always the newest.
TOOL_EXTRAS = ("docs", "test", "lint", "audit")


def lower_bounds(project: Path = PROJECT) -> list[str]:
    """Turn every ``library>=version`` that users get into ``library==version``."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = list(content["dependencies"])
    for extra, lines in content.get("optional-dependencies", {}).items():
        wanted += lines if extra not in TOOL_EXTRAS else []
    own = f"{content['name']}["
    bounded = [line for line in dict.fromkeys(wanted) if not line.startswith(own)]
    return [re.sub(r"\[.*\]", "", line).replace(">=", "==") for line in bounded]


if __name__ == "__main__":
    print("\n".join(lower_bounds()))
