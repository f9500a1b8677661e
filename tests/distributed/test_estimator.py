import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gmpll import GMPLL
from gmpll.distributed import DaskGMPLL
from gmpll.graph.local import LocalGraph
from gmpll.graph.views import DirectionSpace
from problems import random_label_similarity, random_problem

pytestmark = pytest.mark.usefixtures("in_threads")


def in_memory(X, mask, **settings):
    defaults = {"prediction": "independent", "label_similarity": None, "random_state": 0}
    return GMPLL(**{**defaults, **settings}).fit(X, mask)


def assert_same_matching(model, reference):
    np.testing.assert_allclose(
        model.label_confidences_.compute(), reference.label_confidences_, atol=1e-6
    )
    np.testing.assert_allclose(model.label_support_.compute(), reference.label_support_, atol=1e-6)
    np.testing.assert_allclose(model.objective_path_, reference.objective_path_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_.compute(), reference.labels_)
    assert model.n_iter_ == reference.n_iter_
    assert model.converged_ == reference.converged_


@pytest.mark.parametrize(("rows", "balance"), [(400, 0.5), (150, 0.0), (61, 0.5)])
def test_the_matching_is_that_of_the_estimator_in_memory(problem, rows, balance):
    X, mask = problem.data, problem.candidates
    settings = {"graph_neighbors": 12, "balance": balance, "max_iter": 20}
    model = DaskGMPLL(**settings, random_state=0).fit(da.from_array(X, chunks=(rows, -1)), mask)
    assert_same_matching(model, in_memory(X, mask, **settings))


@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(6, 30),
    duplicates=st.booleans(),
    absent=st.booleans(),
)
def test_any_partition_gives_the_same_confidences(seed, rows, duplicates, absent):
    X, mask, _ = random_problem(seed, m=30, d=3, duplicates=duplicates, absent=absent)
    shared = {"graph_neighbors": 29, "max_iter": 5}  # all rows: no ties between neighbours
    model = DaskGMPLL(**shared).fit(da.from_array(X, chunks=(rows, -1)), mask)
    reference = in_memory(X, mask, **shared)
    np.testing.assert_allclose(
        model.label_confidences_.compute(), reference.label_confidences_, atol=1e-6
    )


def test_label_similarity(problem):
    X, mask = problem.data, problem.candidates
    similarity = random_label_similarity(np.random.RandomState(0), mask.shape[1])
    settings = {"graph_neighbors": 10, "label_similarity": similarity, "max_iter": 15}
    model = DaskGMPLL(**settings, random_state=0).fit(da.from_array(X, chunks=(90, -1)), mask)
    assert_same_matching(model, in_memory(X, mask, **settings))


def test_a_task_may_gather_the_probabilities_part_by_part(problem, monkeypatch):
    from gmpll.distributed import estimator

    X, mask = problem.data, problem.candidates
    monkeypatch.setattr(estimator, "GATHERED_BYTES", 5000)
    settings = {"graph_neighbors": 10, "max_iter": 10}
    model = DaskGMPLL(**settings, random_state=0).fit(da.from_array(X, chunks=(60, -1)), mask)
    assert_same_matching(model, in_memory(X, mask, **settings))


def test_single_precision_finds_nearly_the_same(problem):
    X, mask = problem.data, problem.candidates
    rows = da.from_array(X, chunks=(150, -1))
    double, single = (
        DaskGMPLL(dtype=dtype, max_iter=10, random_state=0).fit(rows, mask)
        for dtype in ("float64", "float32")
    )
    difference = abs(double.label_confidences_ - single.label_confidences_).max().compute()
    assert difference < 1e-3


def test_checkpoints_in_a_folder_change_nothing(problem, tmp_path):
    X, mask = problem.data, problem.candidates
    settings = {"graph_neighbors": 10, "max_iter": 11}
    rows = da.from_array(X, chunks=(150, -1))
    model = DaskGMPLL(**settings, checkpoint_turns=3, directory=tmp_path, random_state=0)
    assert_same_matching(model.fit(rows, mask), in_memory(X, mask, **settings))
    kept = sorted(file.name.partition("-")[0] for file in tmp_path.glob("*/*"))
    assert kept == ["neighbors"] * 3 + ["probabilities"] * 3, "only the newest blocks are kept"


def test_partitions_far_apart_exchange_nothing():
    rng = np.random.RandomState(0)
    centres = np.repeat([[9.0, 0.0, 1.0], [-9.0, 0.0, -1.0]], 40, axis=0)
    X = centres + rng.randn(80, 3)
    mask = np.ones((80, 3), dtype=bool)
    mask[::4] = np.eye(3, dtype=bool)[rng.randint(3, size=20)]
    from gmpll.distributed import estimator

    built = []
    original = estimator.local_graph

    def spy(*arguments):
        built.append(original(*arguments))
        return built[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator, "local_graph", spy)
        model = DaskGMPLL(graph_neighbors=5, random_state=0)
        model.fit(da.from_array(X, chunks=(40, -1)), mask)
    assert [[part.columns for part in parts] for parts in built[0]] == [[[0]], [[1]]]
    reference = in_memory(X, mask, graph_neighbors=5)
    np.testing.assert_allclose(
        model.label_confidences_.compute(), reference.label_confidences_, atol=1e-6
    )


