"""What a kernel ridge regression on the confidences of any method is worth.

    python benchmarks/learner.py [--datasets lost,msrcv2] [--methods PL-KNN] [--folds 2] [--out CSV]

Needs the data sets (environment variable GMPLL_DATA). Every method at its defaults, beside
PartialLabelClassifier(method) without stacking and forest, which chooses views, regression and
feedback by candidate lift.
Protocol: KFold(10, shuffle=True, random_state=0), the first folds of it. "unseen" is the accuracy
on the held-out fold, "training" that of the labels found for the training rows.
"""

import argparse
import csv
import itertools

import numpy as np
from sklearn.model_selection import KFold

from gmpll import PartialLabelClassifier
from gmpll.datasets import load_real_world
from gmpll.methods import METHODS

#: The regression, with nothing beside it.
RIDGE_ALONE = {"stacking": 0.0, "forest": 0.0}


def accuracies(estimator, data, folds):
    scores = []
    splits = KFold(10, shuffle=True, random_state=0).split(data.data)
    for train, test in itertools.islice(splits, folds):
        model = estimator.fit(data.data[train], data.candidates[train])
        unseen = (model.predict(data.data[test]) == data.target[test]).mean()
        scores.append((unseen, (model.labels_ == data.target[train]).mean()))
    return np.mean(scores, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="lost,msrcv2")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--folds", type=int, default=2, help="how many of the ten folds to run")
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    rows = []
    for name, method in itertools.product(options.datasets.split(","), options.methods.split(",")):
        data = load_real_world(name)
        own = METHODS[method](random_state=0)
        for setting, estimator in (
            ("alone", own),
            (
                "with ridge",
                PartialLabelClassifier(own, hyperparameters=RIDGE_ALONE, random_state=0),
            ),
        ):
            unseen, training = accuracies(estimator, data, options.folds)
            print(f"{name:9s} {method:8s} {setting:10s} {unseen:.3f} {training:.3f}", flush=True)
            rows.append((name, method, setting, options.folds, f"{unseen:.4f}", f"{training:.4f}"))
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["dataset", "method", "setting", "folds", "unseen", "training"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
