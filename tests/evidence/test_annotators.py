import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from gmpll import candidates_from_votes
from gmpll.candidates import CandidateSets, VotedCandidates
from gmpll.evidence import annotators as module
from gmpll.evidence.annotators import AnnotatorModel, aggregate_votes
from gmpll.evidence.ridge import KernelRidge


def crowd(seed=0, n=300, q=3, accuracies=(0.9, 0.8, 0.8, 0.7, 0.6), per=3):
    """Draw labels and votes of annotators who err uniformly."""
    rng = np.random.default_rng(seed)
    y = rng.integers(q, size=n)
    items, labels, who = [], [], []
    for i in range(n):
        for w in rng.choice(len(accuracies), per, replace=False):
            right = rng.random() < accuracies[w]
            wrong = (y[i] + rng.integers(1, q)) % q
            items.append(i)
            labels.append(y[i] if right else wrong)
            who.append(w)
    return y, np.array(items), np.array(labels), np.array(who)


def found(model):
    return model.classes_[model.posterior_.argmax(axis=1)]


def literal_dawid_skene(items, labels, who, n, q, iterations):
    """Dawid and Skene (1979), line by line."""
    P = [[0.0] * q for _ in range(n)]
    for i, label in zip(items, labels, strict=True):
        P[i][label] += 1.0
    P = [[value / sum(row) for value in row] for row in P]
    for _ in range(iterations):
        prior = [sum(P[i][l] for i in range(n)) / n for l in range(q)]  # noqa: E741
        confusion = {}
        for w in set(who):
            table = [[1e-10] * q for _ in range(q)]
            for i, v, voter in zip(items, labels, who, strict=True):
                if voter == w:
                    for true in range(q):
                        table[true][v] += P[i][true]
            confusion[w] = [[value / sum(row) for value in row] for row in table]
        P = [list(prior) for _ in range(n)]
        for i, v, w in zip(items, labels, who, strict=True):
            for true in range(q):
                P[i][true] *= confusion[w][true][v]
        P = [[value / sum(row) for value in row] for row in P]
    return np.array(P)


def test_agrees_with_dawid_skene_where_votes_abound():
    leads = []
    for seed in range(5):
        y, items, labels, who = crowd(seed, per=5)
        expected = literal_dawid_skene(items, labels, who, len(y), 3, 30)
        model = AnnotatorModel().fit(candidates_from_votes(items, labels, who))
        assert (model.posterior_.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.95
        assert np.abs(model.posterior_ - expected).mean() < 0.03
        accuracy = model.annotators_.accuracy[np.argsort(model.annotators_.names)]
        np.testing.assert_allclose(accuracy, (0.9, 0.8, 0.8, 0.7, 0.6), atol=0.1)
        leads.append((found(model) == y).mean() - (expected.argmax(axis=1) == y).mean())
    assert np.mean(leads) > -0.005


def test_better_than_dawid_skene_where_annotators_have_few_votes():
    rng = np.random.default_rng(1)
    y, items, labels, who = crowd(1, n=200, q=10, accuracies=rng.uniform(0.4, 0.9, 80))
    expected = literal_dawid_skene(items, labels, who, len(y), 10, 20).argmax(axis=1)
    model = AnnotatorModel().fit(candidates_from_votes(items, labels, who))
    right = (found(model) == y).mean()
    counts = np.zeros((200, 10))
    np.add.at(counts, (items, labels), 1.0)
    assert right > (expected == y).mean() + 0.1
    assert right >= (counts.argmax(axis=1) == y).mean()


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("per", [3, 5, 20])
def test_two_labels_without_names_are_not_worse_than_the_majority(per, share):
    leads = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = (rng.random(400) > share).astype(int)
        care = np.where(rng.random((400, per)) < 1 / 3, 0.5, 0.85)  # a third votes by chance
        votes = np.where(rng.random((400, per)) < care, y[:, None], 1 - y[:, None])
        ones = votes.sum(axis=1)
        counts = np.stack([per - ones, ones], axis=1)
        by_majority = (counts + 1e-6 * rng.random(counts.shape)).argmax(axis=1)
        found_by_model = AnnotatorModel().fit(counts).posterior_.argmax(axis=1)
        leads.append((found_by_model == y).mean() - (by_majority == y).mean())
    assert np.mean(leads) > -0.005


@pytest.mark.parametrize("named", [True, False])
def test_hard_items_are_not_taken_for_rare_labels(named):
    leads, strengths = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(200) < 0.9, 0, rng.integers(1, 5, 200))
        easy = np.exp(-np.abs(rng.standard_normal(200)))  # on the others everybody guesses
        items, who = np.repeat(np.arange(200), 20), np.tile(np.arange(20), 200)
        looks = rng.random(4000) < 0.7 * easy[items]
        labels = np.where(looks, y[items], rng.integers(5, size=4000))
        voted = candidates_from_votes(items, labels, who if named else None, all_items=range(200))
        counts = voted.weights + 1e-6 * rng.random(voted.weights.shape)
        model = AnnotatorModel().fit(voted)
        leads.append((found(model) == y).mean() - (counts.argmax(axis=1) == y).mean())
        strengths.append(model.item_strength_)
    assert np.mean(leads) > -0.005
    assert np.mean(strengths) < 200  # votes on an item depend on each other


