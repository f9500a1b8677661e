"""Made and corrupted data sets: the truth stays a candidate, the same seed gives the same sets."""

import tempfile

import numpy as np
import pytest
from generic import anything, examples, refused
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gmpll.datasets import (
    DatasetFormatError,
    DatasetUnavailableError,
    PaperStatistics,
    class_dependent_candidates,
    cooccurring_candidates,
    dataset_info,
    get_data_home,
    instance_dependent_candidates,
    is_available,
    list_datasets,
    load_dataset,
    load_embedded,
    load_real_world,
    load_uci,
    make_partial_label_problem,
    random_candidates,
)

pytestmark = pytest.mark.filterwarnings("ignore")

labels = hnp.arrays(np.int64, st.integers(1, 12), elements=st.integers(0, 4))
seeds = st.integers(0, 2**32 - 1)


def assert_sets(mask, y):
    assert mask.dtype == bool
    assert mask[np.arange(len(y)), y].all()


@given(labels, st.floats(0, 1), st.integers(0, 4), seeds)
@examples(80)
def test_random_candidates_keep_the_truth(y, p, r, seed):
    mask = random_candidates(y, p, r, n_classes=5, random_state=seed)
    assert_sets(mask, y)
    sizes = mask.sum(axis=1)
    assert set(sizes) <= {1, r + 1}
    if r:
        assert (sizes > 1).sum() == round(p * len(y))
    again = random_candidates(y, p, r, n_classes=5, random_state=seed)
    np.testing.assert_array_equal(mask, again)


@given(labels, st.floats(0, 1), st.floats(0, 1), st.integers(1, 4), seeds)
@examples(60)
def test_cooccurring_candidates_keep_the_truth(y, p, epsilon, r, seed):
    error, mask = refused(
        lambda: cooccurring_candidates(y, p, r, epsilon=epsilon, n_classes=5, random_state=seed)
    )
    if error is None:
        assert_sets(mask, y)
        assert set(mask.sum(axis=1)) <= {1, r + 1}


@given(labels, hnp.arrays(np.float64, (5, 5), elements=st.floats(0, 1)), seeds)
@examples(40)
def test_class_dependent_candidates_keep_the_truth(y, transition, seed):
    np.fill_diagonal(transition, 1.0)
    mask = class_dependent_candidates(y, transition, random_state=seed)
    assert_sets(mask, y)
    assert not mask[transition[y] == 0].any()


@given(st.integers(10, 30), st.floats(1, 3), seeds)
@examples(6)
def test_instance_dependent_candidates_keep_the_truth(n, mean, seed):
    rng = np.random.RandomState(seed)
    X, y = rng.standard_normal((n, 3)), rng.randint(3, size=n)
    error, mask = refused(
        lambda: instance_dependent_candidates(
            X, y, mean_candidates=mean, n_classes=3, n_folds=2, random_state=seed
        )
    )
    if error is None:
        assert_sets(mask, y)


@given(
    st.integers(1, 30),
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(1, 6),
    st.floats(0, 3),
    st.floats(0, 10),
    seeds,
)
@examples(60)
def test_made_problems_are_what_was_asked_for(n, d, q, mean, imbalance, separation, seed):
    error, made = refused(
        lambda: make_partial_label_problem(n, d, q, mean, imbalance, separation, seed)
    )
    if error is None:
        assert made.data.shape == (n, d)
        assert made.candidates.shape == (n, q)
        assert_sets(made.candidates, made.target)
        assert np.isfinite(made.data).all()
    else:
        assert mean > q or q < 2


@given(anything, anything, anything)
@examples(150)
def test_wrong_arguments_are_refused_in_a_sentence(first, second, third):
    wrong = (ValueError, TypeError, OverflowError)
    refused(lambda: random_candidates(first, second, third), wrong)
    refused(lambda: class_dependent_candidates(first, second), wrong)


@given(st.text(max_size=12))
@examples(60)
def test_unknown_names_are_refused_in_a_sentence(name):
    unknown = f"no such set: {name}"
    for ask in (dataset_info, is_available, load_dataset, load_embedded, load_uci, load_real_world):
        error, _ = refused(lambda ask=ask: ask(unknown), ValueError)
        assert error is not None


def test_known_sets_are_described_and_missing_ones_are_asked_for():
    with tempfile.TemporaryDirectory() as folder:
        assert get_data_home(folder).is_dir()
        for info in list_datasets():
            assert dataset_info(info.name) == info
            assert info.paper is None or isinstance(info.paper, PaperStatistics)
            if info.kind == "embedded":
                assert load_dataset(info.name).data.shape[0] > 0
                continue
            assert not is_available(info.name, folder)
            with pytest.raises(DatasetUnavailableError, match="put"):
                load_dataset(info.name, folder, download_if_missing=False)
    assert issubclass(DatasetFormatError, ValueError)
