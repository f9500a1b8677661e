"""Which kernel the regression of the default has: Gaussians of several widths, or all at once,
with a linear kernel of the features in their own units or of their z-scores, or without.

    python benchmarks/kernels.py [--problems lost,glass] [--seeds 0,1] [--jobs 2] [--out FILE.csv]
    python benchmarks/kernels.py --table results/kernels.csv

Rows are matched on the local graph (balance 0.5) and fed back by the leave-one-out predictions of
a kernel ridge regression, for every kernel, ridge and choice of views; at most 2000 rows are
fitted on, a fifth is predicted. Written down are the accuracies and the candidate lift of the
leave-one-out predictions, which sees no true label. The table tells the regret to the best setting
of a problem in hindsight, of every kernel whose ridge was chosen by that lift. Needs GMPLL_DATA;
what is absent is left out.
"""

import argparse
import csv
import sys

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

from gmpll.datasets import (
    DatasetUnavailableError,
    cooccurring_candidates,
    instance_dependent_candidates,
    load_crowd,
    load_prepared,
    load_real_world,
    load_uci,
    random_candidates,
)
from gmpll.graph.local import LocalGraphs
from gmpll.graph.views import views_of
from gmpll.matching import LocalAffinity, match
from gmpll.matching.feedback import feedback
from gmpll.metrics import chance_of_covering, row_lifts

KERNELS = {
    "Gaussian 0.5": lambda d: np.exp(-0.5 * d),
    "Gaussian 1.5": lambda d: np.exp(-1.5 * d),
    "Gaussian 5": lambda d: np.exp(-5.0 * d),
    "mean of Gaussians": lambda d: (np.exp(-0.5 * d) + np.exp(-1.5 * d) + np.exp(-5.0 * d)) / 3,
    "rational quadratic": lambda d: 1.0 / (1.0 + d),
}
#: Linear kernels beside the last of these: of features about their means, and of z-scores.
LINEAR = {"linear": lambda X: X.std(axis=0), "linear of z-scores": lambda X: np.ones(X.shape[1])}
RIDGES = (0.3, 0.1, 0.03, 0.01)
VIEWS = (("cosine", "rank"), ("cosine", "rank", "euclidean"))
REAL, PREPARED = ("lost", "msrcv2", "birdsong"), ("pos-swedish", "slashdot-pl-f1")
CROWDS = ("sentiment-polarity", "cifar10n")
MADE = {
    "digits": 0.5, "glass": 0.5, "ecoli": 0.5, "dermatology": 0.7, "satimage": 0.7,
    "20newsgroups": 0.5, "vehicle": "instance", "letter": "instance", "segment": "cooccurring",
}  # fmt: skip
PROBLEMS = (*REAL, *PREPARED, *CROWDS, *MADE)
COLUMNS = ("problem", "seed", "views", "kernel", "ridge", "unseen", "training", "lift")


def load(name):
    """Return features, candidates and true labels of at most 3000 rows."""
    if name in REAL + PREPARED + CROWDS:
        loader = {**dict.fromkeys(REAL, load_real_world), **dict.fromkeys(CROWDS, load_crowd)}
        data = loader.get(name, load_prepared)(name)
        X, mask, y = data.data, np.asarray(data.candidates, bool), np.asarray(data.target)
        rows = np.random.default_rng(0).permutation(len(X))[:3000]
        return np.asarray(X, dtype=float)[rows], mask[rows], y[rows]
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = load_prepared(name) if name == "20newsgroups" else load_uci(name)
        X, y = data.data, data.target
    rows = np.random.default_rng(0).permutation(len(X))[:3000]
    X, y = np.asarray(X, dtype=float)[rows], np.unique(np.asarray(y)[rows], return_inverse=True)[1]
    if MADE[name] == "instance":
        mask = instance_dependent_candidates(X, y, random_state=0)
    elif MADE[name] == "cooccurring":
        mask = cooccurring_candidates(y, p=1.0, epsilon=0.6, random_state=0)
    else:
        mask = random_candidates(y, MADE[name], 2, random_state=0)
    return X, np.asarray(mask, bool), y


