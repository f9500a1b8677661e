"""Time and peak memory of the local graph as the data grow, and of the reconstruction of rows.

    python benchmarks/local_graph.py [--max-rows 1000000] [--neighbors auto]
                                     [--out results/local_graph.csv]

Every point is a process of its own, so that its peak memory is its own: it makes the data, warms up
on a few rows (compiled code is loaded), fits ``GMPLL("local", balance=0.5)`` and then searches
for the same neighbours alone. ``ratio`` is the time of the fit over that of the search beside it,
``exponent`` the growth of the fit from the smallest number of rows. By default few rows are
searched exactly and many approximately, so the exponent compares two methods; ``--neighbors
approximate`` uses one for all. The last lines compare the weights that reconstruct unseen rows with
a loop over ``scipy.optimize.nnls`` in the same process; they are saved beside the table, in
``reconstruction.csv``.
"""

import argparse
import csv
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
#: What else may grow, each at a fixed number of rows: features, labels, mean candidates.
FEATURES, LABELS, CANDIDATES = 64, 20, 3.0
OTHERS = {"features": (16, 64, 256), "labels": (5, 20, 80), "candidates": (1.5, 3.0, 6.0)}
OTHER_ROWS = 10_000
WARM_UP_ROWS = 2_000
COLUMNS = (
    "varied",
    "rows",
    "features",
    "labels",
    "candidates",
    "search",
    "recall",
    "accuracy",
    "iterations",
    "search_seconds",
    "fit_seconds",
    "ratio",
    "exponent",
    "peak_mib",
    "data_mib",
)
RECONSTRUCTION_ROWS, LOOP_ROWS, NEIGHBORS, REPEATS = 20_000, 2_000, 10, 10
#: Weight of the equation that keeps the sum of the weights at one in ``nnls``.
SUM_WEIGHT = 1e4


def measure_fit(rows, features, labels, candidates, neighbors):
    """Fit and search once; return what one line of the table needs."""
    from gmpll import GMPLL
    from gmpll.datasets import make_partial_label_problem
    from gmpll.engines import engine_of
    from gmpll.graph.views import CosineView

    problem = make_partial_label_problem(rows, features, labels, candidates, random_state=0)
    X, mask = problem.data, problem.candidates
    search = engine_of(X).choose_search(neighbors, rows, features)
    model = GMPLL("local", balance=0.5, neighbor_search=search, random_state=0)
    model.fit(X[:WARM_UP_ROWS], mask[:WARM_UP_ROWS])

    start = time.perf_counter()
    model.fit(X, mask)
    fit_seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    view = CosineView(X).rows
    start = time.perf_counter()
    engine_of(view).nearest_neighbors(view, model.n_graph_neighbors, search=search)
    search_seconds = time.perf_counter() - start
    return {
        "search": search,
        "recall": model.neighbor_recall_,
        "accuracy": float(np.mean(model.labels_ == problem.target)),
        "iterations": model.n_iter_,
        "search_seconds": search_seconds,
        "fit_seconds": fit_seconds,
        "ratio": fit_seconds / search_seconds,
        "peak_mib": peak,
        "data_mib": (X.nbytes + mask.nbytes) / 2**20,
    }


def measure_reconstruction(features):
    """Compare the weights of unseen rows, and their time, with a loop over nnls."""
    from gmpll.datasets import make_partial_label_problem
    from gmpll.graph.neighbors import nearest_neighbors
    from gmpll.graph.reconstruction import reconstruction_weights
    from gmpll.graph.views import CosineView

    n = RECONSTRUCTION_ROWS
    X = make_partial_label_problem(2 * n, features, LABELS, CANDIDATES, random_state=0).data
    space = CosineView(X[:n])
    queries = space.transform(X[n:])
    near = nearest_neighbors(space.rows, NEIGHBORS, queries).indices
    ours = loop = math.inf
    for _ in range(REPEATS):  # milliseconds: the sides alternate, and the best time counts
        start = time.perf_counter()
        weights = reconstruction_weights(queries, space.rows, near)
        ours = min(ours, (time.perf_counter() - start) / n)
        start = time.perf_counter()
        expected = loop_over_nnls(queries[:LOOP_ROWS], space.rows, near)
        loop = min(loop, (time.perf_counter() - start) / LOOP_ROWS)
    return {
        "features": features,
        "microseconds": 1e6 * ours,
        "loop_microseconds": 1e6 * loop,
        "times_faster": loop / ours,
        "difference": float(np.abs(weights[:LOOP_ROWS] - expected).max()),
    }


