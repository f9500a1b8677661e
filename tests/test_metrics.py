import numpy as np
import pytest

from gmpll.metrics import covered, covering_rate


def test_covered():
    mask = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1]])
    np.testing.assert_array_equal(covered(mask, [1, 0, 2]), [True, False, True])
    assert covering_rate(mask, [1, 0, 2]) == pytest.approx(2 / 3)


def test_a_label_that_is_no_candidate_anywhere_is_a_miss():
    assert covering_rate([{"a"}, {"b"}], ["a", "zebra"]) == 0.5


def test_singletons_give_the_accuracy():
    assert covering_rate(["a", "b", "b"], ["a", "b", "a"]) == pytest.approx(2 / 3)
