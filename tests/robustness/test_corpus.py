"""Every input that ever showed a fault is read again, and so are the valid ones."""

from pathlib import Path

import pytest
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
KEPT = [(path.parent.name, path) for path in sorted(CORPUS.glob("*/*"))]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("target", "path"), KEPT, ids=lambda value: getattr(value, "name", value))
def test_what_was_found_stays_mended(target, path):
    TARGETS[target].check(path.read_bytes())


def test_cells_beyond_the_limit_of_the_csv_module():
    """Too large to be kept in the corpus."""
    long = b"a" * 140_000
    assert TARGETS["delimited"].check(b"\0id,tags,x\n" + long + b",a|b,1\nb,a,2\n") == ""
    assert "does not name columns" in TARGETS["delimited"].check(b"\0" + long + b",b\n1,2\n")


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_valid(target):
    answers = [TARGETS[target].check(seed) for seed in TARGETS[target].seeds()]
    assert "" in answers  # at least one of them is read to its end
