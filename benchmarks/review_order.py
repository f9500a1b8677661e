"""What a reviewer gains by answering in the order that ``gmpll review`` proposes.

    python benchmarks/review_order.py [--share 0.05] [--seeds 3] [--datasets digits-r3,lost]

A simulated reviewer, who knows the truth, answers 5 % of the rows; the rows are matched again with
the answers as known labels. Compared are the proposed order, doubt alone, and rows drawn at random
(among all rows, and among the ambiguous ones only). Accuracy is that of the labels of all rows
after matching again, answered rows included; "wrong" is the share of the answered rows whose label
was wrong before. A seed draws the candidates (digits), breaks ties and draws the random rows. The
truth is used to answer and to score, never to choose what to ask. Lost and MSRCv2 are read from the
folder that GMPLL_DATA names and are left out where it is not set.
"""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

from gmpll import PartialLabelClassifier
from gmpll.apps.review.ordering import Similarity, doubt, propose_order
from gmpll.datasets import is_available, load_real_world, random_candidates

#: Digits: share of rows with wrong candidates (p) and how many wrong ones these have (r).
DIGITS = {"digits-r3": (0.8, 3), "digits-r7": (1.0, 7)}
REAL = ("lost", "msrcv2")


def problem(name, seed):
    if name in DIGITS:
        p, r = DIGITS[name]
        X, y = load_digits(return_X_y=True)
        return X, random_candidates(y, p=p, r=r, random_state=seed), y
    data = load_real_world(name)
    return data.data, data.candidates, data.target


def match(X, mask, seed):
    model = PartialLabelClassifier(random_state=seed).fit(X, mask)
    return np.searchsorted(model.classes_, model.labels_), model.label_support_


def accuracy_with_answers(X, mask, y, rows, seed):
    answered = mask.copy()
    answered[rows] = False
    answered[rows, y[rows]] = True
    labels, _ = match(X, answered, seed)
    return (labels == y).mean()


def orders(X, mask, labels, support, seed):
    ambiguous = mask.sum(axis=1) > 1
    doubts = doubt(support, labels)
    rng = np.random.RandomState(seed)
    return {
        "proposed": propose_order(doubts, ambiguous, Similarity(X, labels=labels)),
        "doubt alone": np.argsort(-np.where(ambiguous, doubts, -1.0), kind="stable"),
        "random, ambiguous rows": rng.permutation(np.flatnonzero(ambiguous)),
        "random, all rows": rng.permutation(len(X)),
    }


def simulate(name, share, seeds):
    before, gains = [], {}
    for seed in range(seeds):
        X, mask, y = problem(name, seed)
        labels, support = match(X, mask, seed)
        before.append((labels == y).mean())
        for order, rows in orders(X, mask, labels, support, seed).items():
            rows = rows[: round(share * len(y))]
            after = accuracy_with_answers(X, mask, y, rows, seed)
            wrong = (labels[rows] != y[rows]).mean()
            gains.setdefault(order, []).append((after, after - before[-1], wrong))
    return np.array(before), {order: np.array(values) for order, values in gains.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.05, help="share of the rows answered")
    parser.add_argument("--seeds", type=int, default=3)
    here = [name for name in REAL if os.environ.get("GMPLL_DATA") and is_available(name)]
    parser.add_argument("--datasets", default=",".join([*DIGITS, *here]))
    options = parser.parse_args()
    for name in options.datasets.split(","):
        before, gains = simulate(name, options.share, options.seeds)
        print(f"{name}: {before.mean():.4f} ± {before.std():.4f} before, {options.seeds} seeds")
        for order, values in gains.items():
            (after, gain, wrong), (spread, gain_spread, _) = values.mean(axis=0), values.std(axis=0)
            print(
                f"  {order:23s} {after:.4f} ± {spread:.4f}   gain {100 * gain:5.2f} ± "
                f"{100 * gain_spread:.2f} points   wrong before {wrong:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
