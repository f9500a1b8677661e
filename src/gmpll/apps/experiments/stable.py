"""Names and seeds that are the same in every process, on every machine, in every release.

Python's own ``hash`` is salted anew for every process, so nothing that has to be found again
after a restart may depend on it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Write a value as JSON so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def stable_digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON in hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def stable_seed(*parts: Any) -> int:
    """Return a seed (0 to 2**32 - 1) that depends on the parts and on nothing else."""
    return int(stable_digest(list(parts))[:8], 16)
