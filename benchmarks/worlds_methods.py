"""The methods that the bench of worlds compares: of the library, networks, rules, vote models.

Every method takes a :class:`Problem` and a seed and returns the labels of the training rows and
those of the unseen rows, None where it has none. Networks are a linear map or one hidden layer on
z-scored features, trained by minibatches with Adam; the loss enters by its gradient in the logits.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, softmax
from sklearn.preprocessing import StandardScaler
from votes import dawid_skene, majority_vote

from gmpll import PartialLabelClassifier, candidates_from_votes
from gmpll.methods import METHODS
from gmpll.methods.baselines import MostFrequentCandidate, RandomCandidate

EPOCHS, LARGEST_BATCH, DECAY = 200, 128, 1e-3
#: Units of the hidden layer (None: a linear map) and learning rate.
NETWORKS = {"linear": (None, 0.01), "MLP": (128, 0.003)}
TRIVIAL = ("random-candidate", "most-frequent", "majority-vote")


@dataclass
class Problem:
    """Rows with candidate sets, their truth for scoring, and rows that are not fitted on."""

    X: np.ndarray
    mask: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    votes: tuple | None = None  # item, annotator, label of every vote
    named: bool = True  # whether methods may know who voted

    def voted(self):
        item, who, label = self.votes
        rows = range(len(self.X))
        return candidates_from_votes(item, label, who if self.named else None, all_items=rows)


def within(logits, side):
    """Softmax over the labels of a side; zero elsewhere and for an empty side."""
    logits = np.where(side, logits, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    powers = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    return powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)


class CC:
    """Minus the log-likelihood of the set (Feng et al., 2020)."""

    def __init__(self, mask):
        self.mask = mask

    def gradient(self, rows, logits):
        return softmax(logits, axis=1) - within(logits, self.mask[rows])


class PRODEN(CC):
    """Cross-entropy against weights of the row's previous visit (Lv et al., 2020)."""

    def __init__(self, mask):
        super().__init__(mask)
        self.weight = mask / mask.sum(axis=1, keepdims=True)

    def gradient(self, rows, logits):
        weight = self.weight[rows]
        self.weight[rows] = within(logits, self.mask[rows])
        return softmax(logits, axis=1) - weight


class LWS(CC):
    """Leveraged weighted sigmoid loss, both sides equally leveraged (Wen et al., 2021)."""

    def __init__(self, mask):
        super().__init__(mask)
        self.weight = np.full(mask.shape, 1 / mask.shape[1])

    def gradient(self, rows, logits):
        weight, inside = self.weight[rows], self.mask[rows]
        self.weight[rows] = within(logits, inside) + within(logits, ~inside)
        slope = expit(logits) * expit(-logits)
        return weight * slope * np.where(inside, -1.0, 1.0)


LOSSES = {"PRODEN": PRODEN, "CC": CC, "LWS": LWS}


def train_network(loss, Z, hidden, rate, rng):
    """Minimise a loss with Adam; return the function from z-scored features to logits."""
    n_labels = loss.mask.shape[1]
    widths = [Z.shape[1], *([hidden] if hidden else []), n_labels]
    weights = []
    for wide, narrow in pairwise(widths):
        weights += [rng.standard_normal((wide, narrow)) / np.sqrt(wide), np.zeros(narrow)]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]

    def layers(X):
        if not hidden:
            return [X, X @ weights[0] + weights[1]]
        active = np.maximum(X @ weights[0] + weights[1], 0.0)
        return [X, active, active @ weights[2] + weights[3]]

    step, batch = 0, int(np.clip(len(Z) // 8, 8, LARGEST_BATCH))
    for _ in range(EPOCHS):
        order = rng.permutation(len(Z))
        for start in range(0, len(Z), batch):
            rows = order[start : start + batch]
            *inputs, logits = layers(Z[rows])
            error = loss.gradient(rows, logits) / len(rows)
            slopes = []
            for number in reversed(range(len(inputs))):
                weight = weights[2 * number]
                slopes = [inputs[number].T @ error + DECAY * weight, error.sum(axis=0), *slopes]
                error = (error @ weight.T) * (inputs[number] > 0)
            step += 1
            for number, slope in enumerate(slopes):
                first[number] += 0.1 * (slope - first[number])
                second[number] += 0.001 * (slope**2 - second[number])
                moved = first[number] / (1 - 0.9**step)
                spread = np.sqrt(second[number] / (1 - 0.999**step))
                weights[number] -= rate * moved / (spread + 1e-8)
    return lambda X: layers(X)[-1]


def network(loss, kind):
    def method(problem, seed):
        hidden, rate = NETWORKS[kind]
        seen = problem.mask.any(axis=0)
        scaler = StandardScaler().fit(problem.X)
        Z, Z_test = (scaler.transform(X).clip(-10, 10) for X in (problem.X, problem.X_test))
        mask, rng = problem.mask[:, seen], np.random.default_rng(seed)
        logits = train_network(loss(mask), Z, hidden, rate, rng)
        labels = np.flatnonzero(seen)
        found = np.where(mask, logits(Z), -np.inf).argmax(axis=1)
        return labels[found], labels[logits(Z_test).argmax(axis=1)]

    return method


def estimator(make, *, votes=False, unseen=True):
    """Fit an estimator of the library on the sets or, where there are any, on the votes."""

    def method(problem, seed):
        y = problem.voted() if votes and problem.votes is not None else problem.mask
        model = make(random_state=seed).fit(problem.X, y)
        return model.labels_, model.predict(problem.X_test) if unseen else None

    return method


def vote_model(model):
    """Label the training rows by votes alone; votes without names are those of one annotator."""

    def method(problem, seed):
        item, who, label = problem.votes
        who = np.unique(who, return_inverse=True)[1] if problem.named else np.zeros_like(who)
        n, q = problem.mask.shape
        return model(item, who, label, n, q).argmax(axis=1), None

    return method


ALL_METHODS = {
    "default": estimator(PartialLabelClassifier, votes=True),
    **{name: estimator(make) for name, make in METHODS.items() if make != PartialLabelClassifier},
    **{f"{name}-{kind}": network(loss, kind) for name, loss in LOSSES.items() for kind in NETWORKS},
    "random-candidate": estimator(RandomCandidate, unseen=False),
    "most-frequent": estimator(MostFrequentCandidate, unseen=False),
}
#: These need votes.
VOTE_METHODS = {
    "default-sets": estimator(PartialLabelClassifier),
    "majority-vote": vote_model(majority_vote),
    "Dawid-Skene": vote_model(dawid_skene),
}
