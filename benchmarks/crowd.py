"""Labels from annotators' votes: ours against majority vote, Dawid-Skene and other models.

    python benchmarks/crowd.py worlds [--labels 2,5] [--seeds 3]
    python benchmarks/crowd.py features [--seeds 3]

"worlds" draws crowds (good, careless, hostile and spamming annotators; skills that differ between
labels; few and many votes, annotators and labels) and compares methods that know votes alone.
"features" adds features that are strong, weak, noise, or misleading (they show another grouping of
the items). The constants of AnnotatorModel were chosen on these worlds. Real crowds are compared by
``gmpll reproduce --only crowd``.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler, normalize

from gmpll.candidates import candidates_from_votes
from gmpll.evidence.annotators import AnnotatorModel
from gmpll.evidence.ridge import KernelRidge


def majority_vote(item, who, label, n, q, *_):
    counts = np.zeros((n, q))
    np.add.at(counts, (item, label), 1.0)
    return counts + 1e-6 * np.random.default_rng(0).random(counts.shape)


def dawid_skene(item, who, label, n, q, n_annotators, max_iter=100):
    """Plain EM with confusion matrices of maximum likelihood."""
    P = majority_vote(item, who, label, n, q).round(0)
    P /= P.sum(axis=1, keepdims=True)
    for _ in range(max_iter):
        counts = np.full((n_annotators, q, q), 1e-10)
        np.add.at(counts, (who, label), P[item])
        counts /= counts.sum(axis=1, keepdims=True)
        logs = np.tile(np.log(P.mean(axis=0) + 1e-12), (n, 1))
        np.add.at(logs, item, np.log(counts[who, label]))
        new = softmax(logs, axis=1)
        if np.abs(new - P).max() < 1e-6:
            break
        P = new
    return P


def one_coin(item, who, label, n, q, n_annotators, max_iter=100):
    """EM with one accuracy for every annotator."""
    P = majority_vote(item, who, label, n, q).round(0)
    P /= P.sum(axis=1, keepdims=True)
    votes = np.bincount(who, minlength=n_annotators)
    for _ in range(max_iter):
        right = np.bincount(who, P[item, label], n_annotators)
        accuracy = np.clip(right / np.maximum(votes, 1), 1e-6, 1 - 1e-6)
        logs = np.zeros((n, q))
        np.add.at(logs, (item, label), np.log(accuracy * (q - 1) / (1 - accuracy))[who])
        new = softmax(logs, axis=1)
        if np.abs(new - P).max() < 1e-6:
            break
        P = new
    return P


def voted(item, who, label, n, q, named=True):
    """Votes in the library's form; the labels 0 ... q-1 that occur."""
    return candidates_from_votes(item, label, who if named else None, all_items=range(n))


def ours(item, who, label, n, q, n_annotators, named=True, out_of_sample=None, model=None):
    votes = voted(item, who, label, n, q, named)
    classes = votes.candidates.classes
    learners = None
    if out_of_sample is not None:
        learners = [lambda P, f=f: f(P) for f in out_of_sample]
    model = model or AnnotatorModel()
    model.fit(votes, learners)
    P = np.zeros((n, q))
    P[:, classes] = model.posterior_
    return P


VOTES_ONLY: dict[str, Callable] = {
    "majority": majority_vote,
    "Dawid-Skene": dawid_skene,
    "one-coin": one_coin,
    "counts": lambda *a: ours(*a, named=False),
    "ours": ours,
}

SIZES = {2: (600, 30), 5: (600, 30), 10: (800, 50), 50: (800, 50), 200: (1000, 60)}
KINDS = {
    "mixed": (0.6, 0.2, 0.1, 0.1),
    "good": (1, 0, 0, 0),
    "careless": (0.2, 0.8, 0, 0),
    "hostile": (0.6, 0, 0.4, 0),
    "spam": (0.5, 0, 0, 0.5),
    "sober": (0.8, 0.2, 0, 0),
}


