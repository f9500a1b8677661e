"""What every part of the default is worth: ten folds with one part left out at a time.

The last line is the default on rows whose only candidate is the true label: what the ambiguity
costs. Sets of one do not show that labels are ordered, so they are not taken for ordered there.

    python benchmarks/ablation.py [--datasets lost,msrcv2,fg-net,birdsong] [--folds 10] [--out CSV]

Needs the data sets (environment variable GMPLL_DATA). Protocol as in benchmarks/accuracy.py.
"""

import argparse
import csv

import numpy as np
from accuracy import ten_folds
from sklearn.utils import Bunch

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.datasets import load_real_world

#: The default on rows whose only candidate is the true label.
TRUTH_GIVEN = "true labels given"
#: One setting for all data.
ONE = {"ridge": 0.1, "stacking": 0.0, "forest": 0.0, "tau": 0.5}


def with_fixed(**hyperparameters):
    """Return the default with some hyperparameters fixed."""
    return PartialLabelClassifier(hyperparameters=hyperparameters, random_state=0)


#: The default with one part left out.
VARIANTS = {
    "default": PartialLabelClassifier(random_state=0),
    "without the Euclidean view": with_fixed(views=("cosine", "rank")),
    "cosine view only": with_fixed(views=("cosine",)),
    "rank view only": with_fixed(views=("rank",)),
    "labels never similar": PartialLabelClassifier(label_similarity=None, random_state=0),
    "no feedback": with_fixed(feedback=False),
    "nothing chosen": with_fixed(**ONE),
    "no stacking": with_fixed(stacking=0.0),
    "no forest": with_fixed(forest=0.0),
    "no regression": GMPLL("local", balance=0.5, random_state=0),
    TRUTH_GIVEN: PartialLabelClassifier(random_state=0),
}


def with_true_labels(data):
    """Return the data with the true label as the only candidate of every row."""
    return Bunch(**{**data, "candidates": np.eye(len(data.target_names), dtype=bool)[data.target]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="lost,msrcv2,fg-net,birdsong")
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten folds to run")
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    rows = []
    for name in options.datasets.split(","):
        data = load_real_world(name)
        for variant, estimator in VARIANTS.items():
            given = with_true_labels(data) if variant == TRUTH_GIVEN else data
            scores = ten_folds(estimator, given, folds=options.folds)
            unseen, training, seconds = np.round(scores.mean(axis=0), 4)[:3]
            print(
                f"{name:9s} {variant:26s} unseen {unseen:.3f}  training {training:.3f}", flush=True
            )
            rows.append((name, variant, options.folds, unseen, training, np.round(seconds, 2)))
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["dataset", "variant", "folds", "unseen", "training", "fit_seconds"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
