import numpy as np
import pytest

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem
from gmpll.engines import numpy as engine

PROBLEM = make_partial_label_problem(900, 12, 8, 3.0, separation=5.0, random_state=0)
TRAIN, TEST = slice(0, 800), slice(800, 900)


def fitted(**parameters):
    parameters = {"graph": "local"} | parameters
    model = GMPLL(random_state=0, n_graph_neighbors=15, balance=0.5, **parameters)
    return model.fit(PROBLEM.data[TRAIN], PROBLEM.candidates[TRAIN])


def test_few_rows_are_searched_exactly():
    auto, exact = fitted(), fitted(neighbor_search="exact")
    assert auto.neighbor_recall_ == exact.neighbor_recall_ == 1.0
    np.testing.assert_array_equal(auto.label_confidences_, exact.label_confidences_)


def test_many_rows_are_searched_approximately(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(engine, "APPROXIMATE_ROWS", 500)
    auto, again = fitted(), fitted()
    monkeypatch.undo()
    asked_for, exact = fitted(neighbor_search="approximate"), fitted()
    for model in (again, asked_for):
        np.testing.assert_array_equal(auto.label_confidences_, model.label_confidences_)
    assert 0.9 < auto.neighbor_recall_ <= 1.0
    assert np.mean(auto.labels_ == exact.labels_) > 0.97


def test_predictions_after_an_approximate_search_do_not_depend_on_the_batch():
    pytest.importorskip("numba")
    model, unseen = fitted(neighbor_search="approximate"), PROBLEM.data[TEST]
    one_by_one = np.vstack([model.predict_proba(row[None]) for row in unseen])
    np.testing.assert_allclose(model.predict_proba(unseen), one_by_one, atol=1e-6)
    assert np.mean(model.predict(unseen) == PROBLEM.target[TEST]) > 0.8


def test_the_full_graph_has_no_recall():
    assert np.isnan(fitted(graph="full").neighbor_recall_)