def test_votes_that_repeat_each_other_count_less():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    first = np.where(rng.random(300) < 0.6, y, rng.integers(3, size=300))
    items = np.repeat(np.arange(300), 10)
    copied = rng.random(3000) < 0.9
    labels = np.where(copied, first[items], rng.integers(3, size=3000))
    dependent = AnnotatorModel().fit(candidates_from_votes(items, labels))
    drawn = np.where(copied, y[items], rng.integers(3, size=3000))
    independent = AnnotatorModel().fit(candidates_from_votes(items, drawn))
    assert independent.item_strength_ > 50
    assert dependent.posterior_.max(axis=1).mean() <= independent.posterior_.max(axis=1).mean()


@pytest.mark.parametrize("named", [True, False])
def test_a_label_is_not_absorbed_by_one_that_looks_alike(named):
    leads = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(20, size=400)
        items = np.repeat(np.arange(400), 4)
        who = np.concatenate([rng.choice(40, 4, replace=False) for _ in range(400)])
        skill = rng.uniform(0.45, 0.95, (40, 1))
        right = skill * rng.choice([0.6, 1.0, 1.0], size=(40, 20))  # who mixes up what
        looked, partner = rng.random(1600) < right[who, y[items]], rng.random(1600) < 0.8
        wrong = np.where(partner, y[items] ^ 1, rng.integers(20, size=1600))
        voted = candidates_from_votes(
            items, np.where(looked, y[items], wrong), who if named else None, all_items=range(400)
        )
        counts = voted.weights + 1e-6 * rng.random(voted.weights.shape)
        leads.append((found(AnnotatorModel().fit(voted)) == y).mean())
        leads[-1] -= (counts.argmax(axis=1) == y).mean()
    assert np.mean(leads) > -0.01


def test_a_frequent_label_is_not_taken_for_a_habit():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.9, 0, rng.integers(1, 20, 600))
    items, who = np.repeat(np.arange(600), 3), rng.integers(40, size=1800)
    looks = np.where(np.arange(40) < 13, 0.0, 0.8)[who]  # a third of the annotators guess
    labels = np.where(rng.random(1800) < looks, y[items], rng.integers(20, size=1800))
    counts = np.zeros((600, 20))
    np.add.at(counts, (items, labels), 1.0)
    majority = ((counts + 1e-6 * rng.random(counts.shape)).argmax(axis=1) == y).mean()
    for names in (who, None):
        voted = candidates_from_votes(items, labels, names, all_items=range(600))
        assert (found(AnnotatorModel().fit(voted)) == y).mean() > majority + 0.05


def test_order_of_annotators_and_labels_does_not_matter():
    _, items, labels, who = crowd(2, n=120)
    first = AnnotatorModel().fit(candidates_from_votes(items, labels, who))
    renamed = np.array([2, 0, 1])
    order = np.random.default_rng(0).permutation(len(items))
    voted = candidates_from_votes(
        items[order], renamed[labels[order]], 10 - who[order], all_items=range(120)
    )
    second = AnnotatorModel().fit(voted)
    assert (renamed[found(first)] == found(second)).mean() > 0.97
    assert np.abs(second.posterior_[:, renamed] - first.posterior_).mean() < 0.02
    by_name = dict(zip(first.annotators_.names, first.annotators_.accuracy, strict=True))
    for name, accuracy in zip(second.annotators_.names, second.annotators_.accuracy, strict=True):
        assert accuracy == pytest.approx(by_name[10 - name], abs=0.05)


