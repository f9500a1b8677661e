"""Speed and memory of the matching on the full graph, beside what it could be and what it was.

    python benchmarks/full_graph.py [--out results/full_graph.csv] [--shapes MSRCv2 FG-NET]

At the shape of every real-world set, fifty iterations on the full graph (making the affinity
included) are timed beside

* the bare products: the matrix products that remain, on the same tiles in the same precision, and
  nothing else;
* the literal dense algorithm, where its u x u matrix takes no more than 4 GiB: Algorithm 1 with K
  as one array that is rewritten in every iteration.

The sides alternate in one process, and the best time of each counts, so that other work on the
machine disturbs the ratio little. On a machine that is busy all the time, --clock cpu with
OMP_NUM_THREADS=1 counts processor time instead. Peak memory is that of a process of its own,
Python and the data included: of the matching with all tiles kept, of the matching that keeps none,
and of a whole fit.
Where single precision is used, the labels that differ from double precision are counted.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time

import numpy as np

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem
from gmpll.graph.cosine import upper_triangle
from gmpll.graph.views import CosineView
from gmpll.matching import full_affinity, match
from gmpll.matching.full_tiles import TILE

#: rows, features, labels, mean candidates of the real-world sets.
SHAPES = {
    "Lost": (1122, 108, 16, 2.23),
    "MSRCv2": (1758, 48, 23, 3.16),
    "FG-NET": (1002, 262, 78, 7.48),
    "BirdSong": (4998, 38, 13, 2.18),
    "Soccer Player": (17472, 279, 171, 2.09),
    "Yahoo! News": (22991, 163, 219, 1.91),
}
BETA = 0.6
#: The literal version is left out if K alone would be larger than this.
DENSE_BYTES = 4 * 2**30
#: The sides of a ratio alternate for at least so long.
MIN_SECONDS = 4.0
#: The table's columns and how their numbers are printed.
COLUMNS = {
    "shape": "",
    "assignments": "{:d}",
    "precision": "",
    "seconds": "{:.3f}",
    "bare_seconds": "{:.3f}",
    "to_bare": "{:.2f}",
    "dense_seconds": "{:.2f}",
    "dense_to_ours": "{:.1f}",
    "largest_difference": "{:.1e}",
    "labels_changed": "{:d}",
    "stored_mib": "{:.0f}",
    "streamed_mib": "{:.0f}",
    "streamed_seconds": "{:.2f}",
    "fit_seconds": "{:.2f}",
    "fit_mib": "{:.0f}",
}


def problem_of(shape):
    problem = make_partial_label_problem(*SHAPES[shape], random_state=0)
    return problem.data, problem.candidates


def ours(rows, mask, iterations, **options):
    affinity = full_affinity(rows, mask, beta=BETA, **options)
    return match(affinity, mask, max_iter=iterations, tol=0.0).probabilities


class BareProducts:
    """The products of the matching, with all that they need made beforehand."""

    def __init__(self, rows, mask, iterations):
        product = full_affinity(rows, mask, beta=BETA)
        self.iterations = iterations
        self.wide_rows = np.ascontiguousarray(rows, dtype=np.float64)
        self.sets = mask.astype(np.float64)
        self.rows = product.rows
        self.all_at_once = product.gram() is not None
        self.tiles = list(upper_triangle(len(rows), TILE))
        self.products = np.empty((TILE, TILE), dtype=self.rows.dtype)
        blocks = product.blocks
        self.batches = blocks.batches
        self.blocks = list(blocks.blocks())
        self.sides = [self.rows[blocks.instance[batch.first]] for batch in self.batches]
        self.other_sides = [self.rows[blocks.instance[batch.second]] for batch in self.batches]
        self.p = np.ones(len(blocks.instance), dtype=blocks.dtype)

    def __call__(self):
        self.wide_rows.T @ self.wide_rows  # the deviation
        self.sets.T @ self.wide_rows  # the mean
        if self.all_at_once:
            self.rows @ self.rows.T
        else:
            self.inner_products()
        for _ in range(self.iterations):
            for (first, second, n_blocks), blocks in zip(self.batches, self.blocks, strict=True):
                blocks @ self.p[second].reshape(n_blocks, -1, 1)
                if first != second:
                    self.p[first] @ blocks[0]

    def inner_products(self):
        for first, second in self.tiles:  # for the support by different labels
            out = self.products[: first.stop - first.start, : second.stop - second.start]
            np.matmul(self.rows[first], self.rows[second].T, out=out)
        for batch, left, right in zip(self.batches, self.sides, self.other_sides, strict=True):
            left = left.reshape(batch.n_blocks, -1, left.shape[1])  # for that by equal labels
            right = right.reshape(batch.n_blocks, -1, right.shape[1])
            left @ (left if batch.first == batch.second else right).transpose(0, 2, 1)


def dense_algorithm_1(rows, mask, iterations):
    """Algorithm 1 with K as one dense array, as fast as NumPy makes it."""
    instance, label = np.nonzero(mask)
    A = np.clip((1 + rows @ rows.T) / 2, 0, 1)
    K = A[:, instance][instance]
    np.subtract(1, K, out=K, where=label[:, None] != label[None, :])
    K -= K.mean()
    K /= np.sqrt(np.vdot(K, K) / K.size)
    K *= K >= BETA
    p = 1 / mask.sum(axis=1)[instance]
    starts = np.flatnonzero(np.r_[True, np.diff(instance) > 0])
    for _ in range(iterations):
        q = K @ p
        total = np.add.reduceat(q, starts)[instance]
        new = np.where(total > 0, q / np.where(total > 0, total, 1), p)
        K *= np.divide(new, p, out=np.zeros_like(p), where=p > 0)[:, None]
        p = new
    return p


def measure_speed(shape, iterations, repeats, clock):
    X, mask = problem_of(shape)
    rows = CosineView(X).rows
    bare = BareProducts(rows, mask, iterations)
    sides = {"seconds": lambda: ours(rows, mask, iterations), "bare_seconds": bare}
    best = interleaved(sides, repeats, clock)
    found = {
        "assignments": int(mask.sum()),
        "precision": str(bare.rows.dtype),
        **best,
        "to_bare": best["seconds"] / best["bare_seconds"],
    }
    P = ours(rows, mask, iterations)
    if bare.rows.dtype != np.float64:
        double = ours(rows, mask, iterations, precision="highest")
        changed = P.argmax(axis=1) != double.argmax(axis=1)
        found["labels_changed"] = int(changed.sum())
    if 8 * int(mask.sum()) ** 2 <= DENSE_BYTES:
        both = {
            "seconds": sides["seconds"],
            "dense_seconds": lambda: dense_algorithm_1(rows, mask, iterations),
        }
        beside = interleaved(both, repeats, clock)
        found["dense_seconds"] = beside["dense_seconds"]
        found["dense_to_ours"] = beside["dense_seconds"] / beside["seconds"]
        difference = np.abs(P[mask] - dense_algorithm_1(rows, mask, iterations)).max()
        found["largest_difference"] = float(difference)
    return found


def interleaved(sides, repeats, clock):
    """Return the best time of every side; the sides alternate, for some seconds at least."""
    times = {name: [] for name in sides}
    while min(map(len, times.values())) < repeats or sum(map(sum, times.values())) < MIN_SECONDS:
        for name, side in sides.items():
            start = clock()
            side()
            times[name].append(clock() - start)
    return {name: min(found) for name, found in times.items()}


def measure_stored(shape, iterations, repeats, clock):
    X, mask = problem_of(shape)
    ours(CosineView(X).rows, mask, iterations, store_bytes=sys.maxsize)
    return {"stored_mib": peak_mib()}


def measure_streamed(shape, iterations, repeats, clock):
    X, mask = problem_of(shape)
    rows = CosineView(X).rows
    start = clock()
    ours(rows, mask, iterations, store_bytes=0)
    return {"streamed_seconds": clock() - start, "streamed_mib": peak_mib()}


def measure_fit(shape, iterations, repeats, clock):
    X, mask = problem_of(shape)
    model = GMPLL(
        graph="full",
        balance=0,
        prediction="independent",
        beta=BETA,
        max_iter=iterations,
        tol=0.0,
        random_state=0,
    )
    start = clock()
    model.fit(X, mask)
    return {"fit_seconds": clock() - start, "fit_mib": peak_mib()}


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
MEASURES = {
    "speed": measure_speed,
    "stored": measure_stored,
    "streamed": measure_streamed,
    "fit": measure_fit,
}


def in_own_process(measure, shape, options):
    command = [sys.executable, __file__, "--one", measure, shape]
    command += ["--iterations", str(options.iterations), "--repeats", str(options.repeats)]
    command += ["--clock", options.clock]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def cell(name, value):
    """Format a value of a column, or its heading."""
    text = "-" if value is None else str(value)
    if isinstance(value, (int, float)):
        text = COLUMNS[name].format(value)
    return text.ljust(14) if name == "shape" else text.rjust(len(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--iterations", type=int, default=50, help="of the matching (default: 50)")
    parser.add_argument("--repeats", type=int, default=5, help="at least, of which the best counts")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="(default: wall)")
    parser.add_argument("--out", help="also write the table to this CSV file")
    parser.add_argument("--one", nargs=2, metavar=("MEASURE", "SHAPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure, shape = options.one
        clock = CLOCKS[options.clock]
        print(json.dumps(MEASURES[measure](shape, options.iterations, options.repeats, clock)))
        return
    print(
        f"{options.iterations} iterations, {options.clock} clock; peak memory of the whole process"
    )
    print(*(cell(name, name) for name in COLUMNS))
    table = []
    for shape in options.shapes:
        row = {"shape": shape}
        for measure in MEASURES:
            row |= in_own_process(measure, shape, options)
        table.append({name: cell(name, row.get(name)).strip() for name in COLUMNS})
        print(*(cell(name, row.get(name)) for name in COLUMNS), flush=True)
    if options.out:
        with open(options.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
