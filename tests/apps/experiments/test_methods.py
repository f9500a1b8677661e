from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gmpll.apps.experiments import methods
from gmpll.apps.experiments.declaration import Experiment, methods_of
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import (
    BASELINES,
    FULL_SUPERVISION,
    FullSupervision,
    Method,
    find_method,
    known_methods,
    make_estimator,
)
from gmpll.base import BasePartialLabelClassifier
from gmpll.methods import METHODS

#: What learns from candidates, and whose package is installed.
HONEST = [
    name
    for name, method in known_methods().items()
    if name != FULL_SUPERVISION and (not method.needs or find_spec(method.needs))
]


@pytest.mark.parametrize("name", HONEST)
def test_every_setting_and_grid_value_is_one_the_estimator_knows(name):
    method = find_method(name, known_methods())
    estimator = make_estimator(method.estimator, method.settings, random_state=7)
    assert estimator.get_params()["random_state"] == 7
    for parameter, values in method.grid.items():
        assert parameter in estimator.get_params()
        assert len(set(values)) == len(values)


def test_every_registered_method_and_baseline_can_be_named():
    assert {*METHODS, *BASELINES, FULL_SUPERVISION} <= set(known_methods())


def test_the_grids_and_settings_of_the_paper_are_those_of_its_methods():
    known = known_methods()
    assert known["GM-PLL"].settings == {"prediction": "joint"}
    assert list(known["GM-PLL"].grid) == ["beta"]
    assert not any(known[name].grid for name in ("gmpll", "PL-KNN", "IPAL", *BASELINES))


def test_all_leaves_out_what_wants_to_be_named(monkeypatch):
    monkeypatch.setattr(methods, "_NETWORKS", (*methods._NETWORKS, "Slow"))
    everything = Experiment("real-world", ("lost",))
    named = methods_of(everything, {})
    assert "Slow" not in [method.name for method in named]
    assert len(named) > 10
    (found,) = methods_of(Experiment("real-world", ("lost",), ("slow",)), {})
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(
        ExperimentError, match=r"Slow needs torch: pip install 'gmpll\[torch\]', or"
    ):
        methods.check_packages([found])


def test_the_truth_teller_is_no_estimator():
    # What is handed the truth must not be reachable as a method.
    with pytest.raises(KeyError):
        make_estimator(FULL_SUPERVISION, {}, 0)
    assert FULL_SUPERVISION not in METHODS


def test_names_are_found_in_any_case_and_wrong_ones_are_answered_with_the_list():
    assert find_method(" random CANDIDATE", known_methods()).name == "Random candidate"
    with pytest.raises(ExperimentError, match=r"no method 'SVM'; the methods are .*Any candidate"):
        find_method("SVM", known_methods())


def test_declared_methods_are_found():
    extra = {"Mine": Method("Mine", "sklearn.dummy:DummyClassifier", {"strategy": "uniform"})}
    method = find_method("mine", known_methods(extra))
    estimator = make_estimator(method.estimator, method.settings, random_state=3)
    assert estimator.get_params()["strategy"] == "uniform"


def test_a_parameter_that_does_not_exist():
    with pytest.raises(ExperimentError, match="Any candidate has no parameter 'k'; it has"):
        make_estimator("Any candidate", {"k": 3}, 0)


@pytest.mark.parametrize("path", ["no_such_module_here:X", "sklearn.dummy:NoSuchClass"])
def test_a_class_that_cannot_be_imported(path):
    with pytest.raises(ExperimentError, match="cannot be imported"):
        make_estimator(path, {}, 0)


def test_it_learns_from_the_truth():
    X, y = load_digits(return_X_y=True)
    predicted = FullSupervision().fit_on_truth(X[:1000], y[:1000]).predict(X[1000:])
    assert np.mean(predicted == y[1000:]) > 0.9


def test_it_cannot_be_taken_for_a_method():
    assert not issubclass(FullSupervision, BasePartialLabelClassifier)
    assert not hasattr(FullSupervision, "fit")


def test_a_fold_with_a_single_class():
    model = FullSupervision().fit_on_truth(np.zeros((3, 2)), np.array([4, 4, 4]))
    assert model.predict(np.ones((2, 2))).tolist() == [4, 4]
