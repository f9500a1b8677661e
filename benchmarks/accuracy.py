"""Ten-fold accuracy of gmpll and GM-PLL on the real-world sets.

    python benchmarks/accuracy.py [--datasets lost,msrcv2] [--out FILE.csv]

Needs the data sets (environment variable GMPLL_DATA). Protocol: KFold(10, shuffle=True,
random_state=0) over all rows, no row or label dropped, features scaled with training statistics
inside the estimator, ties broken at random (random_state=0). "unseen" is the accuracy on the
held-out fold, "training" that of the labels found for the training rows. Where the labels are
ordered (FG-NET: years), "off by" is the mean absolute error of the label on the same rows.
"""

import argparse
import csv
import itertools
import sys
import time

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.datasets import is_available, load_real_world
from gmpll.methods.baselines import RandomCandidate
from gmpll.metrics import mean_absolute_label_error

SETTINGS = {
    "random candidate": RandomCandidate(random_state=0),
    "GMPLL()": GMPLL(random_state=0),
    "GMPLL(prediction='joint')": GMPLL(prediction="joint", random_state=0),
    "GMPLL(beta=2, balance=0.5)": GMPLL(beta=2.0, balance=0.5, random_state=0),
    "GMPLL('local', balance=0.5)": GMPLL("local", balance=0.5, random_state=0),
    "PartialLabelClassifier()": PartialLabelClassifier(random_state=0),
}
COLUMNS = ("unseen", "training", "fit_seconds", "unseen_mae", "training_mae")
DATASETS = ("lost", "msrcv2", "birdsong", "fg-net")


def ten_folds(estimator, data, folds=10):
    scores = []
    splits = KFold(10, shuffle=True, random_state=0).split(data.data)
    for train, test in itertools.islice(splits, folds):
        start = time.perf_counter()
        model = clone(estimator).fit(data.data[train], data.candidates[train])
        fitted = time.perf_counter() - start
        found = [(model.predict(data.data[test]), test), (model.labels_, train)]
        right = [(labels == data.target[rows]).mean() for labels, rows in found]
        scores.append((*right, fitted, *(distance(data, *labels) for labels in found)))
    return np.array(scores)


def distance(data, labels, rows):
    if not data.ordered:
        return np.nan
    values = data.target_names
    return mean_absolute_label_error(values[data.target[rows]], values[labels])


def off_by(mean, std):
    return f"   off by {mean[3]:.2f} ± {std[3]:.2f} / {mean[4]:.2f} ± {std[4]:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--only", choices=list(SETTINGS), help="run one setting")
    parser.add_argument("--out", help="also write the scores of every fold to this CSV file")
    options = parser.parse_args()
    rows = []
    for name in options.datasets.split(","):
        if not is_available(name):
            print(f"{name}: not here; set GMPLL_DATA to the folder that holds it", file=sys.stderr)
            continue
        data = load_real_world(name)
        for setting in [options.only] if options.only else SETTINGS:
            estimator = SETTINGS[setting]
            scores = ten_folds(estimator, data)
            mean, std = scores.mean(axis=0), scores.std(axis=0)
            print(
                f"{name:9s} {setting:28s} unseen {mean[0]:.3f} ± {std[0]:.3f}   "
                f"training {mean[1]:.3f} ± {std[1]:.3f}   {mean[2]:6.2f} s a fit"
                f"{off_by(mean, std) if data.ordered else ''}",
                flush=True,
            )
            rows += [(name, setting, fold, *score) for fold, score in enumerate(scores)]
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["dataset", "setting", "fold", *COLUMNS])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
