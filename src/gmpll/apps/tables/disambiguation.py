"""What :func:`gmpll.disambiguate` returns."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gmpll._atomic_io import write_atomically
from gmpll.apps.tables.summary import annotator_table, display_cells, wrong_probability

if TYPE_CHECKING:
    from gmpll.apps.tables.resolving import Resolution


@dataclass(frozen=True, eq=False)
class Disambiguation:
    """The labels that were found, and what is to be said about them.

    Indexing gives columns and rows of ``frame``: ``result["label"]``.

    Attributes
    ----------
    frame : DataFrame
        The rows with their labels, see :func:`gmpll.disambiguate`.
    notes : tuple of str
        What is odd about the data, and how much features, votes and label frequencies count.
    model : estimator
        The fitted model.

    Examples
    --------
    >>> import pandas as pd
    >>> import gmpll
    >>> df = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|b", "a", "b", "a|b"]})
    >>> result = gmpll.disambiguate(df)
    >>> result.frame["label"].tolist()
    ['a', 'a', 'b', 'b']
    >>> print(result.notes[-1])
    Labels by the frequency found: 'a' 50%, 'b' 50%.
    >>> "Resolved labels" in result.report()
    True
    >>> result.expected_wrong < 1
    True
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    model: Any
    _resolution: Resolution = field(repr=False)

    @property
    def annotators(self) -> pd.DataFrame | None:
        """Votes, estimated accuracy and agreement of every annotator; None if nobody is named."""
        return annotator_table(self._resolution)

    @property
    def expected_wrong(self) -> float | None:
        """About how many labels are wrong; None where confidences are no probabilities."""
        resolution = self._resolution
        return (
            float(wrong_probability(resolution).sum()) if resolution.prepared.calibrated else None
        )

    def report(self, path: str | Path | None = None) -> str:
        """Return the report as one HTML page; with a path, write it there too."""
        from gmpll.apps.tables.page import page_facts, render_page

        facts = page_facts(self._resolution, display_cells(self._resolution))
        page = render_page(facts | {"notes": self.notes})
        if path is not None:
            write_atomically(Path(path), page.encode())
        return page

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame)

    def __len__(self) -> int:
        return len(self.frame)

    def _repr_html_(self) -> str:
        told = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"{self.frame.to_html(max_rows=10, notebook=True)}<ul>{told}</ul>"