def test_a_useless_annotator_changes_little_and_a_hostile_one_counts_inversely():
    y, items, labels, who = crowd(3, q=2, accuracies=(0.85, 0.8, 0.8), per=3)
    alone = AnnotatorModel().fit(candidates_from_votes(items, labels, who))
    rng = np.random.default_rng(0)
    everyone = np.arange(300)
    for votes, low, high in (
        (rng.integers(2, size=300), 0.35, 0.65),
        (np.ones(300, dtype=int), 0.3, 0.7),
        (np.where(rng.random(300) < 0.9, 1 - y, y), 0.0, 0.2),
    ):
        voted = candidates_from_votes(
            np.append(items, everyone), np.append(labels, votes), np.append(who, [9] * 300)
        )
        model = AnnotatorModel().fit(voted)
        right = (found(model) == y).mean()
        assert right > (found(alone) == y).mean() - 0.02
        accuracy = model.annotators_.accuracy[model.annotators_.names == 9][0]
        assert low < accuracy < high
    assert right > (found(alone) == y).mean()  # who always lies helps


def features(y, separation, seed=0):
    rng = np.random.default_rng(seed)
    centers = separation * rng.standard_normal((y.max() + 1, 5))
    X = centers[y] + rng.standard_normal((len(y), 5))
    return KernelRidge([X], rng=np.random.RandomState(0))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("per", [1, 3])
def test_features_help_and_noise_fades(named, per):
    y, items, labels, who = crowd(4, per=per)
    voted = candidates_from_votes(items, labels, who if named else None)
    alone = AnnotatorModel().fit(voted)
    right = (found(alone) == y).mean()
    good = AnnotatorModel().fit(voted, features(y, 2.0).leave_one_out)
    assert (found(good) == y).mean() > right + 0.05
    assert good.feature_weight_[0] > 3
    assert good.feature_gain_ > 0.2
    noise = AnnotatorModel().fit(voted, features(y, 0.0).leave_one_out)
    assert (found(noise) == y).mean() > right - 0.02
    assert noise.feature_weight_[0] < 1.5
    assert noise.feature_gain_ < 0.05
    groups = np.random.default_rng(0).integers(3, size=len(y))
    misleading = AnnotatorModel().fit(voted, features(groups, 2.0).leave_one_out)
    assert (found(misleading) == y).mean() > right - 0.02


def test_several_learners_are_weighed():
    y, items, labels, who = crowd(5)
    learners = [features(y, 2.0).leave_one_out, features(y, 0.0).leave_one_out]
    model = AnnotatorModel().fit(candidates_from_votes(items, labels, who), learners)
    informative, noise = model.feature_weight_
    assert informative > 5 * noise


def test_features_name_a_label_that_nobody_voted_for():
    y, items, labels, who = crowd(6, n=300)
    labels[items == 7] = (y[7] + 1) % 3  # everyone is wrong
    model = AnnotatorModel().fit(
        candidates_from_votes(items, labels, who), features(y, 4.0).leave_one_out
    )
    assert model.posterior_[7].argmax() == y[7]
    assert model.outside_probability_[7] > 0.5
    assert np.median(model.outside_probability_) < 0.05


def test_one_vote_for_every_item_is_the_label():
    _, items, labels, who = crowd(7, per=1)
    for voted in (candidates_from_votes(items, labels, who), candidates_from_votes(items, labels)):
        model = AnnotatorModel().fit(voted)
        np.testing.assert_array_equal(found(model), labels)
        assert 0.7 < model.posterior_.max(axis=1).mean() < 0.95


