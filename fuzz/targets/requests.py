"""The body of a request to the service: the first byte tells JSON from CSV."""

from __future__ import annotations

import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
from fuzz.mutators import bytes_changed, json_changed
from fuzz.target import Target

from gmpll.apps.serving.requests import CSV, JSON, answered, as_csv, read_request
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import FeatureEncoder, FeatureTable
from gmpll.apps.tables.loaded import LoadedModel
from gmpll.apps.tables.saved import SavedModel
from gmpll.methods import PLKNN

ROWS = [
    {"size": 1.5, "home": "farm", "note": "the first of two words", "point": [0.5, 1.0]},
    {"size": None, "home": "flat", "note": "words of the second", "point": [0.25, 2.0]},
]


@cache
def _model() -> LoadedModel:
    frame = pd.DataFrame(ROWS * 3)
    vectors = np.array(frame["point"].tolist(), dtype=np.float32)
    table = FeatureTable(frame[["size", "home", "note"]], (vectors,))
    encoder = FeatureEncoder(numeric=["size"], text=["note"], categorical=["home"]).fit(table)
    model = PLKNN(n_neighbors=2).fit(encoder.encode(table), [{"a", "b"}, {"b"}] * 3)
    return LoadedModel(SavedModel(encoder, model, ("point",), 0, 0.25))


@cache
def _model_of_cells() -> LoadedModel:
    """Return a model without vectors, which no CSV can bring."""
    frame = pd.DataFrame(ROWS * 3)[["size", "home", "note"]]
    table = FeatureTable(frame, ())
    encoder = FeatureEncoder(numeric=["size"], text=["note"], categorical=["home"]).fit(table)
    model = PLKNN(n_neighbors=2).fit(encoder.encode(table), [{"a", "b"}, {"b"}] * 3)
    return LoadedModel(SavedModel(encoder, model, (), 0, 0.25))


def _ask(model: LoadedModel, data: bytes, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = read_request(model, data, kind)
        answer = answered(model, asked)
    assert len(answer["predictions"]) == asked.n_rows
    json.dumps(answer, allow_nan=False).encode()
    as_csv(answer["predictions"]).encode()


def _json(data: bytes) -> None:
    _ask(_model(), data, JSON)


def _csv(data: bytes) -> None:
    _ask(_model_of_cells(), data, CSV)


def _json_seeds() -> list[bytes]:
    asked = (ROWS, {"rows": ROWS[:1], "probabilities": True})
    return [json.dumps(content).encode() for content in asked]


def _csv_seeds() -> list[bytes]:
    return [b'size,home,note\r\n1.5,farm,"two, words"\r\n,flat,\r\n', b"note,size,home\nx,1,\n"]


TARGETS = (
    Target("request-json", _json, _json_seeds, (InputError,), json_changed),
    Target("request-csv", _csv, _csv_seeds, (InputError,), bytes_changed),
)
