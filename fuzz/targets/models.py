"""Readers of what a run left behind: the matching and the model."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from fuzz.mutators import Mutator, bytes_changed, json_changed, npy_changed, zip_changed
from fuzz.target import Target, written

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Store
from gmpll.apps.review.session import ReviewSession
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import FeatureEncoder, FeatureTable
from gmpll.apps.tables.saved import (
    SavedMatching,
    SavedModel,
    load_model,
    read_matching,
    save_model,
    write_matching,
)
from gmpll.methods import PLKNN


def matching() -> SavedMatching:
    """Return a small matching."""
    return SavedMatching(
        ids=np.array(["1", "2", "3"]),
        classes=np.array(["cat", "dog"]),
        mask=np.array([[True, True], [False, True], [True, True]]),
        gold=np.array([-1, 1, -1]),
        labels=np.array([0, 1, 1]),
        confidence=np.array([[0.6, 0.4], [0.0, 1.0], [0.5, 0.5]], dtype=np.float32),
        features=np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]], dtype=np.float32),
        display=np.array(['{"text": "one"}', '{"text": "two", "n": 2}', "{}"]),
        text_column="text",
        image_column="",
        source="",
        settings='{"method": "plknn", "seed": 0, "review_below": 0.25, "parameters": {"k": 2}}',
        weights=np.array([[1, 1], [0, 1], [2, 0]], dtype=np.float32),
        votes=np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [2, 0, 0], [2, 1, 0]]),
        annotators=np.array(["ann", "bob"]),
    )


def _read_matching(data: bytes) -> None:
    """Read a matching and ask of it all that the review page asks."""
    saved = read_matching(written("matching", "matching.npz", data).parent)
    session = ReviewSession(saved, Store(":memory:", saved.rows.key()), lambda saved, gold: saved)
    for row in range(min(3, len(saved.ids))):
        session.item(row)
    session.progress()
    list(session.results())
    session.store.close()


def _matching_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matching.npz")
        write_matching(matching(), path)
        return [path.read_bytes()]


def _read_model(data: bytes) -> None:
    saved = load_model(written("model", "model.skops", data))
    assert isinstance(saved, SavedModel)


@cache
def _model_seeds() -> list[bytes]:
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]})
    inputs = FeatureTable(frame, ())
    encoder = FeatureEncoder(numeric=("size",), categorical=("kind",)).fit(inputs)
    model = PLKNN(random_state=0).fit(encoder.encode(inputs), [{"x", "y"}, {"y"}, {"x"}])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.skops")
        save_model(SavedModel(encoder, model, (), 0, 0.25), path)
        return [path.read_bytes()]


def _model_member(name: str) -> Mutator:
    if name.endswith(".json"):
        return json_changed
    return npy_changed if name.endswith(".npy") else bytes_changed


TARGETS = (
    Target(
        "matching",
        _read_matching,
        _matching_seeds,
        (InputError, ReviewError),
        zip_changed(lambda name: npy_changed),
    ),
    Target("model", _read_model, _model_seeds, (InputError,), zip_changed(_model_member)),
)
