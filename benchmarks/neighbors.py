"""The approximate search for neighbours beside PyNNDescent.

    pip install pynndescent
    python benchmarks/neighbors.py [--rows 200000] [--out results/neighbors.csv]

Forty neighbours of every row, all searches in one process on the same rows: Gaussian clusters with
64 independent features, and curved surfaces of few dimensions in the same space. Recall is the
share of the true neighbours of 400 rows. ``first_seconds`` is a call on 3000 rows in a new process,
which is nearly all compiling or loading compiled code. PyNNDescent runs with its defaults and with
many trees and two iterations, which is faster where there are many independent features.
"""

import argparse
import csv
import subprocess
import sys
import time
import warnings

import numpy as np

NEIGHBORS, FEATURES, SAMPLE, FEW_ROWS = 40, 64, 400, 3000
SURFACES = (4, 8, 16, 32)
METHODS = ("cells", "pynndescent", "pynndescent, 64 trees, 2 iterations")
COLUMNS = ("data", "rows", "method", "seconds", "recall", "first_seconds")


def clusters(n_rows):
    from gmpll.datasets import make_partial_label_problem
    from gmpll.graph.views import CosineView

    return CosineView(
        make_partial_label_problem(n_rows, FEATURES, 20, 3.0, random_state=0).data
    ).rows


def surface(n_rows, n_dimensions):
    rng = np.random.RandomState(n_dimensions)
    bend = rng.randn(n_dimensions, 2 * FEATURES) / np.sqrt(n_dimensions)
    spread = rng.randn(2 * FEATURES, FEATURES) / np.sqrt(2 * FEATURES)
    rows = np.tanh(1.5 * rng.randn(n_rows, n_dimensions) @ bend) @ spread
    return rows + 0.02 * rng.randn(n_rows, FEATURES)


def search(method, rows):
    if method == "cells":
        from gmpll.engines import engine_of

        return engine_of(rows).nearest_neighbors(rows, NEIGHBORS, search="approximate").indices
    from pynndescent import NNDescent

    options = {"n_trees": 64, "n_iters": 2} if "trees" in method else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A row is the first of its own neighbours there.
        index = NNDescent(
            rows.astype(np.float32), n_neighbors=NEIGHBORS + 1, random_state=0, **options
        )
    return index.neighbor_graph[0][:, 1:]


def first_seconds(method):
    """Time a first call in a new process."""
    code = (
        "import time, numpy; from neighbors import *; rows = surface(FEW_ROWS, 8); "
        f"start = time.perf_counter(); search({method!r}, rows); "
        "print(time.perf_counter() - start)"
    )
    folder = __file__.rpartition("/")[0] or "."
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return float(answer.stdout)


def true_neighbors(rows, sample):
    from gmpll.graph.neighbors import nearest_neighbors

    found = nearest_neighbors(rows, NEIGHBORS + 1, rows[sample]).indices
    return [set(row) - {name} for row, name in zip(found.tolist(), sample.tolist(), strict=True)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--out")
    options = parser.parse_args()
    first = {method: first_seconds(method) for method in METHODS}
    few = surface(FEW_ROWS, 8)
    for method in METHODS:
        search(method, few)
    table = []
    for name, make in {
        "clusters, 64 dimensions": clusters,
        **{f"surface of {d} dimensions": lambda n, d=d: surface(n, d) for d in SURFACES},
    }.items():
        rows = make(options.rows)
        sample = np.random.RandomState(0).permutation(options.rows)[:SAMPLE]
        truth = true_neighbors(rows, sample)
        for method in METHODS:
            start = time.perf_counter()
            found = search(method, rows)
            seconds = time.perf_counter() - start
            hits = [len(t & set(f)) for t, f in zip(truth, found[sample].tolist(), strict=True)]
            recall = np.mean(hits) / NEIGHBORS
            line = (name, options.rows, method, seconds, recall, first[method])
            table.append([f"{v:.4g}" if isinstance(v, float) else v for v in line])
            print(*table[-1], sep="  ", flush=True)
    if options.out:
        with open(options.out, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *table])


if __name__ == "__main__":
    main()
