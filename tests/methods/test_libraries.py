"""Both estimators on the arrays of every library: the same rules, the same labels."""

import os
import subprocess
import sys

import numpy as np
import pytest

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.arrays import to_host
from gmpll.datasets import make_partial_label_problem
from gmpll.engines import inputs
from gmpll.evidence import selection

ESTIMATORS = {
    "paper": GMPLL(random_state=0),
    "joint": GMPLL(prediction="joint", random_state=0),
    "vote": GMPLL(r=1, n_neighbors=3, random_state=0),
    "similar labels": GMPLL(label_similarity=0.5 * np.eye(7) + 0.5, random_state=0),
    "local": GMPLL("local", balance=0.5, random_state=0),
    "default": PartialLabelClassifier(random_state=0),
    "trees": PartialLabelClassifier(
        hyperparameters={"views": ("cosine",), "forest": 0.5, "stacking": 1.0},
        random_state=0,
    ),
}
ATTRIBUTES = ("label_confidences_", "label_support_", "objective_path_")
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    """As in ``config_context(array_api_dispatch=True)``, which needs an environment variable."""
    monkeypatch.setattr(inputs, "get_config", lambda: {"array_api_dispatch": True})


@pytest.fixture(scope="module")
def data():
    """Candidates with a label that no row contains."""
    problem = make_partial_label_problem(240, 10, 6, 2.5, random_state=0)
    mask = np.asarray(problem.candidates, dtype=bool)
    return problem.data, np.column_stack([mask, np.zeros(len(mask), dtype=bool)])


def fitted(estimator, X, y, **side_information):
    return type(estimator)(**estimator.get_params()).fit(X, y, **side_information)


@every_estimator
def test_the_same_as_on_numpy_arrays(data, library, estimator):
    X, mask = data
    expected = fitted(estimator, X[:160], mask[:160])
    found = fitted(estimator, library.array(X[:160]), library.array(mask[:160]))
    unseen = library.array(X[160:])
    for name in ATTRIBUTES:
        np.testing.assert_allclose(
            to_host(getattr(found, name)), getattr(expected, name), atol=1e-4, err_msg=name
        )
    assert (to_host(found.labels_) == expected.labels_).mean() >= 0.995
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert (found.n_iter_, found.converged_) == (expected.n_iter_, expected.converged_)
    probabilities = found.predict_proba(unseen)
    assert type(probabilities) is type(unseen)
    np.testing.assert_allclose(to_host(probabilities), expected.predict_proba(X[160:]), atol=1e-4)
    assert (to_host(found.predict(unseen)) == expected.predict(X[160:])).mean() >= 0.99
    assert found.score(unseen, library.array(mask[160:])) == pytest.approx(
        expected.score(X[160:], mask[160:]), abs=0.02
    )


@every_estimator
def test_every_documented_attribute_is_there(data, library, estimator):
    X, mask = data
    found = fitted(estimator, library.array(X), library.array(mask))
    expected = fitted(estimator, X, mask)
    public = {name for name in vars(expected) if name.endswith("_") and name[0] != "_"}
    assert public <= set(vars(found))
    assert found.n_features_in_ == 10


def test_side_information_counts_on_every_library(data, library):
    X, mask = data
    truth = mask.argmax(axis=1)
    gold = np.where(np.arange(len(X)) % 10 == 0, truth, -1)
    weights = mask * np.random.RandomState(0).random_sample(mask.shape)
    model = PartialLabelClassifier(
        hyperparameters={"views": ("cosine",), "forest": 0.0}, random_state=0
    )
    given = {"gold": gold, "candidate_weight": weights}
    expected = fitted(model, X, mask, **given)
    found = fitted(model, library.array(X), library.array(mask), **given)
    exponent = expected.selected_["weight_exponent"]
    assert found.selected_["weight_exponent"] == pytest.approx(exponent, abs=1e-3)
    assert (to_host(found.labels_) == expected.labels_).mean() >= 0.995


def test_choices_are_made_on_the_same_parts(data, library, monkeypatch):
    """More rows than are compared: folds and graph are cut alike on every library."""
    X, mask = data
    monkeypatch.setattr(selection, "SELECTION_ROWS", 100)
    expected = PartialLabelClassifier(random_state=0).fit(X, mask)
    found = PartialLabelClassifier(random_state=0).fit(library.array(X), library.array(mask))
    assert found.selected_ == expected.selected_
    np.testing.assert_array_equal(found.selection_.rows, expected.selection_.rows)
    np.testing.assert_allclose(found.selection_.held_out, expected.selection_.held_out, atol=1e-4)


