"""The default on sets of every origin.

    python benchmarks/splits.py [--datasets pos-swedish,slashdot-pl-f1] [--splits 3] [--rows 3000]

Needs the data sets (environment variable GMPLL_DATA). Three splits s = 0, 1, 2: the first 3000 of
``numpy.random.default_rng(s).permutation(n)``, of which four fifths are fitted on. Printed are the
mean accuracy on unseen and on training rows and its standard error over the splits. Votes are
taken as plain candidate sets here; ``gmpll reproduce --only crowd`` measures votes.
"""

import argparse
import time

import numpy as np

from gmpll import PartialLabelClassifier
from gmpll.datasets import load_crowd, load_prepared

PREPARED = ("pos-swedish", "slashdot-pl-f1")
CROWDS = ("sentiment-polarity", "labelme", "cifar10n")


def load(name):
    data = load_crowd(name) if name in CROWDS else load_prepared(name)
    return np.asarray(data.data, dtype=float), np.asarray(data.candidates, bool), data.target


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="pos-swedish,sentiment-polarity,slashdot-pl-f1")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    for name in options.datasets.split(","):
        X, mask, y = load(name)
        scores, start = [], time.perf_counter()
        for split in range(options.splits):
            rows = np.random.default_rng(split).permutation(len(X))[: options.rows]
            train, test = np.split(rows, [int(0.8 * len(rows))])
            model = PartialLabelClassifier(random_state=0).fit(X[train], mask[train])
            unseen = (model.predict(X[test]) == y[test]).mean()
            scores.append((unseen, (model.labels_ == y[train]).mean()))
        mean, error = np.mean(scores, axis=0), np.std(scores, axis=0) / len(scores) ** 0.5
        seconds = (time.perf_counter() - start) / options.splits
        print(
            f"{name:20s} unseen {mean[0]:.3f} ± {error[0]:.3f}   "
            f"training {mean[1]:.3f} ± {error[1]:.3f}   {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
