"""Seconds of one fit of every method at three sizes, beside the neighbour search.

    python benchmarks/methods.py [--methods SURE LALO] [--out CSV]

Synthetic problems of 20 features, 10 labels, 2.5 candidates on average. The ratio is to one exact
search for 40 neighbours of every row, run right before in the same process.
"""

import argparse
import csv
import time
import warnings

from gmpll.datasets import make_partial_label_problem
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.methods import METHODS

SIZES = (500, 2000, 5000)


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for size in SIZES:
        problem = make_partial_label_problem(size, 20, 10, 2.5, random_state=0)
        X, mask = problem.data, problem.candidates
        search = seconds(lambda X=X: nearest_neighbors(X, 40))
        print(f"{size} rows, neighbour search {search:.3f} s")
        for name in options.methods:
            model = METHODS[name](random_state=0)
            spent = seconds(lambda model=model, X=X, mask=mask: model.fit(X, mask))
            found = (model.labels_ == problem.target).mean()
            print(f"  {name:8s} {spent:8.2f} s  {spent / search:8.1f} x   {found:.3f}", flush=True)
            rows.append((size, name, round(spent, 3), round(spent / search, 1), round(found, 4)))
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["rows", "method", "fit_seconds", "ratio_to_search", "training"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