def crowds(q):
    """Names and settings of the worlds with q labels."""
    n, w = SIZES[q]
    base = {"q": q, "n": n, "n_annotators": w}
    for per in (1, 2, 3, 5, 15, 50):
        if per * n <= 12_000 or q <= 5:
            yield f"mixed, {per} votes", {**base, "per": per, "n_annotators": max(w, per)}
    yield "good, 3 votes", {**base, "per": 3, "kind": "good"}
    yield "careless, 5 votes", {**base, "per": 5, "kind": "careless"}
    yield "hostile, 5 votes", {**base, "per": 5, "kind": "hostile"}
    yield "spam, 5 votes", {**base, "per": 5, "kind": "spam"}
    yield "many annotators, 3 votes", {**base, "per": 3, "n_annotators": n // 3, "active": False}
    yield "hard items, 3 votes", {**base, "per": 3, "kind": "sober", "difficulty": 1.0}
    yield "long tail, 4 votes", {**base, "per": 4, "tail": 1.0}
    yield "five annotators", {**base, "per": 5, "kind": "sober", "n_annotators": 5}


def draw_crowd(seed, n, q, n_annotators, per, kind="mixed", difficulty=0.0, tail=0.0, active=True):
    """Draw true labels and votes; return the labels and (item, annotator, vote)."""
    rng = np.random.default_rng(seed)
    share = (np.arange(q) + 1.0) ** -tail
    y = rng.choice(q, n, p=share / share.sum())
    wrong = 0.5 * rng.dirichlet(np.full(q, 0.3), q) + 0.5 / q
    np.fill_diagonal(wrong, 0.0)
    wrong /= wrong.sum(axis=1, keepdims=True)
    kinds = rng.choice(4, n_annotators, p=KINDS[kind])
    good, careless = rng.beta(16, 4, n_annotators), rng.beta(4, 6, n_annotators)
    hostile = rng.beta(2, 18, n_annotators)
    accuracy = np.choose(kinds, [good, 1 / q + (1 - 1 / q) * careless, hostile, hostile])
    by_label = 0.7 * rng.standard_normal((n_annotators, q)) * (kinds < 2)[:, None]
    habit, constant = rng.integers(q, size=n_annotators), rng.random(n_annotators) < 0.5
    activity = rng.pareto(1.0, n_annotators) + 0.2 if active else np.ones(n_annotators)
    hard = np.exp(-difficulty * np.abs(rng.standard_normal(n)))
    votes = []
    for i, label in enumerate(y):
        for w in rng.choice(n_annotators, per, replace=False, p=activity / activity.sum()):
            if kinds[w] == 3:
                vote = habit[w] if constant[w] else rng.integers(q)
            else:
                odds = accuracy[w] / (1 - accuracy[w]) * np.exp(by_label[w, label])
                right = odds / (1 + odds)
                if kinds[w] < 2:
                    right = 1 / q + (right - 1 / q) * hard[i]
                vote = label if rng.random() < right else rng.choice(q, p=wrong[label])
            votes.append((i, w, vote))
    return y, np.array(votes).T


def draw_features(seed, y, q, kind, d=20):
    rng = np.random.default_rng(10_000 + seed)
    separation = {"strong": 5.0, "weak": 1.5, "noise": 0.0, "misleading": 5.0}[kind]
    groups = rng.integers(q, size=len(y)) if kind == "misleading" else y
    centers = rng.standard_normal((q, d)) * separation / np.sqrt(2 * d)
    return centers[groups] + rng.standard_normal((len(y), d))


def ridge_of(X):
    Z = StandardScaler().fit_transform(np.asarray(X, dtype=float))
    views = [Z, normalize(Z)]
    return KernelRidge(views, width=1.0, ridge=0.1, rng=np.random.RandomState(0))


def accuracy(P, y):
    return float((P.argmax(axis=1) == y).mean())


def print_table(rows, names, reference):
    """Print means over seeds with spread, and distances to the best of the reference methods."""
    print(f"{'':34s}" + "".join(f"{name:>16s}" for name in names))
    means = []
    for title, values in rows:
        values = np.array(values)
        means.append(values.mean(axis=0))
        cells = zip(means[-1], values.std(axis=0), strict=True)
        print(f"{title:34s}" + "".join(f"{m:9.3f} ±{s:5.3f}" for m, s in cells))
    means = np.array(means)
    lead = means - means[:, reference].max(axis=1, keepdims=True)
    print(f"{'mean':34s}" + "".join(f"{v:16.3f}" for v in means.mean(axis=0)))
    print(
        f"{'mean lead on majority and DS':34s}" + "".join(f"{v:16.3f}" for v in lead.mean(axis=0))
    )
    print(
        f"{'worst lead on majority and DS':34s}" + "".join(f"{v:16.3f}" for v in lead.min(axis=0))
    )


def run_worlds(arguments):
    rows = []
    for q in arguments.labels:
        for title, setting in crowds(q):
            values = []
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
                y, (item, who, label) = draw_crowd(seed, **setting)
                given = (item, who, label, len(y), q, setting["n_annotators"])
                values.append([accuracy(f(*given), y) for f in VOTES_ONLY.values()])
            rows.append((f"{q} labels, {title}", values))
            print(rows[-1][0], np.mean(values, axis=0).round(3), flush=True)
    print_table(rows, list(VOTES_ONLY), [0, 1])


def run_features(arguments):
    rows, weights = [], []
    for q, per in ((2, 1), (2, 5), (5, 1), (5, 3), (10, 1), (10, 3), (50, 3)):
        n, n_annotators = SIZES[q]
        for kind in ("strong", "weak", "noise", "misleading"):
            values = []
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
                y, (item, who, label) = draw_crowd(seed, n, q, n_annotators, per)
                ridge = ridge_of(draw_features(seed, y, q, kind))
                given = (item, who, label, n, q, n_annotators)
                named, anonymous = AnnotatorModel(), AnnotatorModel()
                learners = [ridge.leave_one_out]
                found = [
                    *(f(*given) for f in VOTES_ONLY.values()),
                    ours(*given, named=False, out_of_sample=learners, model=anonymous),
                    ours(*given, out_of_sample=learners, model=named),
                ]
                values.append([accuracy(P, y) for P in found])
                weights.append(named.feature_weight_[0])
            rows.append((f"{q} labels, {per} votes, {kind}", values))
            means = np.mean(values, axis=0).round(3)
            print(rows[-1][0], means, "weight", np.round(weights[-1], 2), flush=True)
    print_table(rows, [*VOTES_ONLY, "counts, joint", "joint"], [0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("worlds", "features"))
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--labels", type=numbers, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    {"worlds": run_worlds, "features": run_features}[arguments.part](arguments)


if __name__ == "__main__":
    main()
