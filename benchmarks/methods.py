"""Seconds of one fit of every method at three sizes, beside the neighbour search.

    python benchmarks/methods.py [--methods SURE LALO] [--out CSV]
    python benchmarks/methods.py --better results/worlds/report.csv [more.csv ...]

Synthetic problems of 20 features, 10 labels, 2.5 candidates on average. The ratio is to one exact
search for 40 neighbours of every row, run right before in the same process.

``--better`` runs nothing: it reads results and prints on how many problems of each data set a
method has a larger mean accuracy on unseen rows, over folds or seeds, than the default.
"""

import argparse
import csv
import time
import warnings
from collections import defaultdict

from gmpll.datasets import make_partial_label_problem
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.methods import METHODS

SIZES = (500, 2000, 5000)


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def print_better(paths):
    """Print where a method is ahead of the default on unseen rows."""
    scores = defaultdict(list)
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                unseen = row.get("unseen") or row.get("inductive")
                if row["status"] == "ok" and unseen:
                    problem = tuple(row.get(key) for key in ("base", "dataset", "world", "p", "r"))
                    method = "gmpll" if row["method"] == "default" else row["method"]
                    scores[problem, method].append(float(unseen))
    means = {key: sum(values) / len(values) for key, values in scores.items()}
    for method in sorted({method for _, method in means} - {"gmpll"}):
        ahead = defaultdict(list)
        for (problem, name), mean in means.items():
            if name == method and (problem, "gmpll") in means:
                ahead[problem[0] or problem[1]].append(mean - means[problem, "gmpll"])
        n_better = sum(value > 0 for values in ahead.values() for value in values)
        print(f"{method}: ahead on {n_better} of {sum(map(len, ahead.values()))} problems")
        for name, values in ahead.items():
            print(
                f"    {name}: ahead on {sum(value > 0 for value in values)} of {len(values)}, "
                f"mean {sum(values) / len(values):+.3f}, largest {max(values):+.3f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument("--out", help="also write the table to this CSV file")
    parser.add_argument("--better", nargs="+", metavar="CSV", help="read results, run nothing")
    options = parser.parse_args()
    if options.better:
        return print_better(options.better)
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
