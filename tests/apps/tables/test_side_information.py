"""Votes as weights and impossible labels, from the table to the saved matching."""

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables import disambiguate
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.saved import read_matching, rematch, saved_matching, write_matching
from gmpll.apps.tables.tables import table_from_frame


@pytest.fixture(scope="module")
def crowd():
    """Two clouds that overlap; four of five annotators know, the fifth one guesses."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    frame = pd.DataFrame(1.0 * truth[:, None] + rng.normal(size=(80, 2)), columns=["size", "age"])
    frame.insert(0, "id", [f"r{i}" for i in range(80)])
    given = np.column_stack([truth] * 4 + [rng.integers(2, size=80)])
    votes = pd.DataFrame(
        [
            (f"r{row}", "cat" if label == 0 else "dog", f"annotator {who}")
            for row, labels in enumerate(given)
            for who, label in enumerate(labels)
        ],
        columns=["item", "label", "annotator"],
    )
    return frame, votes, np.where(truth == 0, "cat", "dog")


def resolution_of(frame, **options):
    options = Options(**options)
    table = table_from_frame(frame)
    return resolve(prepare(table, guess_roles(table, options), options))


def test_votes_count(crowd):
    frame, votes, truth = crowd
    sets_only = disambiguate(frame, votes=votes, trust=0)
    counted = disambiguate(frame, votes=votes, trust=5)
    assert (counted["label"] == truth).mean() > (sets_only["label"] == truth).mean() + 0.1
    assert resolution_of(frame, votes=votes).model.selected_["weight_exponent"] > 0.3


def test_other_methods_take_votes_as_sets(crowd):
    frame, votes, _ = crowd
    assert set(disambiguate(frame, votes=votes, method="plknn")["label"]) <= {"cat", "dog"}
    with pytest.raises(InputError, match="trust= says how much votes count"):
        disambiguate(frame, votes=votes, method="plknn", trust=1.0)
    with pytest.raises(InputError, match=r"trust= is -1\.0"):
        disambiguate(frame, votes=votes, trust=-1.0)


def test_votes_are_kept_for_matching_again(crowd, tmp_path):
    frame, votes, _ = crowd
    resolution = resolution_of(frame, votes=votes)
    write_matching(saved_matching(resolution), tmp_path / "matching.npz")
    saved = read_matching(tmp_path)
    np.testing.assert_array_equal(saved.weights.sum(axis=1), 5)
    again = rematch(saved, {})
    np.testing.assert_array_equal(again.labels, saved.labels)


def test_a_matching_without_votes_has_no_weights(tmp_path):
    frame = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|b", "a", "b", "a|b"]})
    write_matching(saved_matching(resolution_of(frame)), tmp_path / "matching.npz")
    assert read_matching(tmp_path).weights.size == 0


def test_impossible_labels(crowd):
    frame = pd.DataFrame(
        {
            "size": [1.0, 1.1, 8.0, 8.2],
            "tags": ["a|b", "a", "b", "a|b"],
            "never": ["a", "", "", ""],
        }
    )
    assert disambiguate(frame, impossible="never")["label"].tolist()[0] == "b"
