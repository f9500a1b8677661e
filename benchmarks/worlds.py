"""Every method in every world: how far it is from the best one, wherever sets come from.

    python benchmarks/worlds.py --out worlds.csv [--jobs 16] [--seeds 0,1] [--half design]
    python benchmarks/worlds.py --table worlds.csv [more.csv ...] [--figures figures.csv]

A *world* is a way in which candidate sets arise, a *base* is a data set with true labels, which
serve to make the sets and to score. Of every base at most ``--rows`` random rows are fitted on and
up to 500 others are predicted; labels of fewer than five training rows are left out. A figure is
the accuracy of a method on a base in a world, on training rows (``labels_``) or on unseen ones,
averaged over seeds; its regret is what it lacks to the best method there, in points. The best
one is known in hindsight only: with few rows and seeds a part of every regret is luck.

Constants are chosen on design figures (a design base in a design world) and reported on report
figures (a report base in a report world); the others are mixed. Each task (base, world, seed,
method) is a process with one thread and a time limit; its result is appended to the CSV file at
once, and a run that begins again leaves out what the file has. Of several results of a task, in a
file (``--retry``) or several files, the last one counts; ``--tag`` tells two versions of a method
apart. Bases beyond those of scikit-learn need the environment variable GMPLL_DATA and are skipped
where their file is absent.
"""

import argparse
import csv
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import sys
import tempfile
import time
import warnings
import zlib
from collections import deque
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn import datasets as bundled
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds_methods import ALL_METHODS, LOSSES, NETWORKS, TRIVIAL, VOTE_METHODS, Problem

from gmpll.datasets import (
    cooccurring_candidates,
    instance_dependent_candidates,
    is_available,
    load_prepared,
    load_uci,
    random_candidates,
)

EMBEDDED = ("digits", "wine", "breast_cancer", "iris")
PREPARED = ("20newsgroups", "fashion-mnist")
DESIGN_BASES = ("digits", "glass", "vehicle", "satimage", "20newsgroups", "abalone", "iris")
REPORT_BASES = (
    "wine", "breast_cancer", "ecoli", "dermatology", "segment", "letter", "pendigits",
    "fashion-mnist",
)  # fmt: skip
DESIGN_WORLDS = ("uniform", "dictionary", "instance", "votes-many", "votes-few", "votes-pairs")
REPORT_WORLDS = ("frequent", "cooccurrence", "missing", "longtail", "counts")
BASES, WORLDS = DESIGN_BASES + REPORT_BASES, DESIGN_WORLDS + REPORT_WORLDS
HALVES = ("design", "report", "mixed")
TEST_ROWS, FEWEST_ROWS = 500, 5
#: Most frequent label to rarest one in the worlds whose rows are thinned out.
SKEW = {"frequent": 10, "longtail": 30}
#: Shares of good, careless, hostile and indifferent annotators.
ANNOTATORS = (0.5, 0.3, 0.1, 0.1)
KEY = ["base", "world", "seed", "rows", "method"]
COLUMNS = [*KEY, "half", "training", "unseen", "seconds", "status",
           "n_training", "n_unseen", "n_labels", "mean_set"]  # fmt: skip


def half_of(base, world):
    sides = {base in DESIGN_BASES, world in DESIGN_WORLDS}
    return "mixed" if len(sides) == 2 else "design" if sides == {True} else "report"


# Bases


def load_base(name):
    if name in EMBEDDED:
        X, target = getattr(bundled, f"load_{name}")(return_X_y=True)
    else:
        if name in PREPARED:
            data = load_prepared(name)
        else:
            data = load_uci(name, all_rows=True, download_if_missing=False)
        X, target = data.data, data.target
    X = np.asarray(X, dtype=np.float64)
    if name == "fashion-mnist":
        X = PCA(50, random_state=0).fit(X[:5000]).transform(X)
    return X, np.unique(target, return_inverse=True)[1]


