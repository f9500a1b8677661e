"""What every part of the default GMPLL is worth: ten folds with one part left out at a time.

The last line is the default on rows whose only candidate is the true label: what the ambiguity
costs. Sets of one do not show that labels are ordered, so they are not taken for ordered there.

    python benchmarks/ablation.py [--datasets lost,msrcv2,fg-net,birdsong] [--folds 10] [--out CSV]

Needs the data sets (environment variable GMPLL_DATA). Protocol as in benchmarks/accuracy.py.
"""

import argparse
import csv
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
from accuracy import ten_folds
from sklearn.utils import Bunch

from gmpll import GMPLL
from gmpll.datasets import load_real_world

LEARNER, SELECTION = "gmpll.methods._learner", "gmpll.methods._selection"
#: The default on rows whose only candidate is the true label.
TRUTH_GIVEN = "true labels given"
#: The default with one part left out, and for parts that are no parameter what takes its place.
VARIANTS = {
    "default": (GMPLL(random_state=0), None),
    "without positions": (GMPLL(scaling="both", random_state=0), None),
    "z-scores only": (GMPLL(scaling="standard", random_state=0), None),
    "ranks only": (GMPLL(scaling="rank", random_state=0), None),
    "labels never similar": (GMPLL(label_similarity=None, random_state=0), None),
    "no balance": (GMPLL(balance=0, random_state=0), None),
    "no feedback": (GMPLL(random_state=0), (f"{LEARNER}.feedback", lambda _, mask, P, **__: P)),
    "nothing chosen": (GMPLL(random_state=0), (f"{SELECTION}.ALTERNATIVES", (("all", 1.5, 0.1),))),
    "no readout": (GMPLL(readout=0.0, random_state=0), None),
    "no forest": (GMPLL(forest=0.0, random_state=0), None),
    "no regression": (GMPLL(prediction="independent", random_state=0), None),
    TRUTH_GIVEN: (GMPLL(random_state=0), None),
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
        for variant, (estimator, instead) in VARIANTS.items():
            given = with_true_labels(data) if variant == TRUTH_GIVEN else data
            with patch(*instead) if instead else nullcontext():
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
