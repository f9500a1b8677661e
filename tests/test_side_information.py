import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmpll import PLKNN, PartialLabelClassifier, as_candidates, candidates_from_votes
from gmpll.candidates import CandidateSets
from gmpll.side_information import (
    Prior,
    apply_constraints,
    candidate_prior,
    class_shares,
    estimate_weight_exponent,
    known_labels,
    votes_as_weights,
    weight_argument,
)

SETS = as_candidates([{"cat", "dog"}, {"cat", "dog", "emu"}, {"emu"}])


class TestGold:
    @pytest.mark.parametrize(
        "gold",
        [
            [None, "dog", None],
            [np.nan, "dog", -1],
            np.array([None, "dog", np.nan], dtype=object),
            pd.Series([None, "dog", None], index=[7, 8, 9]),
            pd.Series([pd.NA, "dog", pd.NA], dtype="string"),
        ],
    )
    def test_every_marker_of_the_unknown(self, gold):
        assert apply_constraints(SETS, gold=gold).to_lists() == [["cat", "dog"], ["dog"], ["emu"]]

    def test_it_wins_over_the_candidates(self):
        assert apply_constraints(SETS, gold=["emu", None, "cat"]).to_lists()[::2] == [
            ["emu"],
            ["cat"],
        ]

    def test_numbers(self):
        labels = np.array([0, 1, 2])
        for gold in (
            [2, -1, 0],
            [2.0, np.nan, 0.0],
            [2, None, 0.0],
            np.array([2, -1, 0], dtype=np.int8),
        ):
            assert known_labels(gold, labels, n_samples=3).tolist() == [2, -1, 0]
        with_minus_one = np.array([-1, 1])
        assert known_labels([-1, 1, None], with_minus_one, n_samples=3).tolist() == [0, 1, -1]

    def test_errors_name_the_row(self):
        with pytest.raises(ValueError, match="Row 1 of gold has the label 'cow'"):
            apply_constraints(SETS, gold=[None, "cow", None])
        with pytest.raises(ValueError, match="gold has 2 labels for 3 rows"):
            apply_constraints(SETS, gold=[None, "cat"])

    def test_the_sets_are_not_changed_in_place(self):
        before = SETS.mask.copy()
        apply_constraints(SETS, gold=["emu", None, None], impossible=[None, {"cat"}, None])
        np.testing.assert_array_equal(SETS.mask, before)


class TestImpossible:
    @pytest.mark.parametrize(
        "impossible",
        [
            [{"cat"}, ["emu"], None],
            [{"cat"}, ("emu",), set()],
            np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]]),
            sp.csr_matrix(np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]])),
            pd.DataFrame({"emu": [0, 1, 0], "cat": [True, False, False]}),
            pd.DataFrame({"cat": [1, 0, 0], "emu": [0, 1, 0], "cow": [0, 0, 0]}),
            pd.Series([{"cat"}, {"emu"}, None]),
        ],
        ids=["sets", "tuples", "matrix", "sparse", "frame", "wide frame", "series"],
    )
    def test_every_form(self, impossible):
        assert apply_constraints(SETS, impossible=impossible).to_lists() == [
            ["dog"],
            ["cat", "dog"],
            ["emu"],
        ]

    def test_a_row_of_any_label(self):
        sets = as_candidates([{"cat", "dog"}, {"emu"}, None])
        found = apply_constraints(sets, impossible=[None, None, {"dog"}]).to_lists()
        assert found[2] == ["cat", "emu"]

    def test_errors_name_the_row(self):
        with pytest.raises(ValueError, match="Row 2 has no candidate left"):
            apply_constraints(SETS, impossible=[None, None, {"emu"}])
        with pytest.raises(ValueError, match="Row 0 has the known label 'cat', which is said"):
            apply_constraints(SETS, gold=["cat", None, None], impossible=[{"cat"}, None, None])
        with pytest.raises(ValueError, match="Row 1 of impossible is 'dog': write a set"):
            apply_constraints(SETS, impossible=[None, "dog", None])
        with pytest.raises(ValueError, match=r"impossible has the entry 2\.0 in row 1"):
            apply_constraints(SETS, impossible=np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]]))
        with pytest.raises(ValueError, match="impossible has 1 sets for 3 rows"):
            apply_constraints(SETS, impossible=[None])
        with pytest.raises(ValueError, match="Row 1 of impossible has the label 'cow', which y"):
            apply_constraints(SETS, impossible=[None, {"cow"}, None])
        with pytest.raises(ValueError, match="Row 2 of impossible has the label 'cow', which y"):
            apply_constraints(SETS, impossible=pd.DataFrame({"cat": [1, 0, 0], "cow": [0, 0, 1]}))

    def test_a_matrix_in_lists_is_not_read_as_sets(self):
        sets = as_candidates(np.ones((2, 3), dtype=bool))
        rows = [[1, 0, 0], [0, 0, 1]]
        with pytest.raises(ValueError, match=r"pass np.asarray\(impossible\)"):
            apply_constraints(sets, impossible=rows)
        assert apply_constraints(sets, impossible=np.asarray(rows)).to_lists() == [[1, 2], [0, 1]]


