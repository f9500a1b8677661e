"""The real files, where the environment variable GMPLL_DATA says where they are."""

import os

import numpy as np
import pytest

from gmpll.datasets import dataset_info, is_available, list_datasets, load_dataset, load_uci

DATA = os.environ.get("GMPLL_DATA")


def load(name):
    if not DATA and dataset_info(name).kind != "embedded":
        pytest.skip("GMPLL_DATA is not set")
    if not is_available(name):
        pytest.skip(f"the file of {name} is not in GMPLL_DATA")
    return load_dataset(name, download_if_missing=False)


@pytest.mark.parametrize("info", list_datasets(), ids=lambda info: info.name)
def test_files_have_the_statistics_of_the_catalogue(info, recwarn):
    bunch = load(info.name)
    assert bunch.verified
    assert not recwarn.list
    assert bunch.data.shape == (info.n_samples, info.n_features)
    if info.kind not in ("crowd", "prepared"):  # these keep the type of the file
        assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert len(bunch.feature_names) == info.n_features
    assert len(bunch.target_names) == info.n_classes
    assert bunch.target.min() >= 0
    assert bunch.target.max() < info.n_classes
    if info.mean_candidates is None:
        assert bunch.candidates is None
        assert len(np.unique(bunch.target)) == info.n_classes
    else:
        assert bunch.candidates.shape == (info.n_samples, info.n_classes)
        mean = bunch.candidates.sum() / info.n_samples
        digits = 2 if "not measured" in info.remark else 4
        assert round(mean, digits) == info.mean_candidates
        covered = bunch.candidates[np.arange(info.n_samples), bunch.target].mean()
        assert covered == 1 or (info.kind in ("crowd", "prepared") and covered > 0.88)


def test_labels_that_are_never_true_are_kept():
    assert len(np.unique(load("lost").target)) == 14
    assert len(np.unique(load("fg-net").target)) == 63


@pytest.mark.parametrize(("name", "first", "last"), [("fg-net", 0, 69), ("abalone", 1, 29)])
def test_ordered_labels_are_their_numbers(name, first, last):
    """FG-NET has faces from 0 to 69 years; the first row of Abalone has 15 rings."""
    bunch = load(name)
    numbers = bunch.target_names[bunch.target]
    assert bunch.ordered
    assert (numbers.min(), numbers.max()) == (first, last)
    assert (np.diff(bunch.target_names) > 0).all()
    if name == "abalone":
        assert numbers[0] == 15
    else:  # candidates are guesses of the age: they gather around it
        distance = np.abs(bunch.target_names - numbers[:, None])
        assert distance[bunch.candidates].mean() < distance.mean() / 3


def test_details_of_the_uci_files():
    assert load("segment").data[:, 2].std() == 0
    ages = load("dermatology").data[:, 33]
    assert (ages == np.median(ages)).sum() >= 8
    sex = load("abalone").data[:, :3]
    assert (sex.sum(axis=1) == 1).all()
    assert (np.bincount(load("abalone").target) == 1).sum() == 5
    letter = load("letter")
    assert letter.target_names[letter.target[:3]].tolist() == ["T", "I", "D"]
    assert load_uci("letter", all_rows=True).data.shape == (20000, 16)
    assert load("pendigits").target[:4].tolist() == [8, 8, 8, 9]


@pytest.mark.parametrize(("name", "n_test"), [("labelme", 1188), ("sentiment-polarity", 3999)])
def test_the_crowds_votes_and_test_parts(name, n_test):
    bunch = load(name)
    assert ((bunch.vote_counts > 0) == bunch.candidates).all()
    for label, count in enumerate(bunch.vote_counts.T):
        np.testing.assert_array_equal((bunch.votes == label).sum(axis=1), count)
    assert bunch.data_test.shape == (n_test, bunch.data.shape[1])
    assert bunch.target_test.shape == (n_test,)


def test_newsgroups_are_split_as_marked():
    bunch = load("20newsgroups")
    assert bunch.data_test.shape == (7532, 100)
    assert bunch.target_names[0] == "alt.atheism"
