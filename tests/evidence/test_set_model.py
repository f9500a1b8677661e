"""The model of candidate sets against brute force and on data made from it."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from gmpll.datasets.corruption import random_candidates
from gmpll.evidence import relations, set_model
from gmpll.evidence.relations import (
    OtherSets,
    Relations,
    SampleModel,
    SetsLeftOut,
    set_numbers,
)
from gmpll.evidence.set_model import (
    Scores,
    SetModel,
    fit_outside,
    fit_set_model,
    held_out_log_likelihood,
    likeliest_tau,
    row_log_likelihood,
)
from gmpll.rounding import confidences_within

RIDGE = 0.1


class Rows:
    """Graph and regression of some rows, as a learner has them."""

    def __init__(self, X, mask):
        self.X, self.mask = X, mask
        kernel = rbf_kernel(X, gamma=1.0 / np.median(((X[:, None] - X[:50]) ** 2).sum(axis=2)))
        self.inverse = np.linalg.inv(kernel + RIDGE * np.eye(len(X)))
        self.sets = set_numbers(mask)
        graph = kneighbors_graph(X, 10)
        self.graph = sp.csr_array(graph.maximum(graph.T))
        self.regression = SetsLeftOut(self.inverse, self.sets, np.random.RandomState(0))
        self.without_own_set = OtherSets(self.graph, self.inverse, mask)

    def without_own_row(self, P):
        scores = P - self.inverse @ P / self.inverse.diagonal()[:, None]
        shares = set_model.label_shares(P.sum(axis=0), len(P))
        return Scores(self.graph @ P, scores, np.broadcast_to(shares, P.shape))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    return X, y, random_candidates(y, 0.9, 3, random_state=0)


@pytest.fixture
def some_scores():
    rng = np.random.RandomState(1)
    mask = rng.uniform(size=(40, 4)) < 0.5
    mask[np.arange(40), rng.randint(4, size=40)] = True
    shares = rng.dirichlet(np.ones(4), size=40)
    return Scores(rng.uniform(size=(40, 4)), rng.normal(size=(40, 4)), shares), mask


def test_leaving_sets_out_is_training_without_them(digits):
    X, _, mask = digits
    rows = Rows(X[:80], mask[:80])
    P = confidences_within(np.ones(rows.mask.shape), rows.mask)
    kernel = np.linalg.inv(rows.inverse) - RIDGE * np.eye(80)
    scores = rows.regression(P)
    for number in (0, rows.sets[-1]):
        own, others = rows.sets == number, rows.sets != number
        ridged = kernel[others][:, others] + RIDGE * np.eye(others.sum())
        fitted = np.linalg.solve(ridged, P[others])
        np.testing.assert_allclose(scores[own], kernel[own][:, others] @ fitted, atol=1e-8)


def test_large_groups_are_left_out_in_parts(monkeypatch):
    monkeypatch.setattr(relations, "MAX_GROUP", 4)
    inverse = np.linalg.inv(rbf_kernel(np.arange(10.0)[:, None]) + RIDGE * np.eye(10))
    regression = SetsLeftOut(inverse, np.zeros(10, dtype=np.intp), np.random.RandomState(0))
    assert regression(np.eye(10)[:, :2]).shape == (10, 2)
    assert regression(np.ones((10, 1))).min() > 0  # other parts speak of a row


def test_shares_and_edges_are_of_rows_with_other_sets():
    mask = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool)
    sets = set_numbers(mask)
    assert sets[0] == sets[1] != sets[2]
    graph = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    cut = relations.without_equal_sets(graph, sets)
    np.testing.assert_array_equal(cut.toarray() > 0, sets[:, None] != sets)
    P = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    shares = OtherSets(graph, np.eye(3), mask)(P).shares
    np.testing.assert_allclose(shares[0], np.array([0.5, 0.5, 1.5]) / 2.5)
    np.testing.assert_allclose(shares[2], np.array([1.5, 1.5, 0.5]) / 3.5)


def test_without_evidence_of_features_the_posterior_is_what_the_set_says(some_scores):
    scores, mask = some_scores
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    for tau in (0.0, 0.5, 1.0):
        silent = SetModel(tau, prior, np.zeros(2))
        wanted = confidences_within(np.tile(prior ** (1 - tau), (40, 1)), mask)
        np.testing.assert_allclose(silent.posterior(scores, mask), wanted, atol=1e-12)
        np.testing.assert_allclose(row_log_likelihood(silent, scores, mask), 0.0, atol=1e-12)


def test_joint_posterior_is_bayes_rule(some_scores):
    scores, mask = some_scores
    model = SetModel(0.3, np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.5, 2.0]), outside=0.2)
    joint = model.joint(scores, mask)
    np.testing.assert_allclose(joint.sum(axis=1), 1.0)
    np.testing.assert_allclose((scores.shares * model.ratios(scores)).sum(axis=1), 1.0)
    row = int(np.flatnonzero(mask.sum(axis=1) == 2)[0])
    prior, r, share = model.class_prior**0.7, model.ratios(scores)[row], scores.shares[row]
    inside, beyond = mask[row], ~mask[row]
    weight = np.where(inside, 0.8 * prior / prior[inside].sum(), 0.2 * share / share[beyond].sum())
    np.testing.assert_allclose(joint[row], weight * r / (weight @ r))
    outside = np.where(mask, 0, joint).sum(axis=1)
    assert (outside[mask.all(axis=1)] == 0).all()


def test_weights_maximise_the_likelihood(some_scores):
    scores, mask = some_scores
    start = SetModel(0.5, np.full(4, 0.25), np.full(2, 0.5))
    best = set_model.model_with_weights(start, scores, mask, outside=set_model.OUTSIDE_STARTS)
    top = row_log_likelihood(best, scores, mask).mean()
    assert top >= row_log_likelihood(start, scores, mask).mean()
    for change in ([0.05, 0.0], [0.0, 0.05]):
        moved = SetModel(0.5, best.class_prior, best.weights + change, best.outside)
        assert row_log_likelihood(moved, scores, mask).mean() <= top + 1e-6


@pytest.mark.parametrize("outside", [False, True])
def test_derivatives_of_the_likelihood_are_those_of_its_value(some_scores, outside):
    scores, mask = some_scores
    model = SetModel(0.5, np.array([0.4, 0.3, 0.2, 0.1]), np.full(2, 0.5), 0.02)
    likelihood = set_model._SetLikelihood(model, scores, mask)
    x = np.array([0.7, 1.3, np.log(0.05)])[: 3 if outside else 2]
    value, slope, curvature = likelihood(x)
    at_x = SetModel(0.5, model.class_prior, x[:2], 0.05 if outside else 0.02)
    assert value == pytest.approx(-row_log_likelihood(at_x, scores, mask).mean())
    for i, step in enumerate(1e-5 * np.eye(len(x))):
        after, before = likelihood(x + step), likelihood(x - step)
        assert (after[0] - before[0]) / 2e-5 == pytest.approx(slope[i], abs=1e-7)
        np.testing.assert_allclose((after[1] - before[1]) / 2e-5, curvature[i], atol=1e-7)


@pytest.mark.parametrize("outside", [False, True])
def test_newtons_method_finds_what_a_general_solver_finds(digits, outside):
    X, _, mask = digits
    rows = Rows(X, mask)
    P = confidences_within(rows.regression(mask / mask.sum(axis=1, keepdims=True)) + 1.0, mask)
    scores = rows.without_own_set(P)
    likelihood = set_model._SetLikelihood(SetModel(0.5, P.mean(axis=0), np.ones(2)), scores, mask)
    start = np.array([1.0, 1.0, np.log(0.1)])[: 3 if outside else 2]
    bounds = [(0, most) for most in set_model.MAX_WEIGHTS]
    bounds.append(tuple(np.log(set_model.OUTSIDE_BOUNDS)))
    found = minimize(
        lambda x: likelihood(x)[:2],
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds[: len(start)],
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    x, value = likelihood.maximised(start)
    assert value <= found.fun + 1e-4
    np.testing.assert_allclose(x[:2], found.x[:2], atol=0.05)


def test_labels_and_their_shares_are_found(digits):
    X, y, mask = digits
    rows = Rows(X, mask)
    model, P = fit_set_model(rows.without_own_set, mask, 1.0)
    assert (P.argmax(axis=1) == y).mean() > 0.95
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert not P[~mask].any()
    np.testing.assert_allclose(model.class_prior, np.bincount(y) / len(y), atol=0.03)


def held_out_likelihood(X, mask, tau):
    """Fit on three quarters of the rows and return the log-likelihoods of the others' sets."""
    train = np.arange(len(X)) % 4 > 0
    rows = Rows(X[train], mask[train])
    gamma = 1.0 / np.median(((rows.X[:, None] - rows.X[:50]) ** 2).sum(axis=2))
    near = sp.csr_array(sp.csr_array(kneighbors_graph(X, 10))[~train][:, train])
    to_rows = rbf_kernel(X[~train], rows.X, gamma=gamma) @ rows.inverse
    model, P = fit_set_model(rows.without_own_set, rows.mask, tau)
    shares = np.broadcast_to(set_model.label_shares(P.sum(axis=0), len(P)), mask[~train].shape)
    unseen = Scores(near @ P, to_rows @ P, shares)
    return held_out_log_likelihood(model, rows.without_own_row(P), rows.mask, unseen, mask[~train])


