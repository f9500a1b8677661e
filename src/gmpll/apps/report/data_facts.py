"""Facts about the data sets: our statistics beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmpll.apps.report import paper

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

__all__ = ["data_facts", "data_shapes"]

_STATISTICS = ("n_samples", "n_features", "n_classes", "mean_candidates")


def data_facts(infos: Iterable[Any]) -> pd.DataFrame:
    """Put our statistics of the paper's data sets beside the printed ones.

    Parameters
    ----------
    infos : iterable of DatasetInfo
        What :func:`gmpll.datasets.list_datasets` returns.

    Returns
    -------
    DataFrame
        A row per data set of the paper: ``dataset``, ``kind``, the statistics, the same with the
        prefix ``paper_`` (NaN where the paper prints none), ``task``.
    """
    import pandas as pd

    known = {info.name: info for info in infos}
    rows = []
    for data_set in paper.PRINTED_NAMES:
        info = known.get(data_set)
        is_controlled = data_set in paper.CONTROLLED_DATA
        printed = (paper.CONTROLLED_DATA if is_controlled else paper.REAL_WORLD_DATA).get(data_set)
        row: dict[str, Any] = {
            "dataset": data_set,
            "kind": "controlled" if is_controlled else "real-world",
        }
        for statistic in _STATISTICS:
            row[statistic] = _number(getattr(info, statistic, None))
            row[f"paper_{statistic}"] = _number(getattr(printed, statistic, None))
        row["task"] = printed.task if printed else ""
        rows.append(row)
    return pd.DataFrame(rows)


def data_shapes(infos: Iterable[Any]) -> dict[str, tuple[int, float | None]]:
    """Return the number of labels and the mean number of candidates of every data set."""
    return {info.name: (info.n_classes, info.mean_candidates) for info in infos}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
