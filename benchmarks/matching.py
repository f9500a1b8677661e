"""Time and peak memory of a fit, beside the literal dense algorithm where that fits.

    python benchmarks/matching.py [--quick]

Every measurement runs in a process of its own, so that its peak memory is its own. The literal
version builds the u x u affinity of the paper as a dense array and rewrites it in every turn; it
is run with as many turns as the library made, in the same process, right after it.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem
from gmpll.graph.features import DirectionSpace

#: rows, features, labels, mean candidates: the shapes of nine tenths of the real-world sets.
SHAPES = {
    "Lost": (1010, 108, 16, 2.23),
    "MSRCv2": (1582, 48, 23, 3.16),
    "FG-NET": (902, 262, 78, 7.48),
    "BirdSong": (4500, 38, 13, 2.18),
    "Soccer Player": (17472, 279, 171, 2.09),
}
TURNS = 50
#: The dense version needs three u x u arrays; more than this is not tried.
DENSE_BYTES = 6 * 2**30


def dense_algorithm_1(X, mask, beta, turns):
    """Algorithm 1 with K as one dense array, vectorised as far as that goes."""
    rows = DirectionSpace(X).rows
    instance, label = np.nonzero(mask)
    A = np.clip((1 + rows @ rows.T) / 2, 0, 1)[np.ix_(instance, instance)]
    K = np.where(label[:, None] == label[None, :], A, 1 - A)
    del A
    K -= K.mean()
    K /= K.std()
    K[beta > K] = 0
    p = 1 / mask.sum(axis=1)[instance]
    starts = np.flatnonzero(np.r_[True, np.diff(instance) > 0])
    for _ in range(turns):
        q = K @ p
        total = np.add.reduceat(q, starts)[instance]
        new = np.where(total > 0, q / np.where(total > 0, total, 1), p)
        K *= np.divide(new, p, out=np.zeros_like(p), where=p > 0)[:, None]
        p = new
    return p


def measure(shape, graph):
    problem = make_partial_label_problem(*SHAPES[shape], random_state=0)
    X, mask = problem.data, problem.candidates
    model = GMPLL(
        graph=graph,
        balance=0,
        prediction="independent",
        max_iter=TURNS,
        tol=0.0,
        random_state=0,
    )
    start = time.perf_counter()
    model.fit(X, mask)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ratio = None
    if graph == "full" and 3 * 8 * int(mask.sum()) ** 2 <= DENSE_BYTES:
        start = time.perf_counter()
        p = dense_algorithm_1(X, mask, model.beta, TURNS)
        ratio = (time.perf_counter() - start) / seconds
        difference = np.abs(model.label_confidences_[mask] - p).max()
        assert difference < 1e-6, f"the dense version differs by {difference}"
    return {
        "seconds": seconds,
        "peak_mib": peak / 1024,
        "ratio": ratio,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest shape")
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "GRAPH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    print(f"{TURNS} turns; peak memory of the whole process, Python and the data included")
    print(f"{'shape':14s} {'graph':6s} {'seconds':>8s} {'peak MiB':>9s}  dense / ours")
    for shape in SHAPES:
        if options.quick and shape == "Soccer Player":
            continue
        for graph in ("local", "full"):
            command = [sys.executable, __file__, "--one", shape, graph]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            ratio = f"{found['ratio']:8.1f} x" if found["ratio"] else "       -"
            print(
                f"{shape:14s} {graph:6s} {found['seconds']:8.2f} {found['peak_mib']:9.0f}  {ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
