"""One file per method, and all of them by the names that the literature prints."""

from gmpll.base import PartialLabelClassifier
from gmpll.methods.gmpll import GMPLL

__all__ = ["METHODS"]

METHODS: dict[str, type[PartialLabelClassifier]] = {"GM-PLL": GMPLL}