@pytest.mark.parametrize("seed", range(3))
def test_held_out_likelihood_tells_whether_features_say_anything(digits, seed):
    X, _, mask = digits
    assert held_out_likelihood(X, mask, 1.0).mean() > 0.5
    noise = np.random.RandomState(seed).normal(size=(len(X), 5))
    of_noise = held_out_likelihood(noise, mask, 1.0)
    assert of_noise.mean() < 2.0 * of_noise.std() / np.sqrt(len(of_noise))


def test_rows_with_equal_sets_do_not_confirm_each_other():
    """A rare label that only ever comes with one set must not get all its rows."""
    X, y = make_blobs([90, 90, 90], centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    mask = np.eye(4, dtype=bool)[y]
    far = (y == 0) & (X[:, 0] < np.median(X[y == 0, 0]))  # one word of label 0
    mask[np.ix_(far, [1, 3])] = True
    _, P = fit_set_model(Rows(X, mask).without_own_set, mask, 0.5)
    assert (P[far].argmax(axis=1) == 0).mean() > 0.9


@pytest.mark.parametrize("frequent", [False, True])
def test_held_out_likelihood_tells_how_sets_arose(digits, frequent):
    X, y, _ = digits
    rng = np.random.RandomState(0)
    kept = rng.uniform(size=len(y)) < 0.75**y  # a long tail
    X, y = X[kept], y[kept]
    rate = np.full(10, 0.35)
    if frequent:  # distractors as frequent as labels
        rate = np.minimum(np.bincount(y, minlength=10) / len(y) * 3.0, 0.9)
    mask = (rng.uniform(size=(len(y), 10)) < rate) | np.eye(10, dtype=bool)[y]
    of_tau = {tau: held_out_likelihood(X, mask, tau) for tau in (0.0, 1.0)}
    best, behind = likeliest_tau(of_tau)
    assert best == float(frequent)
    assert behind[best] == 0.0 < behind[1.0 - best]


def test_exponents_that_are_not_surely_behind_stay_open():
    rows = np.linspace(0.0, 1.0, 50)
    noise = np.where(np.arange(50) % 2, 1.0, -1.0)
    best, behind = likeliest_tau({0.0: rows, 0.5: rows + noise - 0.01, 1.0: rows - 1.0 + noise})
    assert best == 0.5
    assert behind[0.0] == 0.0 < behind[0.5] < 1.0 < behind[1.0]


def test_sets_that_lack_the_label_are_found(digits):
    X, y, mask = digits
    lacking = np.random.RandomState(0).uniform(size=len(y)) < 0.1
    lacking &= mask.sum(axis=1) > 1
    missing = mask.copy()
    missing[lacking, y[lacking]] = False
    for sets, share in ((missing, lacking.mean()), (mask, 0.0)):
        rows = Rows(X, sets)
        model, P = fit_set_model(rows.without_own_set, sets, 1.0)
        model, joint = fit_outside(rows.without_own_row, sets, model, P)
        assert model.outside == pytest.approx(share, abs=0.03)
        outside = np.where(sets, 0.0, joint).sum(axis=1)
        if share:
            assert roc_auc_score(lacking, outside) > 0.95
            assert (joint.argmax(axis=1) == y).mean() > 0.95


def test_a_sample_speaks_of_rows_without_those_of_their_set(digits):
    X, _, mask = digits
    mask = mask[:, :6].copy()  # few labels, so that sets are shared
    mask[~mask.any(axis=1), 0] = True
    sample, others = np.arange(120), np.arange(120, 150)
    kernel = rbf_kernel(X[:150], gamma=0.2)
    edges = sp.csr_array(kneighbors_graph(X[:150], 10).maximum(kneighbors_graph(X[:150], 10).T))
    inverse = np.linalg.inv(kernel[np.ix_(sample, sample)] + RIDGE * np.eye(len(sample)))
    related = Relations(edges[sample][:, sample], inverse, mask[sample])
    model, P = related.fit(0.5)
    found = SampleModel(related, 0.5).posterior(
        mask[others], edges[others][:, sample], kernel[np.ix_(others, sample)]
    )
    for row, posterior in zip(others, found, strict=True):
        speak = (mask[sample] != mask[row]).any(axis=1)
        ridged = kernel[np.ix_(sample[speak], sample[speak])] + RIDGE * np.eye(speak.sum())
        scores = kernel[row, sample[speak]] @ np.linalg.solve(ridged, P[speak])
        support = edges[[row]][:, sample[speak]] @ P[speak]
        shares = set_model.label_shares(P[speak].sum(axis=0), int(speak.sum()))[None]
        literal = model.posterior(Scores(support, scores[None], shares), mask[[row]])
        np.testing.assert_allclose(posterior, literal[0], atol=1e-8)


def test_the_exponent_is_chosen_by_held_out_sets():
    """All labels of a scene are listed: frequent ones are candidates nearly everywhere."""
    rng = np.random.RandomState(0)
    y = rng.choice(4, size=600, p=[0.55, 0.25, 0.15, 0.05])
    X = np.eye(4)[y] * 4 + rng.normal(size=(600, 4))
    mask = np.eye(4, dtype=bool)[y] | (rng.uniform(size=(600, 4)) < [0.8, 0.4, 0.2, 0.1])
    rows = Rows(X, mask)
    kernel = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 8)
    train, unseen = np.arange(400), np.arange(400, 600)
    inverse = np.linalg.inv(kernel[np.ix_(train, train)] + 0.1 * np.eye(len(train)))
    graph = sp.csr_array(rows.graph)
    related = Relations(graph[train][:, train], inverse, mask[train])
    likelihoods = related.held_out_likelihoods(
        set_model.TAUS, graph[unseen][:, train], kernel[np.ix_(unseen, train)], mask[unseen]
    )
    tau, _ = likeliest_tau(likelihoods)
    assert tau in set_model.TAUS
    found, P = related.fit(tau)
    assert found.tau == tau
    assert (P.argmax(axis=1) == y[train]).mean() > 0.85


