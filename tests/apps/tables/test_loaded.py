"""``gmpll.load``: what ``gmpll disambiguate`` wrote, as an object that predicts."""

import re

import numpy as np
import pandas as pd
import pytest

import gmpll
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_folder
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.saved import load_model, predictions
from gmpll.apps.tables.tables import read_table, table_from_frame


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "size": truth * 4 + rng.normal(size=n),
            "home": np.where(rng.random(n) < 0.5, "farm", "flat"),
            "note": [f"{'purrs' if t == 0 else 'barks'} on day {i}" for i, t in enumerate(truth)],
        }
    ), np.array(["cat", "dog"])[truth]


def written(folder, method):
    frame, truth = rows(40)
    frame["tags"] = ["cat|dog" if i % 3 else t for i, t in enumerate(truth)]
    frame.to_csv(folder.with_suffix(".csv"), index=False)
    table = read_table(folder.with_suffix(".csv"))
    options = Options(method=method)
    resolution = resolve(prepare(table, guess_roles(table, options), options))
    write_folder(resolution, folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("run") / "out", "plknn")


def test_it_predicts_what_the_command_does(folder):
    model = gmpll.load(folder)
    frame, truth = rows(30, seed=1)
    kept = load_model(folder)
    saved, _ = predictions(kept, table_from_frame(frame))
    assert model.predict(frame).tolist() == model.classes_[saved.labels].tolist()
    assert (model.predict(frame) == truth).mean() > 0.9
    shares = model.predict_proba(frame)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[np.arange(30), saved.labels], saved.confidence)
    answer, same = model.answer(frame)
    assert answer.confidence.tolist() == saved.confidence.tolist()
    assert same.tolist() == shares.tolist()


def test_it_tells_what_it_needs_and_where_it_comes_from(folder):
    model = gmpll.load(folder / "model.skops")
    assert model.classes_.tolist() == ["cat", "dog"]
    assert model.input_columns_ == {"size": "number", "home": "category", "note": "text"}
    assert model.method_ == "PLKNN"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", model.created_)
    assert model.versions_["gmpll"] == gmpll.__version__
    assert {"python", "numpy", "scikit-learn"} < model.versions_.keys()
    assert "PLKNN of 2 labels" in repr(model)


def test_rows_may_be_dictionaries_with_more_than_is_needed(folder):
    model = gmpll.load(folder)
    frame, _ = rows(3, seed=2)
    expected = model.predict(frame).tolist()
    records = frame.assign(other="x").to_dict("records")
    assert model.predict(records).tolist() == expected
    assert model.predict(frame.to_dict("list")).tolist() == expected
    assert model.predict(records[0:1]).tolist() == expected[:1]


def test_odd_rows_are_told(folder):
    model = gmpll.load(folder)
    frame, _ = rows(3, seed=2)
    with pytest.warns(UserWarning, match="category that the model does not know"):
        model.predict(frame.assign(home="castle"))
    with pytest.raises(InputError, match="no column 'note'"):
        model.predict(frame.drop(columns="note"))
    with pytest.raises(InputError, match="0 embedding files but got 1"):
        model.predict(frame, files=["e.npy"])


def test_a_method_without_probabilities_has_none(tmp_path):
    model = gmpll.load(written(tmp_path / "out", "plsvm"))
    frame, _ = rows(3, seed=2)
    assert set(model.predict(frame)) <= {"cat", "dog"}
    assert not hasattr(model, "predict_proba")
    assert np.isnan(model.answer(frame)[0].confidence).all()
    assert model.answer(frame)[1] is None
