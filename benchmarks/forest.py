"""What a forest beside the regression is worth, and whether the default gives it the right share.

    python benchmarks/forest.py [--problems lost,glass] [--folds 2] [--out CSV]

Needs the data sets (environment variable GMPLL_DATA). The problems are those of
benchmarks/study.py. Protocol: the first folds of KFold(5, shuffle=True, random_state=0); GMPLL
chooses as always, then every share of the forest is fitted beside the regression that it chose.
"unseen" is the accuracy on the held-out fold, "training" that of the labels found for the training
rows; "chosen" says how often the default took that share. Shares are compared with true labels
here alone.
"""

import argparse
import csv
import itertools
import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from study_problems import problems

from gmpll import GMPLL
from gmpll.knowledge import Prior
from gmpll.methods._selection import FOREST_SHARES

COLUMNS = ("problem", "share", "folds", "chosen", "unseen", "training")


def shares_on(X, mask, truth, folds):
    """Return (share, chosen, unseen, training) of every fold."""
    splits = KFold(5, shuffle=True, random_state=0).split(X)
    for train, test in itertools.islice(splits, folds):
        model = GMPLL(random_state=0).fit(X[train], mask[train])
        seen = model._seen
        candidates = np.ascontiguousarray(mask[train][:, seen])
        learner = model._learner(
            X[train],
            candidates,
            model._similarity,
            np.random.RandomState(0),
            Prior(),
            model.selected_["scaling"],
        )
        labels = np.flatnonzero(seen)
        for share in FOREST_SHARES:
            setting = replace(model.selection_.setting, forest=share)
            confidences = learner.confidences(setting)
            rated = learner.predictor(setting, confidences)(X[test])
            unseen = (labels[rated.argmax(axis=1)] == truth[test]).mean()
            training = (labels[confidences.argmax(axis=1)] == truth[train]).mean()
            yield share, share == model.selected_["forest"], unseen, training


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="", help="names or beginnings; all by default")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--out", help="also write the table to this CSV file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = []
    for name, (X, mask, truth, _) in problems():
        if not name.startswith(tuple(options.problems.split(","))):
            continue
        found = np.array(list(shares_on(X, mask, truth, options.folds)), dtype=float)
        for share in FOREST_SHARES:
            chosen, unseen, training = found[found[:, 0] == share, 1:].mean(axis=0).round(4)
            lines.append((name, share, options.folds, chosen, unseen, training))
            print(
                f"{name:24s} share {share:.2f} chosen {chosen:.2f}  unseen {unseen:.3f}  "
                f"training {training:.3f}",
                flush=True,
            )
    summarize(lines)
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(lines)


def summarize(lines):
    """Print means over the problems: no forest, the default's choice, the best in hindsight."""
    table = {}
    for name, share, _, chosen, unseen, _ in lines:
        table.setdefault(name, []).append((share, chosen, unseen))
    alone, taken, best = [], [], []
    for rows in map(np.array, table.values()):
        alone.append(rows[rows[:, 0] == 0, 2][0])
        taken.append((rows[:, 1] * rows[:, 2]).sum())
        best.append(rows[:, 2].max())
    regret = np.subtract(best, taken)
    print(
        f"{len(table)} problems: no forest {np.mean(alone):.4f}, as chosen {np.mean(taken):.4f}, "
        f"best {np.mean(best):.4f}; regret {regret.mean():.4f}, at worst {regret.max():.4f}"
    )


if __name__ == "__main__":
    main()
