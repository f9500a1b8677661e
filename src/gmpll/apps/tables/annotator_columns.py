"""One column for each annotator: how such columns are recognised, and read as votes."""

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score

from gmpll.apps.tables.cells import MISSING, is_everyday, sampled
from gmpll.apps.tables.exports import Votes
from gmpll.apps.tables.labels import read_cells
from gmpll.apps.tables.tables import Table
from gmpll.label_names import spelling_key

_RATER = re.compile(
    r"(annotator|rater|coder|worker|judge|labell?er|reviewer|expert)[\W_]?\w*", re.IGNORECASE
)
#: What stands where an annotator gave no label. "None" and "missing" may be labels.
NO_VOTE = frozenset(MISSING) - {"none", "missing"}
_MAX_LABELS = 50
_MAX_COLUMNS = 200
_MAX_LABEL_LENGTH = 40
#: Two annotators use the same labels in so many of their cells,
_MIN_SHARED = 0.8
#: and agree so much more often than by chance (Cohen's kappa).
_MIN_KAPPA = 0.2
#: Between labels that are not divided: no cell holds it.
_UNDIVIDED = "\x1e"


def guess_annotators(table: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that hold the labels of one annotator each; () unless that is clear.

    Such columns use the same labels. Where their names do not say it, their labels are more than
    numbers and everyday words, and rows agree more often than by chance.
    """
    # Numbers are looked at only where a name asks for it: there may be thousands of columns.
    likely = [n for n in names if _RATER.fullmatch(n) or table.frame[n].dtype.kind not in "fiub"]
    columns = {n: cells for n in likely if (cells := _labels_in(table, n)) is not None}
    named = [name for name in columns if _RATER.fullmatch(name)]
    group = _alike(columns, named)
    if len(group) > 1:
        return tuple(group)
    words = [n for n, c in columns.items() if not all(map(is_everyday, c.dropna().unique()))]
    group = _alike(columns, words[:_MAX_COLUMNS])
    agreements = [_kappa(columns[a], columns[b]) for a, b in itertools.combinations(group, 2)]
    known = [kappa for kappa in agreements if not np.isnan(kappa)]
    return tuple(group) if known and np.mean(known) >= _MIN_KAPPA else ()


def _labels_in(table: Table, name: str) -> pd.Series | None:
    """Return cells that may be labels, NaN where there is none; None if they are something else."""
    if table.frame[name].dtype.kind not in "OUTfiub" or not _is_plain(table.frame[name]):
        return None
    cells = sampled(table.text(name)).map(spelling_key)
    cells = cells.mask(cells.isin(NO_VOTE))
    n_labels, n_filled = cells.nunique(), cells.count()
    fits = 2 <= n_labels <= min(_MAX_LABELS, max(3, n_filled // 2))
    return cells if fits and cells.str.len().max() <= _MAX_LABEL_LENGTH else None


def _is_plain(column: pd.Series) -> bool:
    if column.dtype.kind == "f":
        present = column.dropna()
        return bool((present == present.round()).all())
    return not any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in column[:50])


def _alike(columns: dict[str, pd.Series], names: Sequence[str]) -> list[str]:
    """Return the most columns that use the labels of one of them."""
    if not names:
        return []
    used = pd.DataFrame({n: columns[n].value_counts() for n in names})
    counts = np.nan_to_num(used.to_numpy(dtype=float).T)
    shared = counts @ (counts.T > 0) / counts.sum(axis=1, keepdims=True)
    alike = (shared >= _MIN_SHARED) & (shared.T >= _MIN_SHARED)
    return list(itertools.compress(names, alike[alike.sum(axis=1).argmax()]))


def _kappa(a: pd.Series, b: pd.Series) -> float:
    both = (a.notna() & b.notna()).to_numpy()
    # Of two annotators who gave one label each there is nothing that chance would not give.
    is_telling = both.sum() > 1 and max(a[both].nunique(), b[both].nunique()) > 1
    return float(cohen_kappa_score(a[both], b[both])) if is_telling else np.nan


def votes_in_columns(table: Table, columns: Sequence[str], separator: str) -> Votes:
    """Return the labels in the columns as votes; a cell may hold several with a separator."""
    rows: list[int] = []
    labels: list[str] = []
    who: list[str] = []
    for name in columns:
        codes, parsed = read_cells(table, name, separator or _UNDIVIDED)
        for row, code in enumerate(codes):
            given = [n for n in parsed[code] if n.lower() not in NO_VOTE]
            rows += [row] * len(given)
            labels += given
            who += [name] * len(given)
    return Votes(rows, labels, who)