def draw_base(name, world, rows, seed):
    """Draw rows; return the features and labels of training rows and of unseen ones."""
    X, y = load_base(name)
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    order = rng.permutation(len(X))
    if world in SKEW:
        order = rng.permutation(thinned(order, y, SKEW[world], rows + TEST_ROWS))
    n_test = min(TEST_ROWS, len(order) // 3)
    test, train = order[:n_test], order[n_test:][:rows]
    kept = np.flatnonzero(np.bincount(y[train], minlength=y.max() + 1) >= FEWEST_ROWS)
    train, test = train[np.isin(y[train], kept)], test[np.isin(y[test], kept)]
    return X[train], np.searchsorted(kept, y[train]), X[test], np.searchsorted(kept, y[test])


def thinned(order, y, skew, size):
    """Keep rows such that label frequencies fall geometrically, gently where labels are few."""
    counts = np.bincount(y)
    ranked = np.argsort(-counts, kind="stable")
    share = min(skew, 5 * 2 ** (len(counts) - 2)) ** -np.linspace(0, 1, len(counts))
    size = min(size, counts.max() * share.sum())
    most = np.empty(len(counts), dtype=int)
    most[ranked] = np.maximum(np.ceil(size * share / share.sum()), 2.5 * FEWEST_ROWS)
    left, kept = most.copy(), []
    for row in order:
        if left[y[row]] > 0:
            left[y[row]] -= 1
            kept.append(row)
    return np.array(kept)


# Worlds: (X, y, rng) -> mask, or for votes (item, annotator, label)


def spread(q):
    """Share of rows with more than one candidate, and how many are added there."""
    return (0.5, 1) if q == 2 else (0.8, 1 if q == 3 else 2 if q <= 8 else 3)


def legacy(rng):
    return np.random.RandomState(rng.integers(2**31))


def few_features(X, rng):
    """A part of the features, as a hurried look at a row sees it."""
    count = min(X.shape[1], max(2, round(X.shape[1] / 3)))
    return X[:, rng.permutation(X.shape[1])[:count]]


def confusions(X, y, rng):
    """Out-of-fold probabilities of a weak model, with a little of everything."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    folds = KFold(5, shuffle=True, random_state=legacy(rng))
    found = cross_val_predict(model, few_features(X, rng), y, cv=folds, method="predict_proba")
    return 0.9 * found + 0.1 / found.shape[1]


def label_distances(X, y):
    """Distances between the centres of the labels; a label is infinitely far from itself."""
    Z = StandardScaler().fit_transform(X)
    centres = np.array([Z[y == label].mean(axis=0) for label in range(y.max() + 1)])
    distances = cdist(centres, centres)
    np.fill_diagonal(distances, np.inf)
    return distances


def one_hot(y):
    return np.eye(y.max() + 1, dtype=bool)[y]


def uniform(X, y, rng):
    p, r = spread(y.max() + 1)
    return random_candidates(y, p, r, random_state=legacy(rng))


def instance(X, y, rng):
    q = y.max() + 1
    return instance_dependent_candidates(
        few_features(X, rng), y, mean_candidates=min(2.5, 1 + 0.45 * (q - 1)),
        random_state=legacy(rng),
    )  # fmt: skip


def dictionary(X, y, rng, singles=0.6):
    """A word's rows share one set: the labels that its rows have, and now and then one more.

    Words are clusters of the features. Words of one label are joined with words of a near label,
    or words of several labels are split by label, until the wanted share of rows has one candidate.
    """
    n, q = len(y), y.max() + 1
    Z = StandardScaler().fit_transform(X)
    clusters = MiniBatchKMeans(max(2, n // 8), n_init=1, random_state=legacy(rng)).fit_predict(Z)
    words = [np.flatnonzero(clusters == word) for word in np.unique(clusters)]
    rng.shuffle(words)
    pure = [word for word in words if len(set(y[word])) == 1]
    ambiguous = [word for word in words if len(set(y[word])) > 1]
    near = np.exp(-label_distances(X, y) / np.median(cdist(Z[:200], Z[:200])) * 4)
    near /= near.sum(axis=1, keepdims=True)
    while ambiguous and sum(map(len, pure)) < singles * n:
        word = ambiguous.pop()
        pure += [word[y[word] == label] for label in np.unique(y[word])]
    while sum(map(len, pure)) > (singles + 0.02) * n:
        word = pure.pop(0)
        label = rng.choice(q, p=near[y[word[0]]])
        partners = [number for number, other in enumerate(pure) if y[other[0]] == label]
        partner = pure.pop(rng.choice(partners)) if partners else word[:0]
        ambiguous.append(np.concatenate([word, partner]))
    mask = one_hot(y)
    frequency = np.bincount(y) / n
    for word in ambiguous:
        found = mask[word].any(axis=0)
        if found.sum() < 2 or rng.random() < 0.2:
            odds = np.where(found, 0.0, frequency)
            if odds.sum() > 0:
                found[rng.choice(q, p=odds / odds.sum())] = True
        mask[word] = found
    return mask


def frequent(X, y, rng):
    """Distractors are drawn by how frequent they are as truths."""
    p, r = spread(y.max() + 1)
    mask = one_hot(y)
    rows = rng.permutation(len(y))[: round(p * len(y))]
    keys = np.log(np.bincount(y)) + rng.gumbel(size=(len(rows), y.max() + 1))
    keys[mask[rows]] = -np.inf
    mask[rows[:, None], np.argsort(-keys, axis=1)[:, :r]] = True
    return mask


def cooccurrence(X, y, rng):
    """The nearest other label is a companion that most sets have."""
    q = y.max() + 1
    p, r = spread(q)
    return cooccurring_candidates(
        y, p, min(r, 2), epsilon=0.7 if q > 3 or (q == 3 and r == 1) else 1.0,
        companions=label_distances(X, y).argmin(axis=1), random_state=legacy(rng),
    )  # fmt: skip


def missing(X, y, rng, share=0.1):
    """Uniform candidates, but a share of the rows has what a weak model says for the truth."""
    mask = uniform(X, y, rng)
    weak = confusions(X, y, rng)
    for row in rng.permutation(len(y))[: round(share * len(y))]:
        mask[row, y[row]] = False
        odds = np.where(np.arange(len(weak[row])) == y[row], 0.0, weak[row])
        mask[row, rng.choice(len(odds), p=odds / odds.sum())] = True
    return mask


def crowd(X, y, rng, fewest, most, pairs=0.0):
    """Votes of annotators of very different skill and diligence.

    Good and careless ones err where a weak model errs, towards what it confuses, and are better
    at some labels than at others; hostile ones mostly give another label, always the same for the
    same truth; indifferent ones have one answer, or any. With ``pairs``, good and careless ones
    often name two labels.
    """
    n, q = len(y), y.max() + 1
    weak = confusions(X, y, rng)
    ease = np.log(weak[np.arange(n), y] / (1 - weak[np.arange(n), y]))
    ease = (ease - ease.mean()) / max(ease.std(), 1e-9)
    wrong = np.where(one_hot(y), 0.0, weak)
    wrong /= wrong.sum(axis=1, keepdims=True)
    w = max(most, 12, n // 25)
    kind = rng.permutation(np.repeat(np.arange(4), np.ceil(np.array(ANNOTATORS) * w).astype(int)))
    kind = kind[:w]
    skill = np.where(kind == 0, rng.normal(2.2, 0.5, w), rng.normal(0.0, 0.5, w))
    by_label = rng.normal(0.0, 0.7, (w, q))
    shift = (np.arange(q) + rng.integers(1, q, (w, 1))) % q
    habit = np.where(rng.random(w) < 0.5, rng.integers(q, size=w), -1)
    activity = np.minimum(0.2 + rng.pareto(1.5, w), 4.0)
    votes = []
    for i in range(n):
        per = rng.integers(fewest, most + 1)
        for a in rng.choice(w, per, replace=False, p=activity / activity.sum()):
            if kind[a] == 3:
                vote = habit[a] if habit[a] >= 0 else rng.integers(q)
            elif kind[a] == 2 and rng.random() < 0.85:
                vote = shift[a, y[i]]
            else:
                right = 1 / (1 + np.exp(-skill[a] - by_label[a, y[i]] - 0.7 * ease[i]))
                right = 1 / q + (1 - 1 / q) * right if kind[a] < 2 else right
                vote = y[i] if rng.random() < right else rng.choice(q, p=wrong[i])
            votes.append((i, a, vote))
            if kind[a] < 2 and q > 2 and rng.random() < pairs * (1 + kind[a]):
                second = y[i] if rng.random() < 0.5 else rng.choice(q, p=wrong[i])
                if second != vote:
                    votes.append((i, a, second))
    return tuple(np.array(votes).T)


MAKERS = {
    "uniform": uniform,
    "dictionary": dictionary,
    "instance": instance,
    "votes-many": lambda X, y, rng: crowd(X, y, rng, 4, 9),
    "votes-few": lambda X, y, rng: crowd(X, y, rng, 1, 3),
    "votes-pairs": lambda X, y, rng: crowd(X, y, rng, 2, 4, pairs=0.3),
    "frequent": frequent,
    "cooccurrence": cooccurrence,
    "missing": missing,
    "longtail": uniform,
    "counts": lambda X, y, rng: crowd(X, y, rng, 2, 8),
}
VOTE_WORLDS = ("votes-many", "votes-few", "votes-pairs", "counts")


def make_problem(base, world, seed, rows):
    X, y, X_test, y_test = draw_base(base, world, rows, seed)
    rng = np.random.default_rng([*(zlib.crc32(name.encode()) for name in (base, world)), seed])
    made = MAKERS[world](X, y, rng)
    if world not in VOTE_WORLDS:
        return Problem(X, made, y, X_test, y_test)
    mask = np.zeros((len(y), y.max() + 1), dtype=bool)
    mask[made[0], made[2]] = True
    return Problem(X, mask, y, X_test, y_test, made, named=world != "counts")


# Tasks


def build(path, base, world, seed, rows):
    Path(path).write_bytes(pickle.dumps(make_problem(base, world, seed, rows)))
    return {}


def score(path, method, seed):
    """Accuracy of a method, and what the problem is like."""
    problem = pickle.loads(Path(path).read_bytes())
    started = time.perf_counter()
    labels, unseen = (ALL_METHODS | VOTE_METHODS)[method](problem, seed)
    return {
        "training": round(float((labels == problem.y).mean()), 5),
        "unseen": "" if unseen is None else round(float((unseen == problem.y_test).mean()), 5),
        "seconds": round(time.perf_counter() - started, 2),
        "n_training": len(problem.y),
        "n_unseen": len(problem.y_test),
        "n_labels": problem.mask.shape[1],
        "mean_set": round(float(problem.mask.sum(axis=1).mean()), 3),
    }


def work(pipe, function, arguments):
    warnings.simplefilter("ignore")
    try:
        answer = {"status": "ok", **function(*arguments)}
    except Exception as error:
        answer = {"status": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    pipe.send(answer)


def run_jobs(jobs, n_workers, limit):
    """Yield (name, answer) of jobs (name, function, arguments) as their processes end."""
    fork = multiprocessing.get_context("fork")
    waiting, running = deque(jobs), {}
    try:
        while waiting or running:
            while waiting and len(running) < n_workers:
                name, function, arguments = waiting.popleft()
                pipe, theirs = fork.Pipe(duplex=False)
                process = fork.Process(target=work, args=(theirs, function, arguments))
                process.start()
                theirs.close()
                running[pipe] = name, process, time.monotonic()
            ended = multiprocessing.connection.wait(list(running), timeout=1.0)
            for pipe, (name, process, started) in list(running.items()):
                if pipe in ended:
                    try:
                        answer = pipe.recv()
                    except EOFError:
                        answer = {"status": "the process died"}
                elif time.monotonic() - started > limit:
                    process.kill()
                    answer = {"status": "over the limit", "seconds": limit}
                else:
                    continue
                process.join()
                pipe.close()
                del running[pipe]
                yield name, answer
    finally:
        for _, process, _ in running.values():
            process.kill()


def finished_tasks(path, retry):
    """Return the keys of the tasks in a file, with ``retry`` of those that succeeded.

    A line that a killed run left half is cut off.
    """
    if not path.exists():
        return set()
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with path.open("rb+") as file:
            file.truncate(len(whole))
    lines = csv.DictReader(whole.decode().splitlines())
    kept = (line for line in lines if line["status"] == "ok" or not retry)
    return {tuple(line[name] for name in KEY) for line in kept}


def wanted_problems(options):
    """(base, world, seed): seeds one after the other, problems of a seed in a mixed order."""
    problems = []
    for base in options.bases:
        if base not in EMBEDDED and not is_available(base):
            print(f"{base} is skipped: its file is not in the data folder.", file=sys.stderr)
            continue
        for world in options.worlds:
            if options.half in ("all", half_of(base, world)):
                problems += [(base, world, seed) for seed in options.seeds]
    random.Random(0).shuffle(problems)
    return sorted(problems, key=lambda problem: problem[2])


def run(options):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the processes of tasks, too
    done, tasks = finished_tasks(options.out, options.retry), {}
    for base, world, seed in wanted_problems(options):
        named = ALL_METHODS | (VOTE_METHODS if world in VOTE_WORLDS else {})
        for method in options.methods or named:
            key = base, world, seed, options.rows, method + options.tag
            if method in named and tuple(map(str, key)) not in done:
                tasks.setdefault((base, world, seed), []).append((key, method))
    total, finished, started = sum(map(len, tasks.values())), 0, time.monotonic()
    print(f"{total} tasks on {len(tasks)} problems; {len(done)} are in the file already.")
    if not total:
        return
    with tempfile.TemporaryDirectory() as folder, options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        if file.tell() == 0:
            writer.writeheader()
        paths = {problem: f"{folder}/{number}.pickle" for number, problem in enumerate(tasks)}
        building = [(p, build, (path, *p, options.rows)) for p, path in paths.items()]
        for problem, answer in run_jobs(building, options.jobs, 10 * options.limit):
            if answer["status"] != "ok":
                total -= len(tasks.pop(problem))
                print("not made:", *problem, answer["status"], file=sys.stderr)
        jobs = [
            (key, score, (paths[problem], method, problem[2]))
            for problem, group in tasks.items()
            for key, method in group
        ]
        for key, answer in run_jobs(jobs, options.jobs, options.limit):
            row = dict(zip(KEY, key, strict=True)) | answer
            writer.writerow({**row, "half": half_of(*key[:2])})
            file.flush()
            os.fsync(file.fileno())
            finished += 1
            spent = time.monotonic() - started
            print(
                f"{finished}/{total}, {spent * (total - finished) / finished / 60:.1f} min left: "
                f"{' '.join(map(str, key))} {answer.get('training', '')} "
                f"{answer.get('unseen', '')} {answer['status']}",
                flush=True,
            )


# Table


def accuracies(paths, kind):
    """Figures in points, a row per (half, base, world) and a column per method.

    A method that lacks a seed that others have has no figure there.
    """
    results = pd.concat([pd.read_csv(path) for path in paths]).drop_duplicates(KEY, keep="last")
    if results["rows"].nunique() > 1:
        raise SystemExit("The files mix several --rows: make a table of one of them.")
    cells = results.groupby(["half", "base", "world", "method"])[kind].agg(["mean", "count"])
    mean, count = cells["mean"].unstack(), cells["count"].unstack()
    figures = 100 * mean.where(count.eq(count.max(axis=1), axis=0) & count.gt(0))
    for name in LOSSES:
        pair = [f"{name}-{network}" for network in NETWORKS]
        if set(pair) <= set(figures):
            figures[f"{name}, better one in hindsight"] = figures[pair].max(axis=1)
    return figures


def applies(method, problems):
    """Whether a method can run on problems (base, world)."""
    with_votes = problems.get_level_values("world").isin(VOTE_WORLDS)
    return with_votes | (method.split("+")[0] not in VOTE_METHODS)


def print_regrets(figures):
    """One table: mean and largest regret of every method by half and kind of rows."""
    columns = {}
    for kind, table in figures.items():
        regret = table.rsub(table.max(axis=1), axis=0)
        for half in HALVES:
            if half not in regret.index:
                continue
            part = regret.loc[half]
            cells = {}
            for method, values in part.items():
                if values.notna().any():
                    absent = int((values.isna() & applies(method, part.index)).sum())
                    where = ", ".join(values.idxmax()) + (f"; {absent} missing" if absent else "")
                    cells[method] = f"{values.mean():.1f} / {values.max():.1f} ({where})"
            columns[f"{half}, {kind} ({len(part)})"] = (cells, part.mean())
    means = pd.concat([mean for _, mean in columns.values()], axis=1).mean(axis=1)
    print("Regret to the best method in points, mean / largest (where), by number of figures:\n")
    print("| method | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for method in means.sort_values().index:
        print(f"| {method} | " + " | ".join(c.get(method, "-") for c, _ in columns.values()) + " |")


def print_lapses(figures):
    """How often each version of the default is clearly below what it should not be below."""
    for kind, table in figures.items():
        others = [name for name in table if name.split("+")[0] != "default"]
        rules = {
            "the best trivial rule by more than 0.5": ([m for m in others if m in TRIVIAL], 0.5),
            "the best other method by more than 1": (others, 1.0),
            "Dawid-Skene by more than 0.5": ([m for m in others if m == "Dawid-Skene"], 0.5),
        }
        for ours in sorted(set(table) - set(others)):
            for rule, (names, margin) in rules.items():
                lead = (table[names].max(axis=1) - table[ours]).dropna().sort_values()[::-1]
                if lead.empty:
                    continue
                below = lead[lead > margin]
                counts = [
                    f"{half} {(below.index.get_level_values(0) == half).sum()} of {number}"
                    for half in HALVES
                    if (number := (lead.index.get_level_values(0) == half).sum())
                ]
                worst = [f"{'/'.join(where)} {value:.1f}" for where, value in below[:10].items()]
                print(f"\n{kind}: {ours} below {rule}: {', '.join(counts)}")
                print("    " + ("; ".join(worst) or "never"))


def print_table(options):
    figures = {kind: accuracies(options.table, kind) for kind in ("unseen", "training")}
    print_regrets(figures)
    print_lapses(figures)
    if options.figures:
        long = pd.concat(
            {kind: table.stack().dropna() for kind, table in figures.items()}, names=["kind"]
        )
        long.round(3).rename("accuracy").to_csv(options.figures)


def names_of(known):
    def parse(text):
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"{min(unknown)} is none of {', '.join(known)}")
        return names

    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="CSV file that results are appended to")
    parser.add_argument("--table", type=Path, nargs="+", help="only print the table of these files")
    parser.add_argument("--figures", type=Path, help="with --table: write every figure to this CSV")
    parser.add_argument("--bases", type=names_of(BASES), default=BASES)
    parser.add_argument("--worlds", type=names_of(WORLDS), default=WORLDS)
    parser.add_argument("--methods", type=names_of(ALL_METHODS | VOTE_METHODS))
    parser.add_argument("--half", choices=(*HALVES, "all"), default="all")
    parser.add_argument("--seeds", type=lambda text: [*map(int, text.split(","))], default=[0])
    parser.add_argument("--rows", type=int, default=1000, help="most training rows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a task")
    parser.add_argument("--retry", action="store_true", help="run what failed before once more")
    parser.add_argument("--tag", default="", help="version of the methods, e.g. +new")
    options = parser.parse_args()
    if options.tag and not options.tag.startswith("+"):
        parser.error("--tag must begin with a plus sign, for instance +new")
    if options.table:
        print_table(options)
    elif options.out:
        run(options)
    else:
        parser.error("give --out to run, or --table to read results")


if __name__ == "__main__":
    main()
