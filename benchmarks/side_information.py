"""What knowledge beyond the candidate sets is worth: known labels, votes, priors.

    python benchmarks/side_information.py [--datasets lost,msrcv2,digits] [--folds 3] [--out CSV]

Lost and MSRCv2 need the data sets (environment variable GMPLL_DATA); digits are scikit-learn's,
the first 900 of them, with five wrong candidates each. Protocol: as many as wanted of the folds
of KFold(10, shuffle=True, random_state=0), PartialLabelClassifier(random_state=0). The knowledge
is made from the truth of the training rows, as an annotator would make it, with random_state=fold.
"training" is the accuracy of the labels found for those training rows whose label was not simply
given, "same rows, sets only" that of the candidate sets alone on the same rows, "unseen" the
accuracy on the held-out fold. "votes alone" takes the candidate with most votes, ties broken at
random.
The table at the end holds means over the folds: training (same rows, sets only) / unseen.
"""

import argparse
import csv
import itertools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold

from gmpll import PartialLabelClassifier
from gmpll.datasets import load_real_world, random_candidates

ANNOTATORS = 3
#: How often an annotator knows the truth; otherwise any candidate is named.
CARE = {"careful": 0.6, "careless": 0.3, "random": 0.0}
COLUMNS = (
    "dataset",
    "knowledge",
    "fold",
    "training",
    "same rows, sets only",
    "unseen",
    "votes alone",
    "weight_exponent",
)


def load(name):
    if name == "digits":
        X, truth = load_digits(return_X_y=True)
        return X[:900], random_candidates(truth[:900], p=1.0, r=5, random_state=0), truth[:900]
    data = load_real_world(name)
    return data.data, np.asarray(data.candidates, dtype=bool), np.asarray(data.target)


def votes(mask, truth, care, rng):
    """Return how many annotators voted for every candidate."""
    rows = np.arange(len(mask))
    counts = np.zeros(mask.shape)
    for _ in range(ANNOTATORS):
        guess = np.where(mask, rng.random_sample(mask.shape), -1.0).argmax(axis=1)
        counts[rows, np.where(rng.random_sample(len(mask)) < care, truth, guess)] += 1
    return counts


def wrong_votes(mask, truth, rng):
    """Return votes that never name the truth where there is another candidate."""
    others = mask.copy()
    others[np.arange(len(mask)), truth] = False
    others[~others.any(axis=1)] = mask[~others.any(axis=1)]
    return votes(others, truth, 0.0, rng)


def known(truth, share, rng):
    """Return the labels of some rows, -1 for the others."""
    return np.where(rng.random_sample(len(truth)) < share, truth, -1)


def one_wrong_candidate(mask, truth, rng):
    """Return one candidate of every row that is not the truth, if there is one."""
    draws = np.where(mask, rng.random_sample(mask.shape), -1.0)
    draws[np.arange(len(mask)), truth] = -1.0
    chosen = np.zeros(mask.shape, dtype=bool)
    chosen[np.arange(len(mask)), draws.argmax(axis=1)] = True
    return chosen & (draws > 0)


def cases(mask, truth, rng):
    """Yield name, candidate sets, parameters and what else is known."""
    yield "sets only", mask, {}, {}
    for share in (0.05, 0.2):
        yield f"known labels of {share:.0%}", mask, {}, {"gold": known(truth, share, rng)}
    yield (
        "one wrong candidate excluded",
        mask,
        {},
        {"impossible": one_wrong_candidate(mask, truth, rng)},
    )
    unlabelled = mask.copy()
    unlabelled[rng.random_sample(len(mask)) < 0.3] = True
    yield "30% without any information", unlabelled, {}, {}
    frequency = np.bincount(truth, minlength=mask.shape[1]) / len(truth)
    yield "class frequencies", mask, {"class_prior": frequency + 0.1 / len(truth)}, {}
    believed = {"hyperparameters": {"weight_exponent": 1.0}}
    for kind, care in CARE.items():
        counts = votes(mask, truth, care, rng)
        given = {"candidate_weight": counts}
        yield f"{kind} votes", mask, {}, given
        yield f"{kind} votes, weight_exponent=1", mask, believed, given
    yield "wrong votes", mask, {}, {"candidate_weight": wrong_votes(mask, truth, rng)}


def votes_alone(counts, truth, rng):
    return np.mean((counts + 0.5 * rng.random_sample(counts.shape)).argmax(axis=1) == truth)


def run_fold(name, fold, X, mask, truth, train, test):
    rng = np.random.RandomState(fold)
    baseline = None
    for knowledge, sets, parameters, given in cases(mask[train], truth[train], rng):
        model = PartialLabelClassifier(random_state=0, **parameters).fit(X[train], sets, **given)
        right, exponent = model.labels_ == truth[train], model.selected_["weight_exponent"]
        baseline = right if baseline is None else baseline
        asked = given["gold"] < 0 if "gold" in given else np.ones(len(train), dtype=bool)
        alone = ""
        if "candidate_weight" in given:
            alone = round(votes_alone(given["candidate_weight"], truth[train], rng), 4)
        yield (
            name,
            knowledge,
            fold,
            round(right[asked].mean(), 4),
            round(baseline[asked].mean(), 4),
            round(np.mean(model.predict(X[test]) == truth[test]), 4),
            alone,
            "" if exponent is None else round(exponent, 3),
        )


def summary(rows):
    """Return a Markdown table of means over the folds: training, the same by sets alone, unseen."""
    datasets = list(dict.fromkeys(row[0] for row in rows))
    lines = [
        "| known besides the sets | " + " | ".join(datasets) + " |",
        "|---" * (len(datasets) + 1) + "|",
    ]
    for knowledge in dict.fromkeys(row[1] for row in rows):
        cells = []
        for name in datasets:
            means = np.mean([row[3:6] for row in rows if row[:2] == (name, knowledge)], axis=0)
            cells.append("{:.3f} ({:.3f}) / {:.3f}".format(*means))
        lines.append(f"| {knowledge} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="lost,msrcv2,digits")
    parser.add_argument("--folds", type=int, default=3, help="how many of the ten folds to run")
    parser.add_argument("--out", help="also write the rows to this CSV file")
    options = parser.parse_args()
    rows = []
    for name in options.datasets.split(","):
        X, mask, truth = load(name)
        splits = KFold(10, shuffle=True, random_state=0).split(X)
        for fold, (train, test) in enumerate(itertools.islice(splits, options.folds)):
            for row in run_fold(name, fold, X, mask, truth, train, test):
                print(*row, sep="  ", flush=True)
                rows.append(row)
    print(summary(rows))
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