def test_names_as_labels(data, library):
    X, mask = data
    names = np.array(list("abcdefg"))
    sets = [set(names[row]) for row in mask]
    model = fitted(ESTIMATORS["local"], library.array(X), sets)
    expected = fitted(ESTIMATORS["local"], X, sets)
    np.testing.assert_array_equal(to_host(model.labels_), expected.labels_)


def test_single_precision_is_kept(data):
    torch = pytest.importorskip("torch")
    X, mask = data
    for estimator in (ESTIMATORS["paper"], ESTIMATORS["local"]):
        found = fitted(estimator, torch.from_numpy(X).float(), torch.from_numpy(mask))
        expected = fitted(estimator, X, mask)
        assert (to_host(found.labels_) == expected.labels_).mean() > 0.99
        assert found.predict_proba(torch.from_numpy(X).float()).dtype == torch.float32


def test_a_model_in_memory_predicts_dask_arrays(data):
    da = pytest.importorskip("dask.array")
    X, mask = data
    model = fitted(ESTIMATORS["default"], X[:160], mask[:160])
    unseen = da.from_array(X[160:], chunks=(30, -1))
    np.testing.assert_array_equal(model.predict(unseen).compute(), model.predict(X[160:]))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X[0], y), "must be"),
        (lambda X, y: (X * float("nan"), y), "NaN or infinity"),
        (lambda X, y: (X, y[:-1]), "but y has"),
        (lambda X, y: (X, y * 2), "0 or 1"),
        (lambda X, y: (X, y * 0), "has an empty candidate set"),
    ],
)
def test_wrong_input_is_one_sentence(data, library, spoil, message):
    if library.name == "numpy":
        pytest.skip("tested with the family")
    X, mask = data
    with pytest.raises(ValueError, match=message):
        GMPLL().fit(*spoil(library.array(X), library.array(mask.astype(int))))


def test_other_libraries_than_that_of_fit_are_named(data, library):
    if library.name == "numpy":
        pytest.skip("other libraries are")
    X, mask = data
    model = fitted(ESTIMATORS["local"], library.array(X), library.array(mask))
    with pytest.raises(ValueError, match="This model was fitted on"):
        model.predict(X)
    with pytest.raises(ValueError, match="expecting 10 features"):
        model.predict(library.array(X[:, :4]))


def test_what_needs_numpy_arrays_says_so(data, library):
    if library.name == "numpy":
        pytest.skip("NumPy arrays are what it needs")
    X, mask = (library.array(values) for values in data)
    model = fitted(ESTIMATORS["trees"], X, mask)
    for grow in (model.resolve, model.partial_fit):
        with pytest.raises(ValueError, match="fitted on NumPy arrays"):
            grow(X, mask)
    with pytest.raises(ValueError, match="warm_start needs NumPy arrays"):
        model.set_params(warm_start=True).fit(X, mask)
    with pytest.raises(ValueError, match="alpha"):
        GMPLL(alpha=0.1).fit(X, mask)


def test_scikit_learn_dispatches_tensors():
    """With the environment variable set, and without the patch of this file."""
    pytest.importorskip("torch")
    program = """
import torch
from sklearn import config_context
from gmpll import GMPLL
X = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
y = torch.tensor([[1, 0], [1, 1], [0, 1], [1, 1]])
with config_context(array_api_dispatch=True):
    assert isinstance(GMPLL("local").fit(X, y).labels_, torch.Tensor)
assert not isinstance(GMPLL("local").fit(X, y).labels_, torch.Tensor)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


class OnDevice:
    """Looks like a tensor that is not in the main memory."""

    device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()


def test_a_tensor_on_a_device_needs_dispatching(monkeypatch):
    monkeypatch.setattr(inputs, "get_config", lambda: {"array_api_dispatch": False})
    monkeypatch.setattr(inputs, "is_torch_array", lambda X: True)
    with pytest.raises(ValueError, match="SCIPY_ARRAY_API=1 before Python starts"):
        inputs.keeps_library(OnDevice())


def test_the_default_in_single_precision():
    """So many rows that the candidate sets are modelled."""
    torch = pytest.importorskip("torch")
    problem = make_partial_label_problem(520, 8, 4, 2.0, random_state=0)
    fixed = {"views": ("cosine",), "ridge": 0.1, "stacking": 0.0, "forest": 0.0}
    model = PartialLabelClassifier(hyperparameters=fixed, random_state=0)
    expected = fitted(model, problem.data, problem.candidates)
    assert expected.selected_["tau"] is not None
    assert set(expected.evidence_) == {"graph", "regression", "class prior"}
    X = torch.from_numpy(problem.data).float()
    found = fitted(model, X, torch.from_numpy(np.asarray(problem.candidates)))
    assert (to_host(found.labels_) == expected.labels_).mean() >= 0.995