def loop_over_nnls(queries, rows, near):
    from scipy.optimize import nnls

    weights = np.empty((len(queries), near.shape[1]))
    ones = np.full((1, near.shape[1]), SUM_WEIGHT)
    for i, query in enumerate(queries):
        system = np.vstack([rows[near[i]].T, ones])
        weights[i] = nnls(system, np.append(query, SUM_WEIGHT))[0]
    return weights


def points(max_rows, only_rows):
    """Yield (what is varied, rows, features, labels, candidates)."""
    for rows in ROWS:
        if rows <= max_rows:
            yield "rows", rows, FEATURES, LABELS, CANDIDATES
    if only_rows:
        return
    usual = {"features": FEATURES, "labels": LABELS, "candidates": CANDIDATES}
    for name, values in OTHERS.items():
        for value in values:
            shape = {**usual, name: value}
            yield name, OTHER_ROWS, shape["features"], shape["labels"], shape["candidates"]


def in_own_process(kind, arguments):
    command = [sys.executable, __file__, "--one", kind, json.dumps(arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def draw(lines, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = [line for line in lines if line["varied"] == "rows"]
    rows = [line["rows"] for line in lines]
    figure, (time_axes, memory_axes) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    time_axes.loglog(rows, [line["fit_seconds"] for line in lines], "o-", label="whole fit")
    time_axes.loglog(rows, [line["search_seconds"] for line in lines], "s--", label="search alone")
    linear = [lines[0]["fit_seconds"] * n / rows[0] for n in rows]
    time_axes.loglog(rows, linear, color="0.6", lw=0.8, label="linear")
    time_axes.set(xlabel="rows", ylabel="seconds")
    time_axes.legend(frameon=False)
    memory_axes.loglog(rows, [line["peak_mib"] for line in lines], "o-", label="peak of the fit")
    memory_axes.loglog(rows, [line["data_mib"] for line in lines], "s--", label="the data")
    memory_axes.set(xlabel="rows", ylabel="MiB")
    memory_axes.legend(frameon=False)
    figure.savefig(path)


def run_points(options):
    print(
        f"{'varied':10s} {'rows':>8s} {'d':>4s} {'q':>3s} {'cand':>4s} {'search':>11s} "
        f"{'recall':>6s} {'search s':>8s} {'fit s':>7s} {'ratio':>5s} {'exp':>5s} {'MiB':>6s}"
    )
    lines = []
    for varied, *shape in points(options.max_rows, options.only_rows):
        line = dict(zip(COLUMNS[:5], (varied, *shape), strict=True))
        line |= in_own_process("fit", [*shape, options.neighbors])
        line["exponent"] = ""
        if varied == "rows" and lines:
            growth = line["fit_seconds"] / lines[0]["fit_seconds"]
            line["exponent"] = math.log(growth) / math.log(line["rows"] / lines[0]["rows"])
        lines.append(line)
        exponent = f"{line['exponent']:5.2f}" if line["exponent"] != "" else "    -"
        print(
            f"{varied:10s} {shape[0]:8d} {shape[1]:4d} {shape[2]:3d} {shape[3]:4.1f} "
            f"{line['search']:>11s} {line['recall']:6.3f} {line['search_seconds']:8.2f} "
            f"{line['fit_seconds']:7.2f} {line['ratio']:5.2f} {exponent} {line['peak_mib']:6.0f}",
            flush=True,
        )
    return lines


def save(lines, columns, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in line.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-rows", type=int, default=ROWS[-1])
    parser.add_argument("--neighbors", choices=("auto", "exact", "approximate"), default="auto")
    parser.add_argument("--only-rows", action="store_true", help="vary nothing but the rows")
    parser.add_argument("--out", type=Path, help="CSV file; a plot is saved beside it as SVG")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, arguments = options.one
        measure = {"fit": measure_fit, "reconstruction": measure_reconstruction}[kind]
        print(json.dumps(measure(*json.loads(arguments))))
        return
    lines = run_points(options)
    print(f"\nreconstruction from {NEIGHBORS} neighbours, per row, beside a loop over nnls")
    reconstructions = []
    for features in OTHERS["features"]:
        found = in_own_process("reconstruction", [features])
        reconstructions.append(found)
        print(
            f"d = {features:3d}: {found['microseconds']:6.2f} us, loop "
            f"{found['loop_microseconds']:6.1f} us, {found['times_faster']:5.1f} times faster, "
            f"largest difference {found['difference']:.0e}",
            flush=True,
        )
    if options.out:
        save(lines, COLUMNS, options.out)
        save(reconstructions, found, options.out.with_name("reconstruction.csv"))
        draw(lines, options.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
