"""The time that the default takes, beside a support vector machine that is given the truth.

    python benchmarks/default.py [--problems lost,digits] [--repeats 3] [--out results/default.csv]

Both are fitted on the same rows in one process, one after the other, and the ratio of their
shortest times is printed; then the same for ``predict``: of a single row, and of 10,000 rows. Lost,
BirdSong and labelme need the data sets (environment variable GMPLL_DATA) and are left out where
they are absent.
"""

import argparse
import csv
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gmpll import PartialLabelClassifier
from gmpll.datasets import (
    DatasetUnavailableError,
    load_crowd,
    load_real_world,
    make_partial_label_problem,
    random_candidates,
)

COLUMNS = ("problem", "rows", "features", "fit", "svm fit", "ratio", "one row", "10,000 rows",
           "svm 10,000 rows")  # fmt: skip


def digits():
    X, y = load_digits(return_X_y=True)
    return X, random_candidates(y, 0.5, 1, random_state=0), y


def prepared(load, name):
    data = load(name)
    return np.asarray(data.data, dtype=float), np.asarray(data.candidates, bool), data.target


def synthetic(n_rows):
    data = make_partial_label_problem(n_rows, 64, 10, 3.0, random_state=0)
    return data.data, data.candidates, data.target


PROBLEMS = {
    "digits": digits,
    "lost": lambda: prepared(load_real_world, "lost"),
    "labelme": lambda: prepared(load_crowd, "labelme"),
    "birdsong": lambda: prepared(load_real_world, "birdsong"),
    "20000 x 64": lambda: synthetic(20_000),
}


def shortest(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def measured(name, repeats):
    X, mask, y = PROBLEMS[name]()
    svm, fitted = shortest(lambda: make_pipeline(StandardScaler(), SVC()).fit(X, y), repeats)
    ours, model = shortest(lambda: PartialLabelClassifier(random_state=0).fit(X, mask), repeats)
    many = X[np.random.RandomState(0).randint(len(X), size=10_000)]
    one, _ = shortest(lambda: model.predict(X[:1]), 20)
    block, _ = shortest(lambda: model.predict(many), 2)
    of_svm, _ = shortest(lambda: fitted.predict(many), 2)
    return (name, *X.shape, ours, svm, ours / svm, one, block, of_svm)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    rows = []
    for name in options.problems.split(","):
        try:
            rows.append(measured(name, options.repeats if name != "20000 x 64" else 1))
        except DatasetUnavailableError as error:
            print(f"{name} is left out: {error}")
            continue
        pairs = zip(COLUMNS, rows[-1], strict=True)
        print("  ".join(f"{column} {value:.4g}" if not isinstance(value, str) else value
                        for column, value in pairs), flush=True)  # fmt: skip
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(
                [[f"{v:.4g}" if isinstance(v, float) else v for v in row] for row in rows]
            )


if __name__ == "__main__":
    main()
