"""The own small pieces of numerical code beside SciPy's.

    python benchmarks/linear.py [--device cuda] [--out results/linear.csv]

LAPACK: factor and inverse of symmetric matrices in one thread and in two, by SciPy's functions,
which hold Python's lock, and by ``gmpll._lapack``. Stacking: six stacked regressions (three folds,
two penalties), one after the other by SciPy's L-BFGS-B from arrays of the host, and by
``gmpll.evidence.lbfgs`` where the arrays are: on a ``--device`` all at once, else one after the
other. The largest difference of the probabilities is in the last column. All in one process; read
the ratios.
"""

import argparse
import csv
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from gmpll import _lapack
from gmpll.arrays import to_host
from gmpll.evidence.stacking import MAX_ITER, Stacker, fit_stacker

SIZES = (300, 700, 1800)
#: Rows of a fold and labels: Lost, BirdSong, Soccer Player.
FOLDS = ((666, 16), (666, 13), (666, 171))
PENALTIES = (10.0, 1.0)


def shortest(function, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def by_scipy(matrix):
    factor, _ = scipy.linalg.lapack.dpotrf(matrix, lower=False)
    return scipy.linalg.lapack.dpotri(factor, lower=False)[0]


def by_ours(matrix):
    inverse = matrix.copy(order="F")
    _lapack.factorise(inverse)
    _lapack.invert(inverse)
    return inverse


def lapack():
    for n in SIZES:
        root = np.random.RandomState(0).normal(size=(n, n))
        matrix = np.asfortranarray(root @ root.T + n * np.eye(n))
        for name, function in (("SciPy", by_scipy), ("ours", by_ours)):
            with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
                one, _ = shortest(lambda f=function, m=matrix: [f(m), f(m)])
                two, _ = shortest(lambda f=function, m=matrix, p=pool: list(p.map(f, [m, m])))
            yield {"piece": f"factor and inverse, {n} rows", "by": name, "seconds": one,
                   "two threads": two, "speed-up": one / two}  # fmt: skip


def stacked_by_scipy(scores, confidences, penalty):
    """The same regression as in gmpll.evidence.stacking, by SciPy."""
    q, unit = scores.shape[1], scores.std()
    F = scores / unit
    asked = np.hstack([F, np.ones((len(F), 1))])

    def objective(flat):
        W = flat[1:].reshape(-1, q)
        logits = asked @ W + flat[0] * F
        logits -= logits.max(axis=1, keepdims=True)
        excess = np.exp(logits)
        total = excess.sum(axis=1, keepdims=True)
        value = np.log(total).sum() - np.vdot(confidences, logits) + 0.5 * penalty * np.vdot(W, W)
        excess = excess / total - confidences
        of_W = asked.T @ excess + penalty * W
        return value, np.concatenate([[np.vdot(excess, F)], of_W.ravel()])

    start = np.concatenate([[1.0], np.zeros((q + 1) * q)])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER}).x
    W = found[1:].reshape(-1, q)
    return Stacker((found[0] * np.eye(q) + W[:q]) / unit, W[-1])


def stacking(device):
    for n, q in FOLDS:
        rng = np.random.RandomState(0)
        truth = rng.randint(q, size=(3, n))
        scores = 0.5 * np.eye(q)[truth] + 0.2 * rng.normal(size=(3, n, q))
        P = 0.8 * np.eye(q)[truth] + 0.2 * rng.dirichlet(np.ones(q), size=(3, n))

        def one_by_one(scores=scores, P=P):
            folds = list(zip(scores, P, strict=True))
            return [
                [stacked_by_scipy(*fold, penalty)(fold[0]) for fold in folds]
                for penalty in PENALTIES
            ]

        there = scores, P
        if device:
            import torch

            there = [torch.as_tensor(each).to(device) for each in there]

        def at_once(there=there):
            if device:
                stacker = fit_stacker(*there, np.array(PENALTIES)[:, None])
                return to_host(stacker(there[0]))
            folds = list(zip(*there, strict=True))
            return [
                [fit_stacker(*fold, penalty)(fold[0]) for fold in folds] for penalty in PENALTIES
            ]

        at_once()
        with threadpool_limits(1):
            scipys, wanted = shortest(one_by_one, 3)
            ours, found = shortest(at_once, 3)
        yield {"piece": f"six stacked regressions, {n} rows, {q} labels", "by": "SciPy",
               "seconds": scipys}  # fmt: skip
        yield {"piece": f"six stacked regressions, {n} rows, {q} labels",
               "by": f"ours, {device or 'one after the other'}", "seconds": ours,
               "speed-up": scipys / ours,
               "difference": float(np.abs(np.array(found) - np.array(wanted)).max())}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="stack tensors on this device, for instance cuda")
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    lines = []
    for line in (*lapack(), *stacking(options.device)):
        lines.append({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in line.items()})
        print("  ".join(f"{key} {value}" for key, value in lines[-1].items()), flush=True)
    if options.out:
        columns = ["piece", "by", "seconds", "two threads", "speed-up", "difference"]
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
