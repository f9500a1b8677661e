"""The whole product in three lines of Python: a DataFrame in, a DataFrame out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.resolving import annotator_table, prepare, resolve, result_columns, sentences
from gmpll.apps.tables.tables import table_from_frame

if TYPE_CHECKING:
    import pandas as pd

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: (none|all)\b)?")


def disambiguate(
    df: pd.DataFrame,
    candidates: str | Sequence[str] | None = None,
    *,
    separator: str | None = None,
    votes: pd.DataFrame | str | Path | None = None,
    vote_columns: Sequence[str] = (),
    text: str | Sequence[str] | None = None,
    features: str | Path | Sequence[str | Path] | None = None,
    id: str | None = None,
    gold: str | None = None,
    impossible: str | None = None,
    trust: float | None = None,
    outside: str = "auto",
    exclude: str | Sequence[str] = (),
    empty: str = "error",
    method: str = "gmpll",
    review_below: float | None = None,
    random_state: int = 0,
) -> pd.DataFrame:
    """Find the right label in every row's set of candidates.

    Parameters
    ----------
    df : DataFrame
        One row per item.
    candidates : str or sequence of str, default=None
        The column of candidate sets (lists, JSON lists or delimited text), or several columns of
        0 and 1. Guessed by default, like everything below.
    separator : str, default=None
        Between the labels of a cell, or ``"json"``.
    votes : DataFrame or path, default=None
        A long table of votes (item, label, annotator) in place of candidates; items are matched
        with the column ``id``. Where it says who voted, every annotator is modelled, see
        :mod:`gmpll.evidence.annotators`, unless ``trust`` is given: then votes are only counted.
    vote_columns : sequence of str, default=()
        Its columns, in that order.
    text : str or sequence of str, default=None
        Columns of text; ``"none"`` for none.
    features : str, path or sequence, default=None
        Columns (wildcards allowed) and embedding files to use, and no others.
    id, gold : str, default=None
        Columns of ids and of known labels; ``"none"`` for none.
    impossible : str, default=None
        Column of labels that a row cannot have, in the form of candidate sets.
    trust : float, default=None
        How much votes count, see :class:`gmpll.PartialLabelClassifier`; estimated by default.
    outside : {"auto", "never"}, default="auto"
        Whether a row may get a label that nobody voted for. ``"auto"``: where it is known who
        voted, and no labels are ``impossible``.
    exclude : str or sequence of str, default=()
        Columns not to use.
    empty : {"error", "all"}, default="error"
        Whether a row without candidates is refused or may get any label.
    method : str, default="gmpll"
        Any method of the library, in small letters.
    review_below : float, default=None
        Rows with a smaller margin are flagged for review. By default 0.5 where confidences are
        calibrated (the default), else 0.25.
    random_state : int, default=0
        Seed.

    Returns
    -------
    DataFrame
        ``df`` with the columns ``label``, ``confidence``, ``runner_up``, ``margin`` and
        ``review``; a name that ``df`` has already gets ``resolved_`` before it. Where it is known
        who voted there is the column ``votes``, too: how many voted for the label. Sentences on
        how much features, votes and label frequencies count are in ``attrs["evidence"]``, and the
        annotators' votes, estimated accuracy and agreement in ``attrs["annotators"]``, one
        dictionary for each.

    Raises
    ------
    TypeError
        If ``df`` is no DataFrame.
    ValueError
        If the data cannot be used; the message says what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables import disambiguate
    >>> df = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|b", "a", "b", "a|b"]})
    >>> disambiguate(df)["label"].tolist()
    ['a', 'a', 'b', 'b']
    """
    import pandas as pd

    if not isinstance(df, pd.DataFrame):
        raise TypeError(
            f"df must be a pandas DataFrame, but it is of the type {type(df).__name__}: make one "
            "with pandas.DataFrame."
        )
    options = Options(
        candidates=_several(candidates),
        separator=separator,
        votes=votes,
        vote_columns=tuple(vote_columns),
        text=_several(text),
        features=_several(features),
        exclude=_several(exclude),
        id=id,
        gold=gold,
        impossible=impossible,
        trust=trust,
        outside=outside,
        empty=empty,
        method=method,
        review_below=review_below,
        seed=random_state,
    )
    try:
        table = table_from_frame(df)
        roles = guess_roles(table, options)
        resolution = resolve(prepare(table, roles, options))
    except InputError as error:
        raise InputError(_in_python(str(error))) from None
    columns = result_columns(
        resolution.verdicts,
        resolution.prepared.sets.classes,
        set(df.columns),
        votes=resolution.votes,
        decimals=12,
    )
    if roles.separator == "list":
        _restore_types(columns, table.frame[roles.candidates[0]])
    resolved = df.assign(**columns)
    resolved.attrs["evidence"] = list(sentences(resolution))
    annotators = annotator_table(resolution)
    if annotators is not None:
        resolved.attrs["annotators"] = annotators.reset_index().to_dict("records")
    return resolved


def _in_python(sentence: str) -> str:
    """Name parameters in place of options of the command line: empty='all' for --empty all."""
    parameters = inspect.signature(disambiguate).parameters

    def named(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        if name not in parameters:
            return found[0]
        return f"{name}='{value}'" if value else f"{name}="

    return _OPTION.sub(named, sentence)


def _several(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, (str, Path)) else tuple(value)


def _restore_types(columns: dict[str, list[Any]], sets: pd.Series) -> None:
    """Give labels that were numbers their type back."""
    originals = {
        str(label).strip(): label for labels in sets if labels is not None for label in labels
    }
    for name in ("label", "runner_up"):
        key = name if name in columns else f"resolved_{name}"
        columns[key] = [originals.get(label, label) for label in columns[key]]
