"""Labels of new rows by a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import feature_table
from gmpll.apps.tables.guesses import Roles
from gmpll.apps.tables.model_file import SavedModel
from gmpll.apps.tables.resolving import Verdicts, codes_of, verdicts
from gmpll.apps.tables.tables import Table

__all__ = ["predict_table"]


def predict_table(
    saved: SavedModel, table: Table, files: Sequence[Path] = (), id_column: str = ""
) -> Verdicts:
    """Predict the label of every row of a table that has the columns of the model.

    ``id_column`` holds ids that embedding files may refer to. A method without probabilities
    leaves ``confidence`` and ``margin`` as NaN.
    """
    if len(files) != saved.n_files:
        raise InputError(
            f"The model was made with {saved.n_files} embedding files but got {len(files)}: "
            "name them with --features."
        )
    encoder = saved.encoder
    if id_column and id_column not in table.frame.columns:
        raise InputError(f"{table.name} has no column {id_column!r}, which --id names.")
    n = len(table.frame)
    ids = (
        table.text(id_column).to_numpy(dtype=str) if id_column else np.arange(1, n + 1).astype(str)
    )
    roles = Roles(
        numeric=tuple(encoder.numeric),
        text=tuple(encoder.text),
        categorical=tuple(encoder.categorical),
        vectors=saved.vectors,
        files=tuple(files),
        id=id_column,
        styles=encoder.styles or {},
    )
    inputs = feature_table(table, roles, ids, fixed=True)
    features = encoder.encode(inputs)
    notes = (*inputs.problems, *encoder.unseen(inputs))
    model = saved.model
    labels = codes_of(model.predict(features), model.classes_)
    nobody = np.full(n, -1, dtype=np.int64)
    if not hasattr(model, "predict_proba"):
        nothing = np.full(n, np.nan)
        notes = (
            *notes,
            "the method gives no probabilities: confidence, margin and review stay empty",
        )
        return Verdicts(labels, nobody, nothing, nothing, np.zeros(n, dtype=bool), notes)
    shares = model.predict_proba(features)
    possible = shares > 0
    possible[np.arange(n), labels] = True
    found = verdicts(shares, possible, labels, nobody, saved.review_below)
    return replace(found, notes=notes)