def fits(name, seed):
    """Return a row for every setting."""
    try:
        X, mask, y = load(name)
    except DatasetUnavailableError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return []
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: int(0.8 * len(X))][:2000], order[int(0.8 * len(X)) :]
    mask, found = mask[train], []
    for names in VIEWS:
        views = views_of(X[train], names, np.random.RandomState(0))
        graph = LocalGraphs([view.rows for view in views], 40)
        start = match(LocalAffinity(graph.weights, mask, None), mask, balance=0.5).probabilities
        within = [euclidean_distances(view.rows, squared=True) for view in views]
        beyond = [euclidean_distances(v.transform(X[test]), v.rows, squared=True) for v in views]
        scales = [np.median(d[~np.eye(len(d), dtype=bool)]) for d in within]
        kernels = {}
        for kernel, function in KERNELS.items():
            kernels[kernel] = [
                np.mean([function(d / s) for d, s in zip(distances, scales, strict=True)], axis=0)
                for distances in (within, beyond)
            ]
        for linear, weights in LINEAR.items():
            rows = StandardScaler().fit(X[train])
            Z, beyond_Z = (rows.transform(X[part]) * weights(X[train]) for part in (train, test))
            unit, n = (Z**2).sum(axis=1).mean(), len(views)
            kernels[f"{kernel}, {linear}"] = [
                (n * K + rows_Z @ Z.T / unit) / (n + 1)
                for K, rows_Z in zip(kernels[kernel], (Z, beyond_Z), strict=True)
            ]
        for kernel, (K, to_rows) in kernels.items():
            for ridge in RIDGES:
                A = np.linalg.inv(K + ridge * np.eye(len(K)))

                def left_out(P, A=A):
                    return P - (A @ P) / A.diagonal()[:, None]

                P = feedback(left_out, mask, start, balance=0.5)
                chance = chance_of_covering(mask.mean(axis=0), P.mean(axis=0))
                lift = row_lifts(mask, left_out(P).argmax(axis=1), chance).mean()
                unseen = ((to_rows @ (A @ P)).argmax(axis=1) == y[test]).mean()
                training = (np.where(mask, P, -1.0).argmax(axis=1) == y[train]).mean()
                found.append((name, seed, len(names), kernel, ridge, unseen, training, lift))
    return found


def show(table):
    for figure in ("unseen", "training"):
        print(f"{figure} rows: mean and largest regret, the ridge chosen by the lift")
        means = table.groupby(["problem", "views", "kernel", "ridge"])[figure].mean()
        best = means.groupby("problem").max()
        options = {kernel: (table.kernel == kernel) & (table.views == 3) for kernel in KERNELS}
        options["any Gaussian, any views"] = table.kernel.str.startswith("Gaussian")
        for name, rows in options.items():
            part = table[rows]
            chosen = part.loc[part.groupby(["problem", "seed"]).lift.idxmax()]
            regret = chosen.problem.map(best) - chosen[figure]
            print(f"  {name:24s} {regret.mean():.4f} {regret.max():.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", help="write every fit to this CSV file")
    parser.add_argument("--table", help="only show the table of such a file")
    options = parser.parse_args()
    if options.table:
        return show(pd.read_csv(options.table))
    tasks = [(n, int(s)) for s in options.seeds.split(",") for n in options.problems.split(",")]
    found = Parallel(options.jobs, batch_size=1)(delayed(fits)(*task) for task in tasks)
    rows = [row for part in found for row in part]
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(
                [f"{v:.4f}" if isinstance(v, float) and k > 4 else v for k, v in enumerate(row)]
                for row in rows
            )
    return show(pd.DataFrame(rows, columns=COLUMNS))


if __name__ == "__main__":
    sys.exit(main())