def test_unseen_rows_get_the_weighted_labels_of_their_neighbours(problem):
    X, mask = problem.data, problem.candidates
    train, unseen = X[:300], X[300:]
    model = DaskGMPLL(graph_neighbors=9, max_iter=10, random_state=0)
    model.fit(da.from_array(train, chunks=(70, -1)), mask[:300])
    proba = model.predict_proba(da.from_array(unseen, chunks=(33, -1)))
    assert proba.chunks == ((33, 33, 33, 1), (7,))

    reference = in_memory(train, mask[:300], graph_neighbors=9, max_iter=10)
    space = DirectionSpace(train)
    weights = LocalGraph(space.rows, 9).to_queries(space.transform(unseen)).toarray()
    found = np.eye(7)[reference.labels_]
    expected = weights @ found / np.maximum(found.sum(axis=0), 1) ** 0.5
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba.compute(), expected, atol=1e-6)
    predicted = model.predict(unseen).compute()
    np.testing.assert_array_equal(predicted, expected.argmax(axis=1))
    truth = np.eye(7, dtype=int)[predicted]
    truth[:10] = 1 - truth[:10]  # sets without the prediction
    assert model.score(unseen, truth) == pytest.approx(0.9)


def test_a_row_s_prediction_depends_on_that_row_alone(problem):
    model = DaskGMPLL(max_iter=5, random_state=0).fit(problem.data[:200], problem.candidates[:200])
    together = model.predict_proba(problem.data[200:260]).compute()
    apart = model.predict_proba(da.from_array(problem.data[200:260], chunks=(7, -1))).compute()
    np.testing.assert_allclose(together, apart, atol=1e-12)


def test_ties_are_not_broken_by_the_order_of_the_labels():
    X = np.random.RandomState(0).randn(300, 3)
    model = DaskGMPLL(random_state=0).fit(X, np.ones((300, 4), dtype=bool))
    assert set(model.labels_.compute()) == {0, 1, 2, 3}
    again = clone(model).fit(X, np.ones((300, 4), dtype=bool))
    np.testing.assert_array_equal(model.labels_.compute(), again.labels_.compute())


def test_label_names_survive(problem):
    sets = [{"ant", "bee"}, {"bee"}, {"cow", "ant"}, {"cow"}] * 10
    model = DaskGMPLL(graph_neighbors=3, random_state=0).fit(problem.data[:40], sets)
    assert model.classes_.tolist() == ["ant", "bee", "cow"]
    labels = model.labels_.compute()
    assert all(label in row for label, row in zip(labels, sets, strict=True))
    assert set(model.predict(problem.data[40:50]).compute()) <= {"ant", "bee", "cow"}


def test_results_are_written_to_zarr(problem, tmp_path):
    zarr = pytest.importorskip("zarr")
    rows = da.from_array(problem.data, chunks=((90, 200, 110), -1))
    model = DaskGMPLL(max_iter=5, random_state=0).fit(rows, problem.candidates)
    model.to_zarr(tmp_path / "found.zarr")
    group = zarr.open_group(str(tmp_path / "found.zarr"), mode="r")
    classes = np.asarray(group.attrs["classes"])
    np.testing.assert_array_equal(classes[group["labels"][:]], model.labels_.compute())
    np.testing.assert_array_equal(group["label_confidences"][:], model.label_confidences_.compute())
    np.testing.assert_allclose(group["label_support"][:].sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("graph_neighbors", 0), ("balance", -1), ("dtype", "int"), ("checkpoint_turns", 0)],
)
def test_parameters_are_checked(problem, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        DaskGMPLL(**{parameter: value}).fit(problem.data, problem.candidates)


def test_the_number_of_features_is_checked(problem):
    model = DaskGMPLL(max_iter=2).fit(problem.data, problem.candidates)
    with pytest.raises(ValueError, match="X has 3 features, but DaskGMPLL is expecting 20"):
        model.predict(problem.data[:, :3])


def test_dask_is_loaded_late_and_its_absence_is_explained():
    program = (
        "import sys, gmpll\n"
        "gmpll.GMPLL\n"
        "print('dask' in sys.modules, 'gmpll.methods.gmpll' in sys.modules)\n"
        "sys.modules['dask'] = None\n"
        "try: import gmpll.distributed\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "False True",
        "gmpll.distributed needs Dask, which is not installed: pip install 'gmpll[dask]'.",
    ]
