"""Labels from votes on invented crowds and on real ones, beside majority vote and Dawid-Skene.

    python benchmarks/votes.py [--seeds 3] [--half design|report]
    python benchmarks/votes.py features [--seeds 3]
    python benchmarks/votes.py real

Every world has a number of labels, a kind of crowd and votes per item; annotators (5 to 200), items
(200 to 3000) and label frequencies (even, one label with 90 %, geometric) are drawn, differently
for the two halves. The constants of AnnotatorModel were chosen on the half "design"; "report" is
for figures, and was looked at once before the last change of two of them. "named" and "counts" are
the model with and without the names of the annotators, "DS counts" is Dawid-Skene with one matrix
for all. "features" adds features that predict the label, nothing, or another grouping of the items;
a tenth of the items has no votes (majority vote draws their labels). "real" needs the data sets
(environment variable GMPLL_DATA; folder crowd): the first 3000 of ``default_rng(0).permutation(n)``
items, labelme all 1000; cifar10n does not say who voted, its columns stand for annotators where
names are needed.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler, normalize

from gmpll.candidates import candidates_from_votes
from gmpll.evidence.annotators import AnnotatorModel
from gmpll.evidence.ridge import KernelRidge

LABELS = (2, 5, 20, 100)
KINDS = ("good", "mixed", "careless", "hostile", "biased", "leaning", "hard")
VOTES = (1, 3, 5, 20, 50)
#: Crowds that look like real ones: annotators who mix up pairs of labels, each in their own way,
#: items on which many agree on the same wrong label, and hundreds of labels.
REAL_LABELS = (7, 20)
REAL_KINDS = ("pairs", "ambiguous")
REAL_VOTES = (2, 4, 9, 20)
MANY_LABELS = ((300, "mixed", 3), (300, "pairs", 5), (300, "careless", 9))
MAX_CELLS = 600_000  # votes times labels


def worlds(half):
    """Yield the settings of the worlds of a half."""
    rng = np.random.default_rng(100 + (half == "report"))
    for q in LABELS:
        for kind in KINDS:
            for per in VOTES:
                n_annotators = max(int(rng.choice([5, 20, 60, 200])), per)
                n = int(rng.choice([200, 600, 1500, 3000]))
                frequencies = str(rng.choice(["even", "even", "skewed", "geometric"]))
                while n * per * q > MAX_CELLS and n > 200:
                    n = {3000: 1500, 1500: 600, 600: 200}[n]
                if n * per * q <= 2 * MAX_CELLS:
                    yield (q, kind, per, n_annotators, n, frequencies)
    like_real = [(q, kind, per) for q in REAL_LABELS for kind in REAL_KINDS for per in REAL_VOTES]
    for q, kind, per in (*like_real, *MANY_LABELS):
        n_annotators, n = int(rng.choice([20, 44, 100])), int(rng.choice([400, 700, 1200]))
        yield (q, kind, per, n_annotators, n, str(rng.choice(["even", "geometric"])))


def draw(seed, q, kind, per, n_annotators, n, frequencies):
    """Draw true labels and votes; return the labels and (item, annotator, vote)."""
    rng = np.random.default_rng(seed)
    share = {
        "even": np.ones(q),
        "skewed": np.append(0.9, np.full(q - 1, 0.1 / (q - 1))),
        "geometric": max(0.5, 1 - 2 / q) ** np.arange(q) + 1e-3,
    }[frequencies]
    y = rng.choice(q, n, p=rng.permutation(share / share.sum()))
    matrices = draw_annotators(rng, q, kind, n_annotators)
    activity = rng.gamma(1.0, 1.0, n_annotators) + 0.1
    who = np.argsort(rng.exponential(size=(n, n_annotators)) / activity, axis=1)[:, :per].ravel()
    item = np.repeat(np.arange(n), per)
    P = matrices[who, y[item]]
    if kind == "hard":  # items differ: votes on hard ones are guesses
        easy = np.exp(-np.abs(rng.standard_normal(n)))[item][:, None]
        P = easy * P + (1 - easy) / q
    if kind == "ambiguous":  # and look like something else
        easy = np.exp(-0.7 * np.abs(rng.standard_normal(n)))[item][:, None]
        other = (y + rng.integers(1, q, size=n)) % q
        P = easy * P + (1 - easy) * (0.4 * np.eye(q)[other[item]] + 0.6 / q)
    return y, (item, who, (P.cumsum(axis=1) > rng.random((len(item), 1))).argmax(axis=1))


def draw_annotators(rng, q, kind, n_annotators):
    """Draw confusion matrices."""
    if kind in ("mixed", "hard", "pairs", "ambiguous"):
        skill = rng.uniform(0.45, 0.95, n_annotators)
        skill = 0.5 + 0.5 * np.maximum(skill - 0.1, 0.05) if q == 2 else skill
    else:
        skill = rng.beta(16, 4, n_annotators)
    right = np.tile(skill[:, None], q)
    off_diagonal = 1.0 - np.eye(q)
    wrong = np.tile(0.5 * rng.dirichlet(np.full(q, 0.3), q) + 0.5 / q, (n_annotators, 1, 1))
    wrong *= off_diagonal
    if kind == "pairs":  # four fifths of the mistakes are for the label that looks alike
        partner = np.arange(q) ^ 1
        partner[partner >= q] = 0
        wrong *= 0.2 / wrong.sum(axis=2, keepdims=True)
        wrong[:, np.arange(q), partner] += 0.8
        right = right * rng.choice([0.6, 1.0, 1.0], size=right.shape)  # who mixes up what
    if kind in ("biased", "leaning"):  # mistakes go to one label: everybody's own, or all to one
        favourite = rng.integers(q, size=n_annotators) * (kind == "biased")
        numbers = np.arange(n_annotators)
        wrong *= 0.3 / wrong.sum(axis=2, keepdims=True)
        wrong[numbers, :, favourite] += 0.7
        wrong *= off_diagonal
        right = np.clip(right - 0.15, 0.05, 1.0)
        right[numbers, favourite] = 0.97
    wrong /= np.maximum(wrong.sum(axis=2, keepdims=True), 1e-12)
    matrices = right[:, :, None] * np.eye(q) + (1 - right)[:, :, None] * wrong
    chance = rng.random(n_annotators)
    if kind == "careless":
        matrices[chance < 1 / 3] = 1 / q
    if kind == "hostile":
        matrices[chance < 0.2] = 0.1 * np.eye(q) + 0.9 * off_diagonal / (q - 1)
    return matrices


def majority_vote(item, who, label, n, q):
    counts = np.zeros((n, q))
    np.add.at(counts, (item, label), 1.0)
    return counts + 1e-6 * np.random.default_rng(0).random(counts.shape)


def dawid_skene(item, who, label, n, q, max_iter=100):
    """Plain expectation maximization with confusion matrices of maximum likelihood."""
    P = majority_vote(item, who, label, n, q).round(0)
    P[P.sum(axis=1) == 0] = 1.0
    P /= P.sum(axis=1, keepdims=True)
    columns, pair = np.unique(who * q + label, return_inverse=True)
    votes = sp.csr_array((np.ones(len(item)), (pair, item)), shape=(len(columns), n))
    for _ in range(max_iter):
        counts = votes @ P + 1e-10
        total = np.zeros((who.max() + 1, q))
        np.add.at(total, columns // q, counts)
        log_prior = np.log(P.mean(axis=0) + 1e-12)
        before, P = P, softmax(log_prior + votes.T @ np.log(counts / total[columns // q]), axis=1)
        if np.abs(P - before).max() < 1e-4:
            break
    return P


def ours(item, who, label, n, q, out_of_sample=None):
    votes = candidates_from_votes(item, label, who, all_items=range(n))
    P = np.zeros((n, q))
    P[:, votes.candidates.classes] = AnnotatorModel().fit(votes, out_of_sample).posterior_
    return P


def methods(item, who, label, n, q, out_of_sample=None):
    """Yield probabilities by majority vote, Dawid-Skene and the model, with names and without."""
    yield majority_vote(item, who, label, n, q)
    yield dawid_skene(item, who, label, n, q)
    yield dawid_skene(item, np.zeros_like(who), label, n, q)
    yield ours(item, who, label, n, q, out_of_sample)
    yield ours(item, None, label, n, q, out_of_sample)


COLUMNS = ("majority", "DS", "DS counts", "named", "counts")


def print_row(title, values):
    """Print means over seeds with the spread, in percent; return the means."""
    mean, spread = 100 * np.mean(values, axis=0), 100 * np.std(values, axis=0)
    cells = "".join(f"{m:8.1f} ±{s:4.1f}" for m, s in zip(mean, spread, strict=True))
    print(f"{title:44s}{cells}", flush=True)
    return mean


def print_summary(rows, single):
    """Print by how much the model leads; with single votes Dawid-Skene depends on its start."""
    rows, single = np.array(rows), np.array(single)
    print(f"{'mean':44s}" + "".join(f"{v:14.1f}" for v in rows.mean(axis=0)))
    for found, other, kept in (
        ("named", "majority", slice(None)),
        ("named", "DS", ~single),
        ("counts", "majority", slice(None)),
        ("counts", "DS counts", ~single),
    ):
        lead = (rows[:, COLUMNS.index(found)] - rows[:, COLUMNS.index(other)])[kept]
        print(
            f"{found:6s} over {other:9s}: mean {lead.mean():+.2f}, worst {lead.min():+.1f}, "
            f"below -0.5 in {(lead < -0.5).sum()} of {len(lead)} worlds"
        )


def run_worlds(half, seeds):
    print(f"{half:44s}" + "".join(f"{name:>14s}" for name in COLUMNS))
    rows, single = [], []
    for number, setting in enumerate(worlds(half)):
        q, kind, per, n_annotators, n, frequencies = setting
        values = []
        for seed in range(seeds):
            y, votes = draw(1000 * number + seed + 500_000 * (half == "report"), *setting)
            values.append([np.mean(P.argmax(axis=1) == y) for P in methods(*votes, n, q)])
        title = f"{q} labels, {kind}, {per} of {n_annotators} vote, {n} {frequencies}"
        rows.append(print_row(title, values))
        single.append(per == 1)
    print_summary(rows, single)


def draw_features(seed, y, q, kind):
    rng = np.random.default_rng(10_000 + seed)
    groups = y if kind == "good" else rng.integers(q, size=len(y))
    centers = (kind != "noise") * rng.standard_normal((q, 20)) / np.sqrt(3)
    return 2.0 * centers[groups] + rng.standard_normal((len(y), 20))


def ridge_of(X):
    Z = StandardScaler().fit_transform(np.asarray(X, dtype=float))
    return KernelRidge([Z, normalize(Z)], rng=np.random.RandomState(0))


def run_features(seeds):
    print(f"{'with features':44s}" + "".join(f"{name:>14s}" for name in COLUMNS))
    rows, single = {"good": [], "noise": [], "misleading": []}, []
    for q, kind, per in ((2, "mixed", 3), (2, "careless", 1), (5, "biased", 3), (20, "hostile", 5)):
        single.append(per == 1)
        for features, found in rows.items():
            values = []
            for seed in range(seeds):
                y, votes = draw(900_000 + seed, q, kind, per, 30, 600, "even")
                voted_on = votes[0] >= 60
                votes = [part[voted_on] for part in votes]
                learner = ridge_of(draw_features(seed, y, q, features)).leave_one_out
                values.append(
                    [np.mean(P.argmax(axis=1) == y) for P in methods(*votes, 600, q, learner)]
                )
            title = f"{q} labels, {kind}, {per} votes, features: {features}"
            found.append(print_row(title, values))
    for features, found in rows.items():
        print(f"\nfeatures: {features}")
        print_summary(found, single)


def run_real():
    """Print shares of right labels with their standard errors over items."""
    print(f"{'real':44s}" + "".join(f"{name:>14s}" for name in COLUMNS))
    for name in ("labelme", "sentiment-polarity", "cifar10n"):
        data = np.load(Path(os.environ["GMPLL_DATA"]) / "crowd" / f"{name}.npz")
        n, q = data["counts"].shape
        rows = np.arange(n) if n <= 3000 else np.random.default_rng(0).permutation(n)[:3000]
        table, y = data["votes"][rows], data["y"][rows]
        item, who = np.nonzero(table >= 0)
        label = table[item, who]
        learner = ridge_of(data["X"][rows]).leave_one_out
        for title, features in (("votes alone", None), ("votes and features", learner)):
            found = methods(item, who, label, len(rows), q, features)
            right = np.array([P.argmax(axis=1) == y for P in found]).astype(float).T
            errors = right.mean(axis=0) + right.std(axis=0)[None, :] / np.sqrt(len(y)) * [[1], [-1]]
            print_row(f"{name}, {title}", errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("votes", "features", "real"), default="votes")
    parser.add_argument("--half", choices=("design", "report"), default="report")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.part == "votes":
        run_worlds(arguments.half, arguments.seeds)
    elif arguments.part == "features":
        run_features(arguments.seeds)
    else:
        run_real()


if __name__ == "__main__":
    main()