def test_an_annotator_with_one_vote_is_the_average_annotator():
    _, items, labels, who = crowd(8)
    voted = candidates_from_votes(np.append(items, 0), np.append(labels, 2), np.append(who, 77))
    table = AnnotatorModel().fit(voted).annotators_
    number = table.names.tolist().index(77)
    assert table.votes[number] == 1
    assert table.accuracy.min() - 0.05 < table.accuracy[number] < table.accuracy.max()


def test_all_hostile_is_what_they_agree_on():
    y, items, labels, who = crowd(9, q=2, accuracies=(0.1, 0.15, 0.1, 0.2))
    model = AnnotatorModel().fit(candidates_from_votes(items, labels, who))
    assert (found(model) == 1 - y).mean() > 0.9
    assert (model.annotators_.accuracy > 0.5).all()


def test_items_without_votes_and_contradictory_votes():
    voted = candidates_from_votes(
        ["a", "a", "b", "b", "c"],
        ["x", "y", "x", "x", "y"],
        ["ann", "ann", "ann", "bob", "bob"],
        all_items=["c", "d", "a", "b"],
    )
    assert voted.candidates.to_lists() == [["y"], ["x", "y"], ["x", "y"], ["x"]]
    model = AnnotatorModel().fit(voted)
    assert model.posterior_.shape == (4, 2)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1.0)
    assert model.outside_probability_[1] == 0.0
    # Both labels have half of ann's vote: the item is left to the class prior.
    assert abs(model.posterior_[2, 0] - 0.5) < 0.15
    assert model.annotators_.votes.tolist() == [3, 2]


def test_fifty_votes_hundreds_of_labels_and_blocks(monkeypatch):
    rng = np.random.default_rng(10)
    y, items, labels, who = crowd(10, 150, 200, rng.uniform(0.3, 0.9, 60), 50)
    voted = candidates_from_votes(items, labels, who)
    whole = AnnotatorModel(n_samples=3).fit(voted)
    assert (found(whole) == y).all()
    monkeypatch.setattr(module, "BLOCK_CELLS", 20_000)
    parts = AnnotatorModel(n_samples=3).fit(voted)
    np.testing.assert_allclose(parts.posterior_, whole.posterior_, atol=1e-10)


def test_what_is_known_about_annotators():
    pd = pytest.importorskip("pandas")
    _, items, labels, who = crowd(11, accuracies=(0.95, 0.8, 0.5, 0.8))
    names = np.array(["ann", "bob", "cid", "dan"])[who]
    model = AnnotatorModel().fit(candidates_from_votes(items, labels, names))
    frame = model.annotators_.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["votes", "accuracy", "agreement", "confusion"]
    assert frame.loc["ann", "accuracy"] > frame.loc["bob", "accuracy"] > frame.loc["cid"].accuracy
    assert frame.loc["ann", "agreement"] > frame.loc["cid", "agreement"]
    assert frame.votes.sum() == len(items)
    matrix = model.annotators_.confusion("cid")
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert matrix.diagonal() @ model.class_prior_ == pytest.approx(
        frame.loc["cid", "accuracy"], abs=1e-3
    )
    assert "confusion" not in model.annotators_.to_frame(confusion=False)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.annotators_.confusion("cid"), matrix)
    with pytest.raises(ValueError, match="no annotator 'eve'"):
        model.annotators_.confusion("eve")


def test_votes_alone():
    y, items, labels, who = crowd(12)
    names = np.array(["ox", "cow", "emu"])
    result = aggregate_votes(items, names[labels], who)
    assert (result.labels == names[y]).mean() > 0.85
    assert result.probabilities.shape == (300, 3)
    assert len(result.annotators) == 5
    counted = aggregate_votes(items, names[labels])
    assert len(counted.annotators) == 1
    assert counted.annotators.confusion().shape == (3, 3)
    single = aggregate_votes(["a", "b"], ["x", "x"], ["ann", "ann"])
    assert single.labels.tolist() == ["x", "x"]


def test_counts_and_votes_without_names_are_the_same():
    _, items, labels, _ = crowd(13)
    voted = candidates_from_votes(items, labels)
    expected = AnnotatorModel().fit(voted).posterior_
    np.testing.assert_array_equal(AnnotatorModel().fit(voted.weights).posterior_, expected)
    old = VotedCandidates(CandidateSets(*voted.candidates), voted.items, voted.weights)
    np.testing.assert_array_equal(AnnotatorModel().fit(old).posterior_, expected)


