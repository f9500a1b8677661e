"""Say how many mutants of the core the tests have noticed, after ``mutmut run``.

    python tools/mutants.py

``make mutants`` does both. The modules and their tests stand under ``tool.mutmut`` in
``pyproject.toml``. Exits with 1 if fewer than 80 percent were noticed: most of the others change
nothing that anybody can see (the wording of an error, a type or device that is the default).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

STATISTICS = Path("mutants") / "mutmut-cicd-stats.json"
MIN_NOTICED = 0.8


def main() -> int:
    """Print the share of mutants that were noticed; return the exit status."""
    counts = json.loads(STATISTICS.read_text(encoding="utf-8"))
    total = counts["total"]
    noticed = counts["killed"] + counts["timeout"] + counts["segfault"]
    if not total:
        print("There are no mutants: see tool.mutmut in pyproject.toml.")
        return 1
    print(
        f"{noticed} of {total} mutants were noticed ({noticed / total:.1%}; at least "
        f"{MIN_NOTICED:.0%} are wanted). `mutmut results` lists the others, `mutmut show NAME` "
        "shows one."
    )
    return int(noticed < MIN_NOTICED * total)


if __name__ == "__main__":
    sys.exit(main())
