import numpy as np
from sklearn.datasets import load_digits

from gmpll.apps.experiments.methods import FullSupervision
from gmpll.base import BasePartialLabelClassifier


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