def test_rows_that_are_picked_keep_their_votes():
    _, items, labels, who = crowd(14, n=40)
    voted = candidates_from_votes(items, labels, who)
    some = voted[np.array([5, 3, 5])]
    assert some.votes.shape == (3, voted.votes.shape[1])
    np.testing.assert_array_equal(some.votes.toarray(), voted.votes.toarray()[[5, 3, 5]])
    assert some.annotators is voted.annotators
    assert AnnotatorModel().fit(some).posterior_.shape == (3, 3)


@pytest.mark.parametrize("learner", [None, lambda P: P])
def test_no_votes_and_a_single_label(learner):
    nothing = AnnotatorModel().fit(np.zeros((3, 2)), learner)
    np.testing.assert_allclose(nothing.posterior_, 0.5, atol=1e-6)
    one = AnnotatorModel().fit(np.ones((3, 1)), learner)
    np.testing.assert_allclose(one.posterior_, 1.0)


@pytest.mark.parametrize(
    ("votes", "learner", "message"),
    [
        ([[1, -1]], None, "is -1.0 in row 0, column 1"),
        ([1, 2], None, "a row per item"),
        ([[1, 2], [2, 0]], lambda P: P[:1], r"have the shape \(1, 2\)"),
        ([[1, 2], [2, 0]], lambda P: P * np.nan, "item 0 are not finite"),
    ],
)
def test_what_is_wrong_is_said(votes, learner, message):
    with pytest.raises(ValueError, match=message):
        AnnotatorModel().fit(votes, learner)


def test_votes_for_unknown_items_are_refused():
    with pytest.raises(ValueError, match="Vote 1 is for the item 'z', which all_items lacks"):
        candidates_from_votes(["a", "z"], ["x", "y"], all_items=["a", "b"])
    with pytest.raises(ValueError, match="item 'a' twice"):
        candidates_from_votes(["a"], ["x"], all_items=["a", "a"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "votes_only", "joint"),
    [("labelme", 0.79, 0.870), ("sentiment-polarity", 0.915, 0.915), ("cifar10n", 0.915, 0.947)],
)
def test_real_crowds(name, votes_only, joint):
    path = Path(os.environ.get("GMPLL_DATA", "")) / "crowd" / f"{name}.npz"
    if not path.is_file():
        pytest.skip("the crowd data sets are not here: set GMPLL_DATA")
    data = np.load(path)
    n = len(data["y"])
    rows = np.arange(n) if n <= 3000 else np.random.default_rng(0).permutation(n)[:3000]
    table, y, X = data["votes"][rows], data["y"][rows], data["X"][rows].astype(float)
    items, who = np.nonzero(table >= 0)
    voted = candidates_from_votes(
        items, table[items, who], None if name == "cifar10n" else who, all_items=range(len(rows))
    )
    assert (found(AnnotatorModel().fit(voted)) == y).mean() >= votes_only
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    ridge = KernelRidge([Z, unit], rng=np.random.RandomState(0))
    model = AnnotatorModel().fit(voted, ridge.leave_one_out)
    assert (found(model) == y).mean() >= joint


def test_features_and_sets_are_another_start():
    """Anonymous votes of which one label gets many look as if all items had the other one."""
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.6).astype(int)
    items = np.repeat(np.arange(300), 5)
    right = rng.random(len(items)) < np.where(y[items] == 1, 0.8, 0.5)
    votes = candidates_from_votes(items, np.where(right, y[items], 1 - y[items]))
    learner = features(y, 2.0).leave_one_out
    trapped = AnnotatorModel().fit(votes, learner)
    freed = AnnotatorModel().fit(votes, learner, 0.2 + 0.6 * np.eye(2)[y])
    assert np.mean(found(trapped) == y) < 0.7
    assert np.mean(found(freed) == y) > 0.95
    assert freed.log_likelihood_ > trapped.log_likelihood_ + 0.05
    wrong = AnnotatorModel().fit(votes, learner, np.eye(2)[1 - y])
    assert wrong.log_likelihood_ >= trapped.log_likelihood_