def test_another_exponent_may_start_from_what_the_middle_one_found(digits):
    X, _, mask = digits
    rows = Rows(X[:200], mask[:200])
    related = Relations(sp.csr_array(rows.graph), rows.inverse, mask[:200])
    middle, cold = related.fit(0.5), related.fit(1.0)
    warm = related.fit(1.0, middle)
    assert warm[0].tau == 1.0
    assert (warm[1].argmax(axis=1) == cold[1].argmax(axis=1)).mean() > 0.97


def test_known_shares_are_kept(digits):
    X, _, mask = digits
    rows = Rows(X[:200], mask[:200])
    known = np.random.RandomState(0).dirichlet(np.ones(mask.shape[1]))
    free, _ = fit_set_model(rows.without_own_set, rows.mask, 0.25)
    model, P = fit_set_model(rows.without_own_set, rows.mask, 0.25, class_prior=known)
    np.testing.assert_array_equal(model.class_prior, known)
    assert np.abs(free.class_prior - known).sum() > 0.1
    beforehand = np.where(rows.mask, known**0.75, 0.0)
    ratios = model.ratios(rows.without_own_set(P))
    product = beforehand * ratios
    settled = product / product.sum(axis=1, keepdims=True)
    assert np.abs(settled - P).sum(axis=1).mean() < 0.01


