"""Accuracies on real-world data sets are those of independent code on the same data."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from gmpll import CLPL, IPAL, LALO, LSBCMM, PLAGGD, PLCL, PLKNN, PLLEAF, PLSVM, SURE
from problems import real_world

#: Method, data set, how many of ten folds; accuracy on unseen rows and on training rows, each with
#: its tolerance. A single fold of 113 rows spreads by about 0.04.
CASES = [
    (PLKNN(), "lost", 10, (0.398, 0.04), (0.615, 0.04)),  # training rows: the GM-PLL article
    (PLKNN(), "MSRCv2", 10, (0.445, 0.04), (0.616, 0.04)),
    (IPAL(), "lost", 10, (0.733, 0.04), (0.841, 0.02)),
    (IPAL(), "MSRCv2", 10, (0.526, 0.04), (0.706, 0.02)),
    (PLLEAF(), "lost", 10, (0.749, 0.04), (0.822, 0.04)),
    (PLLEAF(), "MSRCv2", 10, (0.496, 0.04), (0.628, 0.04)),
    (CLPL(), "lost", 10, (0.734, 0.04), (0.880, 0.02)),
    (PLSVM(), "lost", 3, (0.740, 0.04), (0.896, 0.02)),
    (SURE(), "lost", 3, (0.786, 0.04), (0.839, 0.02)),
    (LALO(), "lost", 2, (0.754, 0.06), (0.857, 0.02)),
    (PLAGGD(), "lost", 2, (0.783, 0.05), (0.866, 0.02)),
    (PLCL(), "lost", 2, (0.776, 0.05), (0.861, 0.02)),
    (LSBCMM(), "lost", 1, (0.707, 0.1), (0.817, 0.04)),
]


@pytest.mark.parametrize(("method", "name", "n_folds", "unseen", "training"), CASES)
def test_accuracy_is_as_expected(method, name, n_folds, unseen, training):
    X, mask, truth = real_world(name)
    inductive, transductive = [], []
    for train, test in list(KFold(10, shuffle=True, random_state=0).split(X))[:n_folds]:
        model = method.set_params(random_state=0).fit(X[train], mask[train])
        inductive.append(np.mean(model.predict(X[test]) == truth[test]))
        transductive.append(np.mean(model.labels_ == truth[train]))
    assert np.mean(inductive) == pytest.approx(unseen[0], abs=unseen[1])
    assert np.mean(transductive) == pytest.approx(training[0], abs=training[1])
    assert (np.diff(getattr(model, "bound_path_", [])) >= 0).all()
