"""What missing truths and known class frequencies are worth to the default.

    python benchmarks/evidence.py missing    # digits with the truth removed from 10 % of the sets
    python benchmarks/evidence.py prior      # the matching alone, with the true class frequencies

"prior" needs the data sets (environment variable GMPLL_DATA): the first 2500 rows of
``numpy.random.default_rng(0).permutation(n)``, cosine view, 40 neighbours, 40 iterations; true
frequencies are what nobody has.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from gmpll import PartialLabelClassifier
from gmpll.datasets import load_prepared, load_real_world, random_candidates
from gmpll.graph.local import LocalGraph
from gmpll.graph.views import CosineView
from gmpll.matching import LocalAffinity, match


def missing():
    X, y = load_digits(return_X_y=True)
    for share in (0.1, 0.0):
        mask = random_candidates(y, p=0.7, r=2, random_state=0).copy()
        lacks = np.random.default_rng(0).random(len(y)) < share
        mask[lacks, y[lacks]] = False
        empty = ~mask.any(axis=1)
        mask[empty, (y[empty] + 1) % 10] = True
        model = PartialLabelClassifier(random_state=0).fit(X, mask)
        found = model.outside_probability_
        labels, suggested = np.mean(model.labels_ == y), np.mean(model.suggested_labels_ == y)
        auc = f"AUC {roc_auc_score(lacks, found):.4f}   " if lacks.any() else ""
        print(
            f"missing {share:.0%}: {auc}mean probability {found.mean():.2g}   "
            f"labels {labels:.3f}   suggested {suggested:.3f}"
        )


def prior():
    sets = {name: load_real_world(name) for name in ("lost", "msrcv2")}
    sets["pos-swedish"] = load_prepared("pos-swedish")
    for name, data in sets.items():
        rows = np.random.default_rng(0).permutation(len(data.data))[:2500]
        mask, y = np.asarray(data.candidates, dtype=bool)[rows], data.target[rows]
        view = CosineView(np.asarray(data.data, dtype=float)[rows])
        affinity = LocalAffinity(LocalGraph(view.rows, 40).weights, mask)
        frequencies = np.bincount(y, minlength=mask.shape[1]).astype(float)
        ways = {"balance 0": {}, "balance .5": {"balance": 0.5}}
        ways["capacities"] = {"expected_mass": frequencies}
        for way, options in ways.items():
            P = match(affinity, mask, max_iter=40, **options).probabilities
            print(f"{name:12s} {way:10s} {np.mean(np.where(mask, P, -1).argmax(axis=1) == y):.3f}")
        X = np.asarray(data.data, dtype=float)[rows]
        for way, known in (("classifier", None), ("with prior", frequencies)):
            model = PartialLabelClassifier(class_prior=known, random_state=0).fit(X, mask)
            print(f"{name:12s} {way:10s} {np.mean(model.labels_ == y):.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["missing", "prior"])
    {"missing": missing, "prior": prior}[parser.parse_args().what]()
