"""The table of scores that a report is made from: checked, cleaned, cut by experiment."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from gmpll.apps.experiments.scoring import SCORE_COLUMNS, WITHOUT_TRUTH

_TEXT_COLUMNS = ("experiment", "dataset", "method", "parameter", "chosen", "status", "error")
_NUMBER_COLUMNS = tuple(column for column in SCORE_COLUMNS if column not in _TEXT_COLUMNS)
#: What makes two jobs of an experiment comparable fold by fold.
SETTING = ["dataset", "p", "r"]
METHOD_IN_SETTING = [*SETTING, "method"]

#: Control characters (but line breaks) and lone surrogates cannot be written to XML or UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Shares such as 0.1 + 0.2 must meet 0.3 when they are grouped.
_DECIMALS = 9
#: Characters of what pandas says of a cell, which it quotes in full.
_LONGEST_REASON = 200


def printable(value: object) -> str:
    """Return a value as text that every format can hold."""
    return _UNPRINTABLE.sub("�", str(value))


def checked_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a clean copy of a table of scores, with exactly the columns :data:`SCORE_COLUMNS`.

    Text columns hold text (unprintable characters replaced), number columns hold floats. It is a
    ValueError if columns are missing or a number column holds something else.
    """
    if WITHOUT_TRUTH not in scores.columns:  # of an older run
        scores = scores.assign(**{WITHOUT_TRUTH: float("nan")})
    missing = [column for column in SCORE_COLUMNS if column not in scores.columns]
    if missing:
        raise ValueError(
            f"The table of scores lacks the column(s) {', '.join(missing)}: "
            "it must be one that gmpll.apps.experiments made."
        )
    clean = scores.loc[:, list(SCORE_COLUMNS)].reset_index(drop=True)
    for column in _TEXT_COLUMNS:
        text = clean[column].astype(object)
        clean[column] = text.where(text.notna(), "").map(printable).astype(object)
    for column in _NUMBER_COLUMNS:
        try:
            clean[column] = pd.to_numeric(clean[column]).astype(float)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"The column {column} of the table of scores must hold numbers: "
                f"{str(error)[:_LONGEST_REASON]}."
            ) from error
    for column in ("p", "r", "value"):
        clean[column] = clean[column].round(_DECIMALS)
    return clean


def read_scores(path: Path) -> pd.DataFrame:
    """Read a table of scores from a CSV file; a method named "NA" keeps its name."""
    empty = {column: ["", "nan", "NaN"] for column in _NUMBER_COLUMNS}
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=empty, encoding="utf-8")
    except (ValueError, OverflowError) as error:  # pandas' own errors are ValueErrors, too
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise ValueError(f"{path} is not a table of comma separated values: {reason}.") from error


def of_experiment(scores: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Return the rows of one experiment, failed jobs included."""
    return scores[scores["experiment"] == experiment]


def rows_of(frame: pd.DataFrame) -> Iterable[Any]:
    """Return the rows as named tuples, typed loosely: a field can be any scalar."""
    return frame.itertuples()


def groups_of(frame: pd.DataFrame, keys: Sequence[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Return (key values, rows) of every group, in the order in which groups appear.

    NaN is a value like any other: it stands where a setting has no p and r.
    """
    return cast(Any, frame.groupby(list(keys), dropna=False, sort=False))
