"""Accuracy of SURE, LALO, PL-AGGD and PL-CL at their defaults: ten folds, unseen and training rows.

    python benchmarks/classical.py [--data FOLDER] [--methods SURE LALO] [--out CSV]

Features are z-scored with the statistics of the training rows, nothing is tuned, and the folds are
those of ``KFold(10, shuffle=True, random_state=0)``. The spread is the standard deviation over the
folds. A second line per method scales rows to length one after z-scoring.
"""

import argparse
import csv
import time

import numpy as np
from sklearn.model_selection import KFold

from gmpll.datasets import load_real_world
from gmpll.methods import METHODS

NAMES = ("SURE", "LALO", "PL-AGGD", "PL-CL")


def folds_of(estimator, data):
    scores, start = [], time.perf_counter()
    for train, test in KFold(10, shuffle=True, random_state=0).split(data.data):
        model = estimator.fit(data.data[train], data.candidates[train])
        unseen = np.mean(model.predict(data.data[test]) == data.target[test])
        scores.append((unseen, np.mean(model.labels_ == data.target[train])))
    return np.array(scores), (time.perf_counter() - start) / len(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the data sets; by default GMPLL_DATA")
    parser.add_argument("--datasets", nargs="+", default=["lost", "msrcv2"])
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    rows = [("method", "dataset", "unit_rows", "unseen", "spread", "training", "spread", "seconds")]
    for name in options.datasets:
        data = load_real_world(name, data_home=options.data)
        for method in options.methods:
            for unit_rows in (False, True):
                scores, seconds = folds_of(
                    METHODS[method](unit_rows=unit_rows, random_state=0), data
                )
                (unseen, training), spread = scores.mean(axis=0), scores.std(axis=0, ddof=1)
                figures = (f"{x:.3f}" for x in (unseen, spread[0], training, spread[1], seconds))
                rows.append((method, name, unit_rows, *figures))
                print("  ".join(map(str, rows[-1])), flush=True)
    if options.out:
        with open(options.out, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
