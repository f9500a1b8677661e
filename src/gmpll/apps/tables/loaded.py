"""A model that an earlier run wrote, as an object that predicts rows of new tables."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from gmpll._typing import Floats
from gmpll.apps.tables.resolving import Verdicts
from gmpll.apps.tables.saved import NO_PROBABILITIES, SavedModel, load_model, predictions
from gmpll.apps.tables.tables import table_from_frame


def load(path: str | Path) -> "LoadedModel":
    """Load the model that ``gmpll disambiguate`` wrote.

    Nothing in the file is executed, and a file that holds any type but those of a gmpll model is
    refused.

    Parameters
    ----------
    path : str or path
        The output folder of ``gmpll disambiguate``, or the file ``model.skops`` in it.

    Returns
    -------
    LoadedModel

    Examples
    --------
    >>> import gmpll
    >>> gmpll.load("no-such-folder")
    Traceback (most recent call last):
        ...
    gmpll.apps.tables.errors.InputError: There is no model no-such-folder: name the folder ...
    """
    return LoadedModel(load_model(path))


class LoadedModel:
    """Predicts the labels of rows as they come in a table; :func:`gmpll.load` returns it.

    Rows are a DataFrame, a list of dictionaries or a dictionary of columns. They need the columns
    in ``input_columns_``; others are ignored.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    input_columns_ : dict
        The columns that the model needs, by name, and what they hold: ``"number"``, ``"text"``,
        ``"category"`` or ``"vector"``.
    n_files_ : int
        How many embedding files go with the rows.
    method_ : str
        The name of the estimator's class.
    created_ : str
        When the model was written, in UTC; empty if the file does not tell.
    versions_ : dict
        With which versions of Python and the libraries it was.
    """

    def __init__(self, saved: SavedModel) -> None:
        encoder = saved.encoder
        kinds = {
            "number": encoder.numeric,
            "text": encoder.text,
            "category": encoder.categorical,
            "vector": saved.vectors,
        }
        self._saved = saved
        self.classes_: NDArray[Any] = saved.model.classes_
        self.input_columns_ = {name: kind for kind, names in kinds.items() for name in names}
        self.n_files_ = saved.n_files
        self.method_ = type(saved.model).__name__
        self.created_ = saved.created
        self.versions_ = dict(saved.versions)

    def __repr__(self) -> str:
        columns = ", ".join(self.input_columns_)
        return f"<{self.method_} of {len(self.classes_)} labels, columns {columns}>"

    def predict(self, rows: Any, *, files: Sequence[str | Path] = ()) -> NDArray[Any]:
        """Predict the label of every row; ``files`` are embedding files, if the model needs any."""
        return self.classes_[self._warned(rows, files)[0].labels]

    def _has_probabilities(self) -> bool:
        return hasattr(self._saved.model, "predict_proba")

    @available_if(_has_probabilities)
    def predict_proba(self, rows: Any, *, files: Sequence[str | Path] = ()) -> Floats:
        """Probability of every label; columns in the order of ``classes_``."""
        shares: Any = self._warned(rows, files)[1]
        return shares

    def answer(self, rows: Any, files: Sequence[str | Path] = ()) -> tuple[Verdicts, Floats | None]:
        """Return labels with what ``gmpll predict`` writes beside them, and any probabilities."""
        table = table_from_frame(rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows))
        return predictions(self._saved, table, [Path(file) for file in files])

    def _warned(self, rows: Any, files: Sequence[str | Path]) -> tuple[Verdicts, Floats | None]:
        found, shares = self.answer(rows, files)
        for note in found.notes:
            if note != NO_PROBABILITIES:
                warnings.warn(f"In the rows to predict, {note}.", stacklevel=3)
        return found, shares
