"""What all wrappers of a partial label learner share."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gmpll import (
    PLKNN,
    CalibratedPartialClassifier,
    ConformalPartialClassifier,
    RejectingClassifier,
    as_candidates,
)
from problems import random_problem

WRAPPERS = [CalibratedPartialClassifier, RejectingClassifier, ConformalPartialClassifier]


def frame_problem(m=120):
    """Candidates in a table whose columns are not sorted."""
    X, mask, _ = random_problem(0, m=m)
    return X, pd.DataFrame(mask, columns=list("dcba"))


@pytest.mark.parametrize("wrapper", [None, *WRAPPERS])
def test_the_score_reads_tables_by_name_and_matrices_by_place(wrapper):
    X, frame = frame_problem()
    inner = PLKNN(random_state=0)
    model = inner if wrapper is None else wrapper(inner, random_state=0)
    expected = model.fit(X, frame).score(X, frame)
    assert expected > 0.6
    sets = as_candidates(frame)
    for same in (
        frame[list("abcd")],
        frame.to_numpy(),
        sp.csr_array(frame.to_numpy()),
        sets,
        sets.to_lists(),
    ):
        assert model.score(X, same) == expected


def test_nothing_is_held_against_a_row_of_any_label():
    X, frame = frame_problem()
    model = CalibratedPartialClassifier(PLKNN(random_state=0), random_state=0).fit(X, frame)
    predicted = model.predict(X)
    sets = [None] * 60 + [{label} for label in predicted[60:]]
    sets[:30] = [{"no such label"}] * 30
    assert model.score(X, sets) == 0.75
    np.testing.assert_array_equal(model.estimator_.score(X, sets), 0.75)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_rows_count_by_their_weight(wrapper):
    X, frame = frame_problem()
    model = wrapper(PLKNN(random_state=0), random_state=0).fit(X, frame)
    weight = np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = model.score(X, frame, sample_weight=weight)
    assert weighted == pytest.approx(model.score(X[repeated], frame.iloc[repeated]))