class TestCandidatePrior:
    def test_equal_weights_are_exactly_ones(self):
        for scale in (1.0, 3.0, 1e-300, 1e300, 0.0):
            prior = candidate_prior(np.full((3, 3), scale), SETS)
            np.testing.assert_array_equal(prior, SETS.mask.astype(float))

    def test_shares_within_the_candidates(self):
        prior = candidate_prior([[6, 2, 99], [0, 5, 5], [0, 0, 1]], SETS)
        # 90 % of the prior follow the weights, 10 % are spread evenly.
        np.testing.assert_allclose(prior[0], [1.0, (0.9 / 4 + 0.05) / (0.9 * 3 / 4 + 0.05), 0.0])
        assert prior[1, 1] == prior[1, 2] == 1.0
        assert 0 < prior[1, 0] < 0.1
        np.testing.assert_array_equal(prior[2], [0, 0, 1])

    def test_frames_are_read_by_name(self):
        frame = pd.DataFrame(
            {"dog": [2, 5, 0], "cat": [6, 0, 0], "cow": [1, 1, 1], "emu": [0, 0, 0]}
        )
        np.testing.assert_array_equal(
            candidate_prior(frame, SETS), candidate_prior([[6, 2, 0], [0, 5, 0], [0, 0, 0]], SETS)
        )

    def test_errors(self):
        with pytest.raises(ValueError, match=r"-1\.0 in row 1 for the label 'dog'"):
            candidate_prior([[1, 1, 1], [1, -1, 1], [1, 1, 1]], SETS)
        with pytest.raises(ValueError, match="nan in row 0 for the label 'emu'"):
            candidate_prior([[1, 1, np.nan], [1, 1, 1], [1, 1, 1]], SETS)
        with pytest.raises(ValueError, match=r"candidate_weight has shape \(3, 2\)"):
            candidate_prior(np.ones((3, 2)), SETS)
        frame = pd.DataFrame({"cat": [1, 1, 1]})
        with pytest.raises(ValueError, match="has no column for the labels 'dog', 'emu': give"):
            candidate_prior(frame, SETS)
        with pytest.raises(ValueError, match="must hold numbers"):
            candidate_prior([["a", "b", "c"]] * 3, SETS)


class TestWeightExponent:
    def votes(self, care, seed=0):
        """Votes among four candidates that name the truth with probability care."""
        rng = np.random.RandomState(seed)
        truth = rng.randint(4, size=400)
        counts = np.zeros((400, 4))
        for _ in range(3):
            named = np.where(rng.random_sample(400) < care, truth, rng.randint(4, size=400))
            counts[np.arange(400), named] += 1
        sets = CandidateSets(np.ones((400, 4), dtype=bool), np.arange(4))
        return candidate_prior(counts, sets), np.eye(4)[truth], sets.mask

    def test_it_grows_with_the_care_of_the_annotators(self):
        trusts = [estimate_weight_exponent(*self.votes(care)) for care in (0.0, 0.3, 0.6, 0.9)]
        assert trusts[0] < 0.1
        assert all(np.diff(trusts) > 0.1)

    def test_it_maximises_the_likelihood(self):
        prior, found, mask = self.votes(0.5)

        def likelihood(s):
            tempered = prior**s
            return np.log((tempered / tempered.sum(axis=1, keepdims=True) * found).sum(1)).mean()

        grid = np.linspace(0, 3, 301)
        best = grid[np.argmax([likelihood(s) for s in grid])]
        assert estimate_weight_exponent(prior, found, mask) == pytest.approx(best, abs=0.02)

    def test_weights_that_say_nothing(self):
        mask = np.ones((3, 2), dtype=bool)
        assert estimate_weight_exponent(np.ones((3, 2)), np.eye(2)[[0, 1, 1]], mask) == 1.0


