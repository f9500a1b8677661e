"""Time and peak memory of a fit on the local and on the full graph.

    python benchmarks/matching.py [--quick]

Every measurement runs in a process of its own, so that its peak memory is its own. How the matching
on the full graph compares with the literal dense algorithm, and with the products that it cannot do
without, is measured by benchmarks/full_graph.py.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem

#: rows, features, labels, mean candidates: the shapes of nine tenths of the real-world sets.
SHAPES = {
    "Lost": (1010, 108, 16, 2.23),
    "MSRCv2": (1582, 48, 23, 3.16),
    "FG-NET": (902, 262, 78, 7.48),
    "BirdSong": (4500, 38, 13, 2.18),
    "Soccer Player": (17472, 279, 171, 2.09),
}
TURNS = 50


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
    return {"seconds": seconds, "peak_mib": peak / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest shape")
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "GRAPH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    print(f"{TURNS} turns; peak memory of the whole process, Python and the data included")
    print(f"{'shape':14s} {'graph':6s} {'seconds':>8s} {'peak MiB':>9s}")
    for shape in SHAPES:
        if options.quick and shape == "Soccer Player":
            continue
        for graph in ("local", "full"):
            command = [sys.executable, __file__, "--one", shape, graph]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            print(
                f"{shape:14s} {graph:6s} {found['seconds']:8.2f} {found['peak_mib']:9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
