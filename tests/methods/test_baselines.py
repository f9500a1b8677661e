import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll.methods.baselines import AnyCandidate, MostFrequentCandidate, RandomCandidate


@parametrize_with_checks([RandomCandidate(), MostFrequentCandidate(), AnyCandidate()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def random_mask(n_samples, n_labels, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((n_samples, n_labels)) < 0.4
    mask[np.arange(n_samples), rng.integers(n_labels, size=n_samples)] = True
    return mask


def test_random_candidate_draws_every_candidate_equally_often():
    mask = np.tile([True, True, False, True], (6000, 1))
    labels = RandomCandidate(random_state=0).fit(np.zeros((6000, 1)), mask).labels_
    counts = np.bincount(labels, minlength=4)
    # 2000 expected, standard deviation 37.
    assert counts[2] == 0
    assert np.all(np.abs(counts[[0, 1, 3]] - 2000) < 200)


def test_random_candidate_predicts_in_proportion_to_the_candidates():
    rng = np.random.default_rng(0)
    mask = np.zeros((100, 3), dtype=bool)
    mask[:50, 0] = True
    mask[50:, 1:] = True
    model = RandomCandidate(random_state=1).fit(rng.normal(size=(100, 2)), mask)
    predicted = model.predict(rng.normal(size=(8000, 2)))
    shares = np.bincount(predicted, minlength=3) / 8000
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.03)


def test_random_candidate_draws_anew_for_another_seed():
    X = load_digits().data[:300]
    mask = random_mask(300, 8, 0)
    first, second = (RandomCandidate(random_state=s).fit(X, mask) for s in (0, 1))
    assert (first.labels_ != second.labels_).any()
    assert (first.predict(X) != second.predict(X)).mean() > 0.5


def test_most_frequent_candidate_against_counting():
    mask = random_mask(200, 6, 3)
    model = MostFrequentCandidate(random_state=0).fit(np.zeros((200, 2)), mask)
    frequency = mask.sum(axis=0)
    assert len(set(frequency.tolist())) == 6, "the expectation below needs frequencies without ties"
    expected = [max(np.flatnonzero(row), key=lambda label: frequency[label]) for row in mask]
    assert model.labels_.tolist() == expected
    assert set(model.predict(np.ones((5, 2)))) == {int(frequency.argmax())}


def test_most_frequent_candidate_has_no_favourite_among_equals():
    mask = np.ones((40, 4), dtype=bool)
    predictions = {
        int(MostFrequentCandidate(random_state=s).fit(np.zeros((40, 1)), mask).predict([[0.0]])[0])
        for s in range(40)
    }
    assert predictions == {0, 1, 2, 3}


def test_any_candidate_with_singletons_is_its_classifier():
    X, y = load_iris(return_X_y=True)
    knn = KNeighborsClassifier(7)
    model = AnyCandidate(knn).fit(X[::2], y[::2])
    np.testing.assert_array_equal(model.predict(X[1::2]), knn.fit(X[::2], y[::2]).predict(X[1::2]))


def test_any_candidate_takes_classifiers_without_probabilities():
    X, y = load_iris(return_X_y=True)
    model = AnyCandidate(LinearSVC()).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


def test_any_candidate_stays_inside_the_candidates():
    X = load_iris().data
    mask = random_mask(150, 5, 1)
    model = AnyCandidate(random_state=0).fit(X, mask)
    assert mask[np.arange(150), model.labels_].all()


def test_any_candidate_when_one_label_is_drawn():
    model = AnyCandidate(random_state=0).fit([[0.0], [1.0]], [{"a"}, {"a"}])
    assert model.predict([[3.0]]).tolist() == ["a"]


def test_any_candidate_refuses_what_is_no_classifier():
    with pytest.raises(ValueError, match="estimator"):
        AnyCandidate(estimator="knn").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="n_neighbors"):
        AnyCandidate(KNeighborsClassifier(0)).fit([[0.0], [1.0]], [0, 1])
    assert AnyCandidate(DummyClassifier()).fit([[0.0], [1.0]], [0, 1]).predict([[0.0]]).size == 1
