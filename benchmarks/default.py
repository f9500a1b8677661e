"""The time that the default takes, beside a support vector machine that is given the truth.

    python benchmarks/default.py [--problems lost,digits] [--repeats 3] [--out results/default.csv]
    python benchmarks/default.py --rows 5000,20000,50000,200000,1000000 [--out results/rows.csv]
    python benchmarks/default.py --rows 2500,5000,10000,20000,50000 --like letter [--out FILE.csv]
    SCIPY_ARRAY_API=1 python benchmarks/default.py --device cuda [--problems lost]
                                                   [--out results/gpu/default.csv]

Both are fitted on the same rows in one process, one after the other, and the ratio of their
shortest times is printed; then the same for ``predict``: of a single row, and of 10,000 rows. Lost,
BirdSong and labelme need the data sets (environment variable GMPLL_DATA) and are left out where
they are absent.

``--rows``: the first rows of one problem (of ``--largest`` rows), each number in a process of its
own (peak memory), and 10,000 unseen rows; beside the accuracies those of the rule that knows the
classes' centres, which nothing can beat, and beside the fit the search for the neighbours in the
two views of the graph. Core seconds are those of all threads together, which other work on the
machine does not change much.
``--like`` takes another problem that is made up: clusters of whole numbers as of letters, skewed
classes between thresholds of single features as of a shuttle, counts of words as of texts.

``--device``: tensors on a device, from NumPy arrays to NumPy labels, with the share of labels that
the fit of the same rows on the host finds too, up to 10,000 rows. The first fit, which compiles, is
reported beside the shortest.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.special import ndtri
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import Bunch

from gmpll import PartialLabelClassifier
from gmpll.datasets import (
    DatasetUnavailableError,
    load_crowd,
    load_real_world,
    make_partial_label_problem,
    random_candidates,
)
from gmpll.engines import engine_of
from gmpll.evidence.pipeline import N_GRAPH_VIEWS
from gmpll.evidence.selection import ALL_VIEWS
from gmpll.graph.views import views_of

#: rows, features, labels and mean candidates of problems that are made in the shape of others.
SHAPES = {
    "soccer player": (17_472, 279, 171, 2.09),
    "yahoo news": (22_991, 163, 219, 1.91),
    "1000000 x 128": (1_000_000, 128, 20, 3.0),
}
#: Rows that no fit sees; rows on which the host is asked beside a device; rows of a first fit that
#: loads compiled code.
UNSEEN_ROWS, HOST_ROWS, WARM_UP_ROWS = 10_000, 10_000, 500
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
    "msrcv2": lambda: prepared(load_real_world, "msrcv2"),
    "birdsong": lambda: prepared(load_real_world, "birdsong"),
    "20000 x 64": lambda: synthetic(20_000),
}
REAL_WORLD = ("lost", "msrcv2", "birdsong")


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


def right_by_centers(problem, part):
    """Accuracies, within the sets and of unseen rows, of the rule that knows the centres."""
    X, mask, y = problem.data[part], problem.candidates[part], problem.target[part]
    scores = X @ problem.centers.T - 0.5 * (problem.centers**2).sum(axis=1)
    return (np.where(mask, scores, -np.inf).argmax(axis=1) == y).mean(), (
        scores.argmax(1) == y
    ).mean()


def clusters(n_rows, rng):
    """26 classes of ten clusters each in 16 features, which are whole numbers from 0 to 15."""
    centers = 7.5 + 2.0 * rng.standard_normal((26, 10, 16))
    y, which = rng.randint(26, size=n_rows), rng.randint(10, size=n_rows)
    X = centers[y, which] + 1.6 * rng.standard_normal((n_rows, 16))
    return np.clip(np.rint(X), 0, 15), y


def thresholds(n_rows, rng):
    """Seven classes, three of them rare, between thresholds of heavy-tailed features."""
    latent = rng.standard_normal((n_rows, 9))
    X = np.rint(20.0 * np.sign(latent) * np.expm1(np.abs(latent)))
    y = np.zeros(n_rows, dtype=int)
    for label, (share, first, second) in enumerate(
        [(0.3, 0, 1), (0.2, 2, 3), (0.1, 4, 5), (0.02, 6, 7), (0.01, 8, 0), (0.005, 1, 4)], 1
    ):
        edge = ndtri(np.sqrt(share))
        y[(latent[:, first] < edge) & (latent[:, second] < edge)] = label
    return X, y


def words(n_rows, rng):
    """20 topics of 400 words; a text has 40 words, half of them of its topic."""
    everywhere = 1.0 / np.arange(1, 401)
    topics = everywhere * rng.gamma(0.2, size=(20, 400))
    y = rng.randint(20, size=n_rows)
    mixed = 0.5 * topics / topics.sum(axis=1, keepdims=True) + 0.5 * everywhere / everywhere.sum()
    return np.log1p(rng.poisson(40.0 * mixed[y])), y


KINDS = {"letter": clusters, "shuttle": thresholds, "text": words}


def problem_like(kind, n_rows, seed):
    """A problem of so many rows; that of Gaussian classes knows their centres."""
    if kind == "gauss":
        return make_partial_label_problem(n_rows, 64, 10, 3.0, random_state=seed, dtype=np.float32)
    X, y = KINDS[kind](n_rows, np.random.RandomState(seed))
    mask = random_candidates(y, 1.0, 2, random_state=seed)
    return Bunch(data=X.astype(np.float32), candidates=np.asarray(mask), target=y)


def measured_rows(n_rows, largest, seed, kind):
    """Fit the first rows of the largest problem; a line of the table."""
    problem = problem_like(kind, largest + UNSEEN_ROWS, seed)
    X, mask, y = problem.data[:n_rows], problem.candidates[:n_rows], problem.target[:n_rows]
    unseen = slice(largest, None)
    options = {"random_state": 0, "n_jobs": -1}
    PartialLabelClassifier(**options).fit(X[:WARM_UP_ROWS], mask[:WARM_UP_ROWS])
    start = time.process_time()
    fit, model = shortest(lambda: PartialLabelClassifier(**options).fit(X, mask), 1)
    fit_work = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    views = [view.rows for view in views_of(X, ALL_VIEWS[:N_GRAPH_VIEWS], np.random.RandomState(0))]
    engine = engine_of(X)
    how = engine.choose_search("auto", *X.shape)
    start = time.process_time()
    search, _ = shortest(
        lambda: [engine.nearest_neighbors(each, 40, search=how, n_jobs=-1) for each in views], 1
    )
    search_work = time.process_time() - start
    best = {}
    if kind == "gauss":
        best = {
            "found by centres": float(right_by_centers(problem, slice(n_rows))[0]),
            "unseen by centres": float(right_by_centers(problem, unseen)[1]),
        }
    return {
        "problem": kind,
        "seed": seed,
        "rows": n_rows,
        "found": float((model.labels_ == y).mean()),
        "unseen": float((model.predict(problem.data[unseen]) == problem.target[unseen]).mean()),
        **best,
        "fit": fit,
        "neighbour search": search,
        "ratio": fit / search,
        "fit core seconds": fit_work,
        "search core seconds": search_work,
        "ratio of core seconds": fit_work / search_work,
        "search": how,
        "peak MiB": peak,
        **{name: model.selected_[name] for name in ("ridge", "stacking", "forest", "tau")},
    }


def rows_in_processes(sizes, largest, seed, kind):
    """Measure each number of rows in a process of its own."""
    for n_rows in sizes:
        one = [sys.executable, __file__, "--one", json.dumps([n_rows, largest, seed, kind])]
        done = subprocess.run(one, check=True, stdout=subprocess.PIPE, text=True)
        yield json.loads(done.stdout.splitlines()[-1])


def made_in_shape(shape):
    problem = make_partial_label_problem(*shape, random_state=0, dtype=np.float32)
    return problem.data, problem.candidates, problem.target


def measured_on_device(name, device, repeats):
    """Fit tensors, from NumPy arrays to NumPy labels; a line of the table."""
    import torch

    X, mask, y = made_in_shape(SHAPES[name]) if name in SHAPES else PROBLEMS[name]()

    def fit():
        with config_context(array_api_dispatch=True):
            tensors = [torch.as_tensor(array).to(device) for array in (X, mask)]
            model = PartialLabelClassifier(random_state=0).fit(*tensors)
        return np.asarray(model.labels_.cpu() if hasattr(model.labels_, "cpu") else model.labels_)

    first, labels = shortest(fit, 1)
    best, _ = shortest(fit, repeats if len(X) <= 100_000 else 1)
    line = {"problem": name, "rows": len(X), "features": X.shape[1], "labels": mask.shape[1],
            "first fit": first, "fit": best, "accuracy": float((labels == y).mean())}  # fmt: skip
    if len(X) <= HOST_ROWS:
        host, model = shortest(lambda: PartialLabelClassifier(random_state=0).fit(X, mask), 1)
        line |= {"host fit": host, "equal labels": float((labels == model.labels_).mean())}
    return line


def printed(lines):
    """Print every line when it is there; return all."""
    kept = []
    for line in lines:
        kept.append(line)
        print("  ".join(f"{column} {value:.4g}" if isinstance(value, float) else f"{column} {value}"
                        for column, value in line.items()), flush=True)  # fmt: skip
    return kept


def on_device(names, device, repeats):
    for name in names:
        try:
            yield measured_on_device(name, device, repeats)
        except DatasetUnavailableError as error:
            print(f"{name} is left out: {error}")


def beside_svm(names, repeats):
    for name in names:
        try:
            line = measured(name, repeats if name != "20000 x 64" else 1)
            yield dict(zip(COLUMNS, line, strict=True))
        except DatasetUnavailableError as error:
            print(f"{name} is left out: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", help="which, separated by commas; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", help="numbers of rows, separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="of the problem that --rows cuts")
    parser.add_argument("--largest", type=int, help="rows of that problem, the most by default")
    parser.add_argument("--like", default="gauss", choices=["gauss", *KINDS], help="which problem")
    parser.add_argument("--device", help="fit tensors on this device, for instance cuda")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured_rows(*json.loads(options.one))))
        return
    names = options.problems.split(",") if options.problems else None
    if options.rows:
        sizes = [int(size) for size in options.rows.split(",")]
        lines = printed(
            rows_in_processes(sizes, options.largest or max(sizes), options.seed, options.like)
        )
    elif options.device:
        chosen = names or [*REAL_WORLD, *SHAPES]
        lines = printed(on_device(chosen, options.device, options.repeats))
    else:
        lines = printed(beside_svm(names or [*PROBLEMS], options.repeats))
    if options.out and lines:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            columns = list(dict.fromkeys(column for line in lines for column in line))
            writer.writerow(columns)
            for line in lines:
                values = [line.get(column, "") for column in columns]
                writer.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in values])


if __name__ == "__main__":
    main()
