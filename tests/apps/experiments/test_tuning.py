import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from gmpll.apps.experiments.tuning import CRITERIA, choose_parameters
from gmpll.methods.baselines import AnyCandidate


def random_sets(rng, n=60, q=5):
    mask = rng.random((n, q)) < 0.4
    mask[np.arange(n), rng.integers(q, size=n)] = True
    return mask


def test_candidate_lift_against_its_definition():
    rng = np.random.default_rng(0)
    mask = random_sets(rng)
    predicted = rng.integers(5, size=60)
    frequency = mask.mean(axis=0)
    terms = [
        (float(mask[i, predicted[i]]) - frequency[predicted[i]]) / (1 - frequency[predicted[i]])
        for i in range(60)
    ]
    assert CRITERIA["candidate lift"](mask, predicted, frequency) == pytest.approx(sum(terms) / 60)


def test_a_constant_prediction_has_no_lift_but_covers():
    rng = np.random.default_rng(1)
    mask = random_sets(rng)
    mask[:55, 2] = True
    constant = np.full(60, 2)
    frequency = mask.mean(axis=0)
    assert CRITERIA["covering rate"](mask, constant, frequency) > 0.9
    assert CRITERIA["candidate lift"](mask, constant, frequency) == pytest.approx(0.0)


def test_a_label_in_every_set_counts_nothing():
    mask = np.array([[True, False], [True, True]])
    assert CRITERIA["candidate lift"](mask, np.array([0, 0]), np.array([1.0, 0.5])) == 0.0
    assert CRITERIA["candidate lift"](~mask, np.array([0, 0]), np.array([1.0, 0.5])) == 0.0


def neighbours(parameters):
    return AnyCandidate(KNeighborsClassifier(**parameters), random_state=0)


@pytest.mark.parametrize("criterion", ["candidate lift", "covering rate"])
def test_the_better_setting_is_chosen(criterion):
    X, y = load_iris(return_X_y=True)
    mask = np.eye(3, dtype=bool)[y]
    # All 120 training rows as neighbours make a constant prediction.
    choice = choose_parameters(
        neighbours, {"n_neighbors": [120, 5]}, X, mask, criterion=criterion, random_state=0
    )
    assert choice.parameters == {"n_neighbors": 5}
    assert [parameters["n_neighbors"] for parameters, _ in choice.tried] == [120, 5]


def test_an_impossible_setting_is_passed_over():
    X, y = load_iris(return_X_y=True)
    grid = {"n_neighbors": [0, 5]}
    mask = np.eye(3, dtype=bool)[y]
    choice = choose_parameters(
        neighbours, grid, X, mask, criterion="candidate lift", random_state=0
    )
    assert choice.parameters == {"n_neighbors": 5}
    assert choice.tried[0] == ({"n_neighbors": 0}, None)


def test_if_nothing_is_possible_the_reason_is_told():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="n_neighbors"):
        choose_parameters(
            neighbours,
            {"n_neighbors": [0]},
            X,
            np.eye(3, dtype=bool)[y],
            criterion="candidate lift",
            random_state=0,
        )


def test_held_out_rows_are_not_fitted():
    y = load_iris().target
    seen = []

    class Spy:
        def fit(self, X, mask):
            seen.append(X)
            return self

        def predict(self, X):
            seen.append(X)
            return np.zeros(len(X), dtype=int)

    rows = np.arange(150.0)[:, None]
    mask = np.eye(3, dtype=bool)[y]
    choose_parameters(
        lambda parameters: Spy(), {"a": [1]}, rows, mask, criterion="covering rate", random_state=0
    )
    fitted, predicted = ({int(row[0]) for row in part} for part in seen)
    assert (len(fitted), len(predicted)) == (120, 30)
    assert fitted.isdisjoint(predicted)