class TestOnADevice:
    """Tensors, one problem and several at once, give what NumPy arrays give."""

    @pytest.fixture
    def folds(self, digits):
        """Three parts of the same size, which share sets, and rows beside each."""
        X, _, mask = digits
        mask = mask[:, :6].copy()  # few labels, so that sets are shared
        mask[~mask.any(axis=1), 0] = True
        kernel = rbf_kernel(X[:150], gamma=0.2)
        graph = sp.csr_array(Rows(X[:150], mask[:150]).graph)
        train = [np.arange(150)[np.arange(150) % 3 != fold] for fold in range(3)]
        held_out = [np.arange(150)[np.arange(150) % 3 == fold] for fold in range(3)]
        related, beside = [], []
        for rows, others in zip(train, held_out, strict=True):
            inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + RIDGE * np.eye(len(rows)))
            related.append(Relations(graph[rows][:, rows], inverse, mask[rows]))
            beside.append((graph[others][:, rows], kernel[np.ix_(others, rows)], mask[others]))
        return related, beside

    @staticmethod
    def tensors(torch, related):
        dense = [each.graph.toarray() for each in related]
        inverses, masks = [each.inverse for each in related], [each.mask for each in related]
        return Relations(*(torch.as_tensor(np.array(each)) for each in (dense, inverses, masks)))

    @pytest.mark.parametrize("largest", [4, 1500])
    def test_other_sets_speak_alike(self, monkeypatch, folds, largest):
        torch = pytest.importorskip("torch")
        monkeypatch.setattr(relations, "MAX_GROUP", largest)
        related, _ = folds
        together = self.tensors(torch, related).without_own_set
        P = np.random.RandomState(0).dirichlet(np.ones(6), size=(2, 3, 100))
        found = together(torch.as_tensor(P))
        for which in np.ndindex(2, 3):
            alone = related[which[1]].without_own_set(P[which])
            for name in ("support", "scores", "shares"):
                of_all = np.broadcast_to(getattr(found, name), (2, 3, 100, 6))[which]
                np.testing.assert_allclose(of_all, getattr(alone, name), atol=1e-8)

    def test_likelihoods_are_those_of_one_problem_after_the_other(self, folds):
        torch = pytest.importorskip("torch")
        related, beside = folds
        taus = set_model.TAUS
        dense = [np.array([each.toarray() for each, *_ in beside])]
        dense += [np.array(each) for each in list(zip(*beside, strict=True))[1:]]
        found = self.tensors(torch, related).held_out_likelihoods(
            taus, *(torch.as_tensor(each) for each in dense)
        )
        alone = [
            each.held_out_likelihoods(taus, *b) for each, b in zip(related, beside, strict=True)
        ]
        for tau in taus:
            wanted = np.concatenate([each[tau] for each in alone])
            np.testing.assert_allclose(found[tau], wanted, atol=1e-6)

    def test_a_sample_speaks_alike(self, folds):
        torch = pytest.importorskip("torch")
        related, ((edges, kernel, mask), *_) = folds
        wanted = SampleModel(related[0], 0.5).posterior(mask, edges, kernel)
        there = [torch.as_tensor(each) for each in (related[0].graph.toarray(), kernel, mask)]
        of_tensors = Relations(
            there[0], torch.as_tensor(related[0].inverse), torch.as_tensor(related[0].mask)
        )
        csr = torch.as_tensor(edges.toarray()).to_sparse_csr()
        found = SampleModel(of_tensors, 0.5).posterior(there[2], csr, there[1])
        np.testing.assert_allclose(found, wanted, atol=1e-8)
