"""Rows that come after the fit, and fits that start from an earlier one."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from gmpll import GMPLL, PLKNN, PartialLabelClassifier
from gmpll._columns import sets_of_known_labels
from gmpll.evidence.pipeline import N_GRAPH_VIEWS, GraphMatching, Pipeline, set_regression
from gmpll.graph.new_rows import edges_of_new_rows
from gmpll.methods._incremental import SCORE_FLOOR
from problems import random_problem

NAMES = np.array(["a", "b", "c", "d"])


def easy(m=160, spread=1.0, extra=0.3):
    X, truth = make_blobs(m, n_features=5, centers=4, cluster_std=spread, random_state=0)
    mask = np.eye(4, dtype=bool)[truth]
    mask |= np.random.RandomState(0).random_sample(mask.shape) < extra
    return X, mask, truth


def hard(m=90, seed=0):
    return random_problem(seed, m=m, d=5, q=4)


def quick(**parameters):
    """Make a model that has fewer settings to choose from than the default."""
    fixed = {"views": ("cosine",)} | parameters.pop("hyperparameters", {})
    return PartialLabelClassifier(hyperparameters=fixed, random_state=0, **parameters)


# --- resolve ---------------------------------------------------------------------------------


def test_resolved_labels_are_candidates_and_the_model_stays_as_it_was():
    X, mask, _ = hard()
    model = quick().fit(X[:60], mask[:60])
    before = pickle.dumps(model)
    labels, confidences = model.resolve(X[60:], mask[60:])
    assert pickle.dumps(model) == before
    assert mask[60:][np.arange(30), labels].all()
    assert (confidences[~mask[60:]] == 0).all()
    np.testing.assert_allclose(confidences.sum(axis=1), 1.0)
    np.testing.assert_array_equal(labels, model.resolve(X[60:], mask[60:]).labels)


def test_truth_is_resolved_where_it_is_easy():
    X, mask, truth = easy()
    model = quick().fit(X[:80], mask[:80])
    assert (model.resolve(X[80:], mask[80:]).labels == truth[80:]).mean() > 0.95


def test_resolving_is_a_matching_against_fixed_confidences():
    X, mask, _ = hard()
    matching = GMPLL("local", n_graph_neighbors=8, max_iter=7, tol=0.0)
    model = quick(disambiguator=matching).fit(X[:60], mask[:60])
    views = [view.transform(X[60:]) for view in model._views]
    to_graph, among = (edges.toarray() for edges in edges_of_new_rows(model._graph, views))
    fitted = model.label_confidences_
    priors = np.where(mask[60:], np.maximum(model.predictor_(X[60:]), 0.0) + SCORE_FLOOR, 0.0)
    P = priors / priors.sum(axis=1, keepdims=True)
    for _ in range(7):
        support = priors * P * (to_graph @ fitted + among @ P)
        total = support.sum(axis=1, keepdims=True)
        P = np.where(total > 0, support / np.where(total > 0, total, 1.0), P)
    np.testing.assert_allclose(model.resolve(X[60:], mask[60:]).confidences, P, atol=1e-10)


def test_resolve_takes_candidates_in_every_form():
    X, mask, _ = hard()
    sets = [set(NAMES[row]) for row in mask]
    model = quick().fit(X[:60], sets[:60])
    expected = model.resolve(X[60:], sets[60:])
    forms = {
        "matrix": mask[60:].astype(int),
        "sparse": sp.csr_matrix(mask[60:].astype(int)),
        "frame": pd.DataFrame(mask[60:][:, ::-1], columns=NAMES[::-1]),
        "lists": [sorted(labels) for labels in sets[60:]],
        "series": pd.Series(sets[60:]),
    }
    for form, y in forms.items():
        np.testing.assert_array_equal(model.resolve(X[60:], y).labels, expected.labels, form)
    unknown = model.resolve(X[60:62], [None, None])
    full = model.resolve(X[60:62], np.ones((2, 4), dtype=bool))
    np.testing.assert_array_equal(unknown.confidences, full.confidences)
    assert model.resolve(X[60:61], ["b"]).labels.tolist() == ["b"]


def test_a_label_that_no_training_row_contains_is_supported_by_new_rows_alone():
    X, mask, truth = easy()
    old = truth < 3
    wide = np.zeros((len(X), 4), dtype=bool)
    wide[:, :3] = mask[:, :3]
    model = quick().fit(X[old], wide[old])
    new = np.flatnonzero(~old)[:20]
    sets = np.zeros((20, 4), dtype=bool)
    sets[:, 3] = True
    assert (model.resolve(X[new], sets).labels == 3).all()  # nothing else is possible
    sets[::2, 0] = True
    labels = model.resolve(X[new], sets).labels
    assert (labels[1::2] == 3).all()
    assert (labels[::2] == 3).mean() > 0.9  # their new neighbours have it for certain


def test_weights_of_new_rows_count():
    X, mask, _ = hard()
    model = quick(hyperparameters={"weight_exponent": 1.0}).fit(X[:60], mask[:60])
    plain = model.resolve(X[60:], mask[60:])
    runner_up = np.where(mask[60:], plain.confidences, -1.0).argsort(axis=1)[:, -2]
    weights = np.full((30, 4), 1e-6)
    weights[np.arange(30), runner_up] = 1.0
    weighed = model.resolve(X[60:], mask[60:], candidate_weight=weights)
    several = mask[60:].sum(axis=1) > 1
    rows = np.flatnonzero(several)
    gain = weighed.confidences[rows, runner_up[rows]] - plain.confidences[rows, runner_up[rows]]
    assert (gain >= -1e-9).all()
    assert gain.max() > 0.1


def test_mistakes_in_resolve_are_one_sentence():
    X, mask, _ = hard()
    sets = [set(NAMES[row]) for row in mask]
    with pytest.raises(NotFittedError):
        PartialLabelClassifier().resolve(X, mask)
    model = quick().fit(X, sets)
    with pytest.raises(ValueError, match="Row 1 has the candidate 'emu', which is none of the 4"):
        model.resolve(X[:2], [{"a"}, {"a", "emu"}])
    with pytest.raises(ValueError, match="has 3 columns, but there are 4 labels"):
        model.resolve(X, mask[:, :3] | True)
    with pytest.raises(
        ValueError, match="X has 4 features, but PartialLabelClassifier is expecting 5"
    ):
        model.resolve(X[:, :4], sets)
    with pytest.raises(ValueError, match="X has 90 rows but y has candidate sets for 89"):
        model.resolve(X, sets[:-1])


@pytest.mark.parametrize("method", ["resolve", "partial_fit"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"disambiguator": PLKNN()}, "leave disambiguator out"),
        ({"disambiguator": GMPLL()}, "leave disambiguator out"),
        ({"learner": GaussianNB()}, "need learner='auto'"),
    ],
)
def test_parts_of_the_user_do_not_grow(method, parts, message):
    model = PartialLabelClassifier(**parts)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError) as error:
        getattr(model, method)
    assert message in str(error.value.__cause__ or error.value)


# --- partial_fit -----------------------------------------------------------------------------


def fit_at_once(model, X, y, **knowledge):
    """Fit all rows with the spaces, setting and calibration that a model found before."""

    class Given(PartialLabelClassifier):
        def _choose(self, *args, **kwargs):
            self.selection_, self.selected_ = model.selection_, model.selected_
            return model.selection_.chosen

        def _fit_calibration(self, *args):
            self.temperature_, self._exponent = model.temperature_, model._exponent

        def _pipeline(self, rows, views, seed, start=None):
            views = [
                SimpleNamespace(
                    rows=view.transform(rows.X),
                    transform=view.transform,
                    variances=view.variances,
                )
                for view in model._views
            ]
            graph = self._options.graph([view.rows for view in views[:N_GRAPH_VIEWS]], seed)
            regression = set_regression(views, seed)
            disambiguated = GraphMatching(rows, views, graph, regression, self._options, seed)
            return Pipeline(rows, views, disambiguated, regression, seed, lambda: None)

    return Given(**model.get_params()).fit(X, y, **knowledge)


@pytest.mark.parametrize("views", [None, ("rank",), ("cosine", "rank", "euclidean")])
def test_batches_give_what_one_fit_with_the_same_scaling_gives(views):
    X, mask, _ = hard(m=120)
    fixed = {"forest": 0.0} | ({} if views is None else {"views": views})
    model = PartialLabelClassifier(hyperparameters=fixed, random_state=0)
    model.partial_fit(X[:50], mask[:50])
    expected = fit_at_once(model, X[:110], mask[:110])
    for batch in (slice(50, 51), slice(51, 90), slice(90, 110)):
        model.partial_fit(X[batch], mask[batch])
    assert model.n_samples_seen_ == 110
    np.testing.assert_allclose(model.label_confidences_, expected.label_confidences_, atol=1e-6)
    np.testing.assert_allclose(model.label_support_, expected.label_support_, atol=1e-6)
    np.testing.assert_allclose(
        model.predict_proba(X[110:]), expected.predict_proba(X[110:]), atol=1e-6
    )
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_the_first_call_is_fit():
    X, mask, _ = hard()
    first, fitted = (
        PartialLabelClassifier(random_state=0).partial_fit(X, mask),
        PartialLabelClassifier(random_state=0).fit(X, mask),
    )
    np.testing.assert_array_equal(first.label_confidences_, fitted.label_confidences_)
    np.testing.assert_array_equal(first.predict_proba(X), fitted.predict_proba(X))
    assert fitted.n_samples_seen_ == 90


def test_labels_may_come_later_if_they_were_named():
    X, mask, truth = easy()
    late = truth == 3
    sets = [set(NAMES[row]) for row in mask]
    early = [labels - {"d"} for labels, is_late in zip(sets, late, strict=True) if not is_late]
    model = quick().partial_fit(X[~late], early, classes=NAMES)
    assert model.classes_.tolist() == NAMES.tolist()
    assert "d" not in model.predict(X)
    model.partial_fit(X[late], [sets[row] for row in np.flatnonzero(late)])
    assert (model.labels_ == NAMES[np.r_[truth[~late], truth[late]]]).mean() > 0.95
    assert (model.predict(X) == NAMES[truth]).mean() > 0.95


def test_mistakes_in_partial_fit_are_one_sentence_and_change_nothing():
    X, mask, _ = hard()
    sets = [set(NAMES[row]) for row in mask]
    with pytest.raises(ValueError, match="each of them once"):
        PartialLabelClassifier().partial_fit(X, sets, classes=["a", "b", "a"])
    with pytest.raises(ValueError, match="has the candidate 'd', which is none of the 3 labels"):
        PartialLabelClassifier().partial_fit(X, sets, classes=["a", "b", "c"])
    model = quick().partial_fit(X[:60], sets[:60])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="Row 0 has the candidate 'emu'"):
        model.partial_fit(X[:1], [{"emu"}])
    with pytest.raises(ValueError, match="leave classes out"):
        model.partial_fit(X[60:], sets[60:], classes=["a", "b", "c"])
    with pytest.raises(
        ValueError, match="X has 4 features, but PartialLabelClassifier is expecting 5"
    ):
        model.partial_fit(X[60:, :4], sets[60:])
    assert pickle.dumps(model) == before


def test_knowledge_comes_with_its_rows():
    X, mask, truth = hard()
    gold = np.full(30, -1)
    gold[:5] = truth[60:65]
    model = quick(hyperparameters={"forest": 0.0}).fit(X[:60], mask[:60])
    expected = fit_at_once(model, X, mask, gold=np.r_[np.full(60, -1), gold])
    model.partial_fit(X[60:], mask[60:], gold=gold)
    np.testing.assert_allclose(model.label_confidences_, expected.label_confidences_, atol=1e-6)
    assert (model.labels_[60:65] == truth[60:65]).all()


def test_weights_may_come_with_some_rows_only():
    X, mask, _ = hard()
    weights = np.random.RandomState(0).random_sample((30, 4))
    model = quick(hyperparameters={"weight_exponent": 1.0, "forest": 0.0}).fit(X[:60], mask[:60])
    every = np.vstack([np.ones((60, 4)), weights])
    expected = fit_at_once(model, X, mask, candidate_weight=every)
    model.partial_fit(X[60:], mask[60:], candidate_weight=weights)
    np.testing.assert_allclose(model.label_confidences_, expected.label_confidences_, atol=1e-6)
    unweighted = fit_at_once(model, X, mask).label_confidences_
    assert np.abs(expected.label_confidences_ - unweighted).max() > 0.01


def test_what_goes_wrong_on_the_way_changes_nothing(monkeypatch):
    X, mask, _ = hard()
    model = quick().fit(X[:60], mask[:60])
    before = pickle.dumps(model)
    with monkeypatch.context() as patched:
        patched.setattr(PartialLabelClassifier, "_with_confidences", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[60:], mask[60:])
    assert pickle.dumps(model) == before
    assert model.partial_fit(X[60:], mask[60:]).n_samples_seen_ == 90


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_row_from_far_out_reaches_the_trees():
    X, mask, _ = easy()
    model = quick(hyperparameters={"forest": 0.5}).partial_fit(X[:120], mask[:120])
    far = X[120:].copy()
    far[0, 0] = 1e45
    assert model.partial_fit(far, mask[120:]).n_samples_seen_ == 160
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_revived_model_goes_on_alike():
    X, mask, _ = hard()
    model = quick().partial_fit(X[:40], mask[:40]).partial_fit(X[40:60], mask[40:60])
    revived = pickle.loads(pickle.dumps(model))
    for each in (model, revived):
        each.partial_fit(X[60:], mask[60:])
    assert revived.n_samples_seen_ == 90
    np.testing.assert_array_equal(model.label_confidences_, revived.label_confidences_)


# --- warm_start ------------------------------------------------------------------------------


def test_a_warm_fit_chooses_nothing_and_finds_the_same_labels():
    X, mask, _ = easy(spread=0.5)
    cold = quick().fit(X, mask)
    model = quick(warm_start=True).fit(X[:120], mask[:120])
    model.fit(X, mask)  # the same rows and more
    np.testing.assert_array_equal(model.labels_, cold.labels_)
    chosen = model.selection_
    model.fit(X, mask)
    assert model.selection_ is chosen
    assert model.n_iter_ <= 3
    np.testing.assert_array_equal(model.labels_, cold.labels_)
    # After partial_fit its rows count as rows of a fit too.
    grown = quick(warm_start=True).partial_fit(X[:100], mask[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grown.partial_fit(X[100:], mask[100:]).fit(X, mask)
    assert grown.n_iter_ <= 3
    np.testing.assert_array_equal(grown.labels_, cold.labels_)


def test_a_warm_fit_of_other_labels_chooses_anew():
    X, mask, _ = easy()
    sets = [set(NAMES[row]) for row in mask]
    renamed = [{"z" if name == "a" else name for name in row} for row in sets]
    model = quick(warm_start=True).fit(X, sets)
    cold = quick().fit(X, renamed)
    assert model.fit(X, renamed).temperature_ == cold.temperature_
    assert model.selected_ == cold.selected_


def test_a_warm_fit_keeps_no_choice_that_was_not_made():
    X, mask, _ = easy()
    model = quick(warm_start=True).fit(X[:20], mask[:20])  # too few to compare settings
    assert model.temperature_ == 1.0
    assert len(model.fit(X, mask).selection_.scores) > 1
    assert model.temperature_ != 1.0
    few = quick(warm_start=True).fit(X[:35], mask[:35])  # too few for a forest
    assert not few.selection_.forest_gains
    assert few.fit(X, mask).selection_.forest_gains


def test_a_warm_fit_takes_changed_candidates():
    X, mask, truth = easy()
    model = quick(warm_start=True).fit(X, mask)
    model.fit(X, mask, gold=truth)
    np.testing.assert_array_equal(model.labels_, truth)
    # Labels are known by their names, not by their columns, and there may be others.
    frame = pd.DataFrame(mask[:, ::-1], columns=[3, 2, 1, 0]).assign(emu=0)
    frame.loc[0, "emu"] = 1
    frame.columns = frame.columns.astype(object)
    assert (model.fit(X, frame).labels_ == truth.astype(object)).mean() > 0.9


def test_a_candidate_that_was_given_up_can_come_back():
    X, mask, truth = easy(extra=0.0)
    mask[0] = True
    wrong = int((truth[0] + 1) % 4)
    model = quick(warm_start=True)
    model.fit(X, mask, gold=np.where(np.arange(len(X)) == 0, wrong, -1))
    assert model.labels_[0] == wrong
    assert model.fit(X, mask).labels_[0] == truth[0]


def test_other_rows_start_anew_with_a_warning():
    X, mask, _ = hard(m=60)
    model = quick(warm_start=True).fit(X[:40], mask[:40])
    with pytest.warns(UserWarning, match="not those of the previous fit"):
        model.fit(X[20:], mask[20:])
    expected = quick().fit(X[20:], mask[20:])
    np.testing.assert_array_equal(model.label_confidences_, expected.label_confidences_)


def test_without_warm_start_a_fit_forgets_the_earlier_one():
    X, mask, _ = hard(m=60)
    model = quick().fit(X[:50], mask[:50]).partial_fit(X[50:], mask[50:])
    model.fit(X, mask)
    expected = quick().fit(X, mask)
    np.testing.assert_array_equal(model.label_confidences_, expected.label_confidences_)


# --- reading ---------------------------------------------------------------------------------


def test_labels_of_frames_that_nobody_has_may_be_unknown():
    frame = pd.DataFrame({"c": [1, 0], "emu": [0, 0], "a": [0, 1]})
    sets = sets_of_known_labels(frame, NAMES, n_samples=2)
    assert sets.to_lists() == [["c"], ["a"]]
    assert sets.classes.tolist() == NAMES.tolist()