def test_class_shares():
    labels, seen = np.array(["a", "b", "c"]), np.array([True, False, True])
    np.testing.assert_allclose(class_shares([2, 5, 6], labels, seen), [0.25, 0.75])
    np.testing.assert_allclose(class_shares({"c": 6, "a": 2, "b": 0}, labels, seen), [0.25, 0.75])
    with pytest.raises(ValueError, match="no frequency for the label 'b'"):
        class_shares({"a": 1, "c": 1}, labels, seen)
    with pytest.raises(ValueError, match=r"class_prior has shape \(2,\)"):
        class_shares([0.5, 0.5], labels, seen)
    for bad in ([0, 1, 0], [-1, 1, 1], [np.nan, 1, 1]):
        with pytest.raises(ValueError, match="not negative"):
            class_shares(bad, labels, seen)


def test_the_prior_of_a_part():
    prior = Prior(np.arange(6.0).reshape(3, 2), np.array([0.2, 0.8]), 1.0)
    part = prior.part(np.array([2, 0]), np.array([False, True]))
    np.testing.assert_array_equal(part.candidates, [[5.0], [1.0]])
    np.testing.assert_array_equal(part.classes, [1.0])
    np.testing.assert_allclose(prior.expected_mass(10), [[2.0, 8.0]])
    nothing = Prior().part(np.array([0]), np.array([True]))
    assert nothing.candidates is None
    assert nothing.expected_mass(10) is None
    unexpected = Prior(classes=np.array([0.0, 1.0])).part(np.array([0]), np.array([True, False]))
    np.testing.assert_array_equal(unexpected.classes, [1.0])


def test_rows_of_which_nothing_is_known():
    sets = as_candidates([{"b", "c"}, None, {"a"}])
    assert sets.to_lists() == [["b", "c"], ["a", "b", "c"], ["a"]]
    assert as_candidates(pd.Series([{"b", "c"}, None, {"a"}])).to_lists() == sets.to_lists()
    with pytest.raises(ValueError, match="Row 2 has an empty candidate set"):
        as_candidates([{"b"}, None, set()])
    with pytest.raises(ValueError, match="Row 2 of y has a missing label"):
        as_candidates([{"b"}, None, {None}])
    with pytest.raises(ValueError, match="Row 0 of y has a missing label"):
        as_candidates([{pd.NA, "a"}])
    with pytest.raises(ValueError, match="row 1 is 'a'"):
        as_candidates([{"b"}, "a", None])


def test_votes_are_candidates():
    voted = candidates_from_votes(["x", "x", "y"], ["a", "b", "b"])
    assert as_candidates(voted).to_lists() == [["a", "b"], ["b"]]


def test_votes_are_sets_and_weights():
    voted = candidates_from_votes(["x", "x", "x"], ["cat", "cat", "dog"])
    model = PartialLabelClassifier()
    sets, weights = votes_as_weights(model, voted)
    assert sets.to_lists() == [["cat", "dog"]]
    assert weights.tolist() == [[2.0, 1.0]]
    _, weights = votes_as_weights(model, voted, classes=np.array(["dog", "emu", "cat"]))
    assert weights.tolist() == [[1.0, 0.0, 2.0]]
    assert votes_as_weights(model, voted, [[1, 1]])[1] == [[1, 1]]
    assert votes_as_weights(model, [{"cat"}]) == ([{"cat"}], None)
    with pytest.warns(UserWarning, match="PLKNN takes no candidate_weight"):
        assert votes_as_weights(PLKNN(), voted)[1] is None


def test_the_name_under_which_weights_are_taken():
    assert weight_argument(PartialLabelClassifier()) == "candidate_weight"
    assert weight_argument(PLKNN()) is None
    pipeline = make_pipeline(StandardScaler(), PartialLabelClassifier())
    assert weight_argument(pipeline) == "partiallabelclassifier__candidate_weight"
    assert weight_argument(GridSearchCV(pipeline, {})) == "partiallabelclassifier__candidate_weight"
    assert weight_argument(GridSearchCV(PLKNN(), {})) is None
    with config_context(enable_metadata_routing=True):
        assert weight_argument(pipeline) == "candidate_weight"
