"""What votes, missing truths and known class frequencies are worth to the default.

    python benchmarks/evidence.py votes      # items and test part of the crowd sets
    python benchmarks/evidence.py missing    # digits with the truth removed from 10 % of the sets
    python benchmarks/evidence.py prior      # the matching alone, with the true class frequencies

"votes" and "prior" need the data sets (environment variable GMPLL_DATA). Votes: the first 3000 of
``numpy.random.default_rng(0).permutation(n)`` items, all of fewer; cifar10n by counts. Prior: at
most 2500 rows of the same permutation, cosine view, 40 neighbours, 40 iterations; true frequencies
are what nobody has.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from gmpll import PartialLabelClassifier, candidates_from_votes
from gmpll.datasets import load_crowd, load_prepared, load_real_world, random_candidates
from gmpll.graph.local import LocalGraph
from gmpll.graph.views import CosineView
from gmpll.matching import LocalAffinity, match


def votes(names, seeds):
    for name in names:
        data = load_crowd(name)
        n = len(data.data)
        chosen = np.random.default_rng(0).permutation(n)[:3000] if n > 3000 else np.arange(n)
        if name == "cifar10n":
            counts = np.asarray(data.vote_counts)[chosen].astype(int)
            item, label = np.nonzero(counts)
            times = counts[item, label]
            voted = candidates_from_votes(np.repeat(item, times), np.repeat(label, times))
        else:
            table = np.asarray(data.votes)[chosen]
            item, who = np.nonzero(table >= 0)
            voted = candidates_from_votes(item, table[item, who], who)
        rows = chosen[np.asarray(voted.items, dtype=int)]
        for seed in range(seeds):
            model = PartialLabelClassifier(random_state=seed).fit(data.data[rows], voted)
            line = (
                f"{name:20s} seed {seed}   items {np.mean(model.labels_ == data.target[rows]):.3f}"
            )
            if data.data_test is not None:
                right = model.predict(data.data_test) == data.target_test
                line += f"   test {np.mean(right):.3f}"
            print(line, flush=True)


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["votes", "missing", "prior"])
    parser.add_argument("--datasets", default="labelme,sentiment-polarity,cifar10n")
    parser.add_argument("--seeds", type=int, default=1, help="random states, for votes")
    options = parser.parse_args()
    if options.what == "votes":
        votes(options.datasets.split(","), options.seeds)
    else:
        {"missing": missing, "prior": prior}[options.what]()
