"""How many labels are said to be wrong, and how many are: the estimate of the resolved report.

    python benchmarks/wrong_labels.py [--seeds 3] [--problems tickets]

Invented problems, resolved by gmpll.disambiguate with its defaults; the truth is used for counting
alone. "votes" are four columns of annotators who are right in 85, 75, 65 and 50 % of their cells
and leave a tenth of them empty; "sets" have the truth and two wrong labels at random in 80 % of
the rows. "missing" replaces the truth by a wrong label in 10 % of the rows: nobody voted for it.
Tickets are texts with two to four telling words out of ten for each of six topics, in which one
word in four is of another topic; digits are the first 500 of scikit-learn; clouds are five normal
distributions that overlap, 400 rows in six dimensions; "noise" has features that say nothing.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import gmpll
from gmpll.datasets import random_candidates

TOPICS = {
    "billing": "invoice charged refund payment card price twice discount receipt bank",
    "delivery": "parcel courier late tracking shipped address box lost arrived depot",
    "account": "password login email locked username reset profile sign verify code",
    "quality": "broken scratched faulty seam torn loose noisy cracked defect cheap",
    "advice": "recommend size compare which better suits colour fit choose model",
    "praise": "great thanks lovely happy excellent friendly fast perfect love cheers",
}
FILLER = ("please", "could", "you", "the", "my", "order", "with", "about", "again", "still", "shop")
CARE = {"anna": 0.85, "bjoern": 0.75, "carla": 0.65, "deniz": 0.5}


def tickets(rng, n=400):
    """Return texts and their topics."""
    y = rng.integers(len(TOPICS), size=n)
    words = [text.split() for text in TOPICS.values()]
    texts = []
    for label in y:
        topics = np.where(rng.random(rng.integers(2, 5)) < 0.75, label, rng.integers(len(words)))
        telling = [rng.choice(words[topic]) for topic in topics]
        texts.append(" ".join(rng.permutation([*telling, *rng.choice(FILLER, 6)])))
    return pd.DataFrame({"text": texts}), np.array(list(TOPICS))[y]


def digits(rng, n=500):
    """Return pixels and digits."""
    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(X))[:n]
    return _frame(X[rows]), np.array([f"d{digit}" for digit in y[rows]])


def clouds(rng, n=400):
    """Return points of five clouds that overlap."""
    y = rng.integers(5, size=n)
    X = 1.2 * rng.standard_normal((5, 6))[y] + rng.standard_normal((n, 6))
    return _frame(X), np.array([f"c{label}" for label in y])


def noise(rng, n=400):
    """Return points that say nothing about their labels."""
    return _frame(rng.standard_normal((n, 4))), np.array([f"c{k}" for k in rng.integers(4, size=n)])


def _frame(X):
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])


def with_votes(frame, truth, lacks, rng):
    """Add a column for each annotator; nobody gives the right label where it is lacking."""
    names = np.unique(truth)
    for who, care in CARE.items():
        right = (rng.random(len(truth)) < care) & ~lacks
        cells = [
            t if ok else rng.choice(names[names != t]) for t, ok in zip(truth, right, strict=True)
        ]
        frame = frame.assign(**{who: np.where(rng.random(len(truth)) < 0.1, "", cells)})
    nobody = (frame[list(CARE)] == "").all(axis=1)
    frame.loc[nobody, "anna"] = truth[nobody]
    return frame


def with_sets(frame, truth, lacks, rng):
    """Add a column of candidates; the right one is another where it is lacking."""
    names, codes = np.unique(truth, return_inverse=True)
    mask = random_candidates(codes, p=0.8, r=2, random_state=int(rng.integers(1000)))
    mask[lacks, codes[lacks]] = False
    for row in np.flatnonzero(~mask.any(axis=1)):
        mask[row, rng.choice(np.flatnonzero(np.arange(len(names)) != codes[row]))] = True
    return frame.assign(candidates=["|".join(names[row]) for row in mask])


PROBLEMS = {
    f"{scene.__name__} {kind}{' missing' * missing}": (scene, add, missing)
    for scene in (tickets, digits, clouds, noise)
    for kind, add in (("votes", with_votes), ("sets", with_sets))
    for missing in (False, True)
    if scene is not noise or (kind == "votes" and not missing)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", default="", help="a part of the names of those to run")
    given = parser.parse_args()
    print(f"{'problem':24s}  rows   said   true  ratio")
    for name, (scene, add, missing) in PROBLEMS.items():
        if given.problems not in name:
            continue
        totals = np.zeros(3)
        for seed in range(given.seeds):
            rng = np.random.default_rng(seed)
            frame, truth = scene(rng)
            lacks = rng.random(len(truth)) < (0.1 if missing else 0.0)
            result = gmpll.disambiguate(add(frame, truth, lacks, rng))
            wrong = int((result["label"] != truth).sum())
            totals += (len(truth), result.expected_wrong, wrong)
        rows, said, wrong = totals
        print(f"{name:24s} {rows:5.0f} {said:6.1f} {wrong:6.0f} {said / wrong:6.2f}", flush=True)


if __name__ == "__main__":
    main()
