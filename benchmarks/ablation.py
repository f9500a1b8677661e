"""What every part of the default GMPLL is worth: ten folds with one part left out at a time.

    python benchmarks/ablation.py [--datasets lost,msrcv2,fg-net,birdsong] [--folds 10] [--out CSV]

Needs the data sets (environment variable GMPLL_DATA). Protocol as in benchmarks/accuracy.py.
"""

import argparse
import csv

import numpy as np
from accuracy import ten_folds

from gmpll import GMPLL
from gmpll.datasets import load_real_world

VARIANTS = {
    "default": GMPLL(random_state=0),
    "without positions": GMPLL(scaling="both", random_state=0),
    "z-scores only": GMPLL(scaling="standard", random_state=0),
    "ranks only": GMPLL(scaling="rank", random_state=0),
    "labels never similar": GMPLL(label_similarity=None, random_state=0),
    "no regression": GMPLL(prediction="independent", random_state=0),
}


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
            scores = ten_folds(estimator, data, folds=options.folds)
            unseen, training, seconds = np.round(scores.mean(axis=0), 4)
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
