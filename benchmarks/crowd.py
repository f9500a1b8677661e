"""Labels from annotators' votes: ours against majority vote, Dawid-Skene and other models.

    python benchmarks/crowd.py [--datasets labelme,sentiment-polarity,cifar10n]

Needs the data sets (environment variable GMPLL_DATA; folder crowd): the first 3000 of
default_rng(0).permutation(n) items, labelme all 1000 with its test images; the spread is the
standard error over items. Of the others, crowd-kit and cleanlab run if they are installed. Invented
crowds are in benchmarks/votes.py.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler, normalize

from gmpll.candidates import candidates_from_votes
from gmpll.evidence.annotators import AnnotatorModel
from gmpll.evidence.ridge import KernelRidge


def majority_vote(item, who, label, n, q, *_):
    counts = np.zeros((n, q))
    np.add.at(counts, (item, label), 1.0)
    return counts + 1e-6 * np.random.default_rng(0).random(counts.shape)


def dawid_skene(item, who, label, n, q, n_annotators, max_iter=100):
    """Plain EM with confusion matrices of maximum likelihood."""
    P = majority_vote(item, who, label, n, q).round(0)
    P /= P.sum(axis=1, keepdims=True)
    for _ in range(max_iter):
        counts = np.full((n_annotators, q, q), 1e-10)
        np.add.at(counts, (who, label), P[item])
        counts /= counts.sum(axis=1, keepdims=True)
        logs = np.tile(np.log(P.mean(axis=0) + 1e-12), (n, 1))
        np.add.at(logs, item, np.log(counts[who, label]))
        new = softmax(logs, axis=1)
        if np.abs(new - P).max() < 1e-6:
            break
        P = new
    return P


def one_coin(item, who, label, n, q, n_annotators, max_iter=100):
    """EM with one accuracy for every annotator."""
    P = majority_vote(item, who, label, n, q).round(0)
    P /= P.sum(axis=1, keepdims=True)
    votes = np.bincount(who, minlength=n_annotators)
    for _ in range(max_iter):
        right = np.bincount(who, P[item, label], n_annotators)
        accuracy = np.clip(right / np.maximum(votes, 1), 1e-6, 1 - 1e-6)
        logs = np.zeros((n, q))
        np.add.at(logs, (item, label), np.log(accuracy * (q - 1) / (1 - accuracy))[who])
        new = softmax(logs, axis=1)
        if np.abs(new - P).max() < 1e-6:
            break
        P = new
    return P


def voted(item, who, label, n, q, named=True):
    """Votes in the library's form; the labels 0 ... q-1 that occur."""
    return candidates_from_votes(item, label, who if named else None, all_items=range(n))


def ours(item, who, label, n, q, n_annotators, named=True, out_of_sample=None, model=None):
    votes = voted(item, who, label, n, q, named)
    classes = votes.candidates.classes
    learners = None
    if out_of_sample is not None:
        learners = [lambda P, f=f: f(P) for f in out_of_sample]
    model = model or AnnotatorModel()
    model.fit(votes, learners)
    P = np.zeros((n, q))
    P[:, classes] = model.posterior_
    return P


VOTES_ONLY: dict[str, Callable] = {
    "majority": majority_vote,
    "Dawid-Skene": dawid_skene,
    "one-coin": one_coin,
    "counts": lambda *a: ours(*a, named=False),
    "ours": ours,
}


def ridge_of(X):
    Z = StandardScaler().fit_transform(np.asarray(X, dtype=float))
    views = [Z, normalize(Z)]
    return KernelRidge(views, width=1.0, ridge=0.1, rng=np.random.RandomState(0))


def load(name):
    path = Path(os.environ["GMPLL_DATA"]) / "crowd" / f"{name}.npz"
    data = np.load(path)
    n, q = data["counts"].shape
    rows = np.arange(n)
    if name != "labelme":
        rows = np.random.default_rng(0).permutation(n)[:3000]
    votes = data["votes"][rows]
    item, who = np.nonzero(votes >= 0)
    label = votes[item, who]
    _, who = np.unique(who, return_inverse=True)
    return data, rows, (item, who, label, len(rows), q, int(who.max()) + 1)


def others(given, X):
    """Yield names and labels by other packages, as they ship them."""
    item, who, label, n, _, n_annotators = given
    try:
        import pandas as pd
        from crowdkit.aggregation import GLAD, MACE, DawidSkene

        frame = pd.DataFrame({"task": item, "worker": who, "label": label})
        settings = {
            "crowd-kit Dawid-Skene": DawidSkene(n_iter=100),
            "GLAD": GLAD(),
            "MACE": MACE(random_state=0),
        }
        for name, model in settings.items():
            yield name, model.fit_predict(frame).reindex(range(n)).to_numpy()
    except ImportError as error:
        print(f"  (crowd-kit does not run: {error})")
    try:
        from cleanlab.multiannotator import get_label_quality_multiannotator
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_predict

        table = np.full((n, n_annotators), np.nan)
        table[item, who] = label
        P = cross_val_predict(
            LogisticRegression(max_iter=500),
            StandardScaler().fit_transform(X),
            majority_vote(*given).argmax(axis=1),
            cv=5,
            method="predict_proba",
        )
        found = get_label_quality_multiannotator(table, P, verbose=False)
        yield "CROWDLAB", found["label_quality"]["consensus_label"].to_numpy()
    except ImportError as error:
        print(f"  (cleanlab does not run: {error})")


def run_real(arguments):
    for name in arguments.datasets:
        data, rows, given = load(name)
        X, y = data["X"][rows], data["y"][rows]
        named = name != "cifar10n"
        ridge = ridge_of(X)

        def report(method, right, started=None, name=name):
            error = np.sqrt(right.mean() * (1 - right.mean()) / len(right))
            spent = "" if started is None else f"  ({time.time() - started:.1f} s)"
            print(f"{name:20s} {method:24s} {right.mean():.3f} ± {error:.3f}{spent}", flush=True)

        for method in ("majority", "Dawid-Skene", "one-coin"):
            report(method, VOTES_ONLY[method](*given).argmax(axis=1) == y)
        if not arguments.quick:
            for method, labels in others(given, X):
                report(method, labels == y)
        for method, is_named in (("counts", False), ("votes", True)):
            if is_named and not named:
                continue
            for joint in (False, True):
                started, model = time.time(), AnnotatorModel()
                learners = [ridge.leave_one_out] if joint else None
                P = ours(*given, named=is_named, out_of_sample=learners, model=model)
                report(f"ours, {method}{' and features' * joint}", P.argmax(axis=1) == y, started)
                print(
                    f"    {model.n_iter_} iterations, weight {model.feature_weight_.round(2)}, "
                    f"gain {model.feature_gain_:.3f}, log-likelihood {model.log_likelihood_:.4f}"
                )
        if "X_test" in data:
            scaler = StandardScaler().fit(X.astype(float))
            Z = scaler.transform(data["X_test"].astype(float))
            test = ridge.predictor(P)([Z, normalize(Z)])
            report("test part, features", test.argmax(axis=1) == data["y_test"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the other packages")
    parser.add_argument(
        "--datasets",
        type=lambda text: text.split(","),
        default=["labelme", "sentiment-polarity", "cifar10n"],
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    run_real(arguments)


if __name__ == "__main__":
    main()
