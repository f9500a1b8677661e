"""What a forest beside the regression is worth, and what the default's choices cost.

    python benchmarks/forest.py [--problems lost,glass] [--large-folds 1] [--out results/forest]

Needs the data sets (environment variable GMPLL_DATA). The problems are those of
benchmarks/study.py. Protocol: KFold(5, shuffle=True, random_state=0), all five folds of sets of up
to 1800 rows and the first of larger ones; "unseen" is the accuracy on the held-out fold, "training"
that of the labels found for the training rows. GMPLL chooses as always; then there are fitted
beside each other, and compared with true labels here alone,

* each of the nine regressions, and every share of the forest beside the regression that was chosen
  and beside the one that is best on average: what do both choices cost together, against the
  setting that is best on average over the folds?
* the chosen regression with a forest of share 0.5 one of whose constants is changed: is the
  default's value also the best of the other data sets?

Tables: fits.csv (every fit), regret.csv (per problem), defaults.csv (one data set left out, with
all problems made from it). The rule for the share is tried with other numbers of standard errors
on the shares that were fitted. Problems that fits.csv holds are not run again.
"""

import argparse
import itertools
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from study_problems import problems

from gmpll import GMPLL
from gmpll.knowledge import Prior
from gmpll.methods._learner import Setting
from gmpll.methods._selection import ALTERNATIVES, ERRORS_LESS, FOREST_SHARES

REGRESSION = ["scaling", "width", "ridge"]
#: Constant of the forest -> where it is kept, its value and others.
CONSTANTS = {
    "trees": (["gmpll.methods._learner.N_TREES", "gmpll.forest.N_TREES"], 100, (50, 200)),
    "feature share": (["gmpll.forest.FEATURE_SHARE"], 0.6, (0.3, 1.0)),
    "leaf rows": (["gmpll.forest.LEAF_ROWS"], 2, (1, 5)),
    "turns": (["gmpll.methods._learner.FOREST_TURNS"], 2, (1, 4)),
}
#: Sets of more rows are large.
LARGE = 1800
#: The share with which the constants are compared.
MIDDLE = 0.5
#: Numbers of standard errors to try, of which the default is one.
ERRORS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


class Fold:
    """GMPLL on one fold: what it chose, and any other setting beside it."""

    def __init__(self, X, mask, truth, train, test):
        self.model = GMPLL(random_state=0).fit(X[train], mask[train])
        self.chosen, self.gains = self.model.selection_.setting, self.model.selection_.gains
        self.labels = np.flatnonzero(self.model._seen)
        self.candidates = np.ascontiguousarray(mask[train][:, self.labels])
        self.X, self.X_unseen = X[train], X[test]
        self.truth, self.truth_unseen = truth[train], truth[test]
        self.learners = {}

    def learner(self, scaling):
        if scaling not in self.learners:
            similarity, rng = self.model._similarity, np.random.RandomState(0)
            self.learners[scaling] = self.model._learner(
                self.X, self.candidates, similarity, rng, Prior(), scaling
            )
        return self.learners[scaling]

    def fit(self, setting, constant="", value=np.nan):
        """Return what is said of a setting, in the columns of fits.csv."""
        learner = self.learner(setting.scaling)
        confidences = learner.confidences(setting)
        rated = learner.predictor(setting, confidences)(self.X_unseen)
        beside = replace(setting, forest=self.chosen.forest) == self.chosen
        unknown = (np.nan, np.nan)
        gain, error = self.gains.get(setting.forest, unknown) if beside else unknown
        return {
            "scaling": setting.scaling,
            "width": setting.width,
            "ridge": setting.ridge,
            "share": setting.forest,
            "constant": constant,
            "value": value,
            "beside chosen": beside,
            "chosen": setting == self.chosen and not constant,
            "gain": gain,
            "error": error,
            "unseen": (self.labels[rated.argmax(axis=1)] == self.truth_unseen).mean(),
            "training": (self.labels[confidences.argmax(axis=1)] == self.truth).mean(),
        }

    def with_shares(self, setting):
        return [self.fit(replace(setting, forest=share)) for share in FOREST_SHARES[1:]]

    def with_other_constants(self):
        for constant, (places, _, values) in CONSTANTS.items():
            for value in values:
                with ExitStack() as stack:
                    for place in places:
                        stack.enter_context(patch(place, value))
                    yield self.fit(replace(self.chosen, forest=MIDDLE), constant, value)


def fits_of(folds):
    """Return the fits of one problem, a dictionary for each."""
    balance = folds[0].chosen.balance
    regressions = [Setting(balance, width, ridge, name) for name, width, ridge in ALTERNATIVES]
    rows = []
    for number, fold in enumerate(folds):
        fits = [fold.fit(setting) for setting in regressions]
        fits += fold.with_shares(fold.chosen)
        fits += fold.with_other_constants()
        rows += [{"fold": number} | row for row in fits]
    alone = np.array([row["unseen"] for row in rows if not row["share"]])
    best = regressions[int(alone.reshape(len(folds), -1).mean(axis=0).argmax())]
    for number, fold in enumerate(folds):
        if replace(fold.chosen, forest=0.0) != best:
            rows += [{"fold": number} | row for row in fold.with_shares(best)]
    return rows


def choices(fits):
    """Compare the default's choice with the best in hindsight, per problem."""
    compared = fits[fits["constant"].isna()]
    rows = []
    for name, part in compared.groupby("problem", sort=False):
        beside, alone = part[part["beside chosen"]], part[part["share"] == 0]
        rows.append(
            {
                "problem": name,
                "folds": part["fold"].nunique(),
                "no forest": beside.loc[beside["share"] == 0, "unseen"].mean(),
                "chosen": part.loc[part["chosen"], "unseen"].mean(),
                "best share": best_on_average(beside, ["share"]),
                "best regression": best_on_average(alone, REGRESSION),
                "best": best_on_average(part, [*REGRESSION, "share"]),
            }
        )
    table = pd.DataFrame(rows)
    table["regret of share"] = table["best share"] - table["chosen"]
    table["regret of regression"] = table["best regression"] - table["no forest"]
    table["regret"] = table["best"] - table["chosen"]
    return table


def best_on_average(fits, setting):
    """Return the largest mean over the folds of settings that were fitted in all of them."""
    means = fits.groupby(setting)["unseen"].agg(["mean", "size"])
    return means.loc[means["size"] == fits["fold"].nunique(), "mean"].max()


def left_out(fits):
    """Leave one data set out for every constant of the forest."""
    rows = []
    for constant, default, table in values_compared(fits):
        for source in table.index if len(table) > 1 else []:
            others = table.drop(index=source).mean()
            best = others.idxmax()
            rows.append(
                {
                    "parameter": constant,
                    "left out": source,
                    "default": default,
                    "accuracy of default": table.loc[source, default],
                    "best elsewhere": best,
                    "its accuracy": table.loc[source, best],
                    "best here": table.loc[source].idxmax(),
                    "accuracy of best": table.loc[source].max(),
                }
            )
    return pd.DataFrame(rows)


def values_compared(fits):
    """Yield name, default and the accuracies (data sets by values) of every constant."""
    beside = fits[fits["beside chosen"]]
    middle = beside[beside["share"] == MIDDLE]
    for constant, (_, default, _) in CONSTANTS.items():
        part = middle[middle["constant"].isna() | (middle["constant"] == constant)].copy()
        part["value"] = part["value"].fillna(default)
        yield constant, default, part.groupby(["source", "value"])["unseen"].mean().unstack()

    rows = []
    compared = beside[beside["constant"].isna() & beside["gain"].notna()]
    for (source, *_), part in compared.groupby(["source", "problem", "fold"], sort=False):
        part = part.sort_values("share")
        for errors in ERRORS:
            taken = (part["gain"] - errors * part["error"]).idxmax()
            rows.append((source, errors, part.loc[taken, "unseen"]))
    table = pd.DataFrame(rows, columns=["source", "errors", "unseen"])
    by_errors = table.groupby(["source", "errors"])["unseen"].mean().unstack()
    yield "standard errors", ERRORS_LESS, by_errors


def report(fits, out=None):
    """Print and write the tables."""
    tables = {"regret": choices(fits), "defaults": left_out(fits)}
    if out is not None:
        for name, table in tables.items():
            table.round(4).to_csv(out / f"{name}.csv", index=False)
    regret = tables["regret"]
    print(regret.round(3).to_string(index=False))
    means = regret.drop(columns=["problem", "folds"])
    print(f"{len(regret)} problems; mean\n{means.mean().round(4).to_string()}")
    print(f"at worst\n{means.filter(like='regret').max().round(4).to_string()}")
    defaults = tables["defaults"]
    if len(defaults):
        defaults["gain"] = defaults["its accuracy"] - defaults["accuracy of default"]
        print(defaults.groupby("parameter", sort=False).agg(
            {"default": "first", "best elsewhere": lambda column: sorted(set(column)),
             "gain": ["mean", "max"]}).round(4).to_string())  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="", help="names or beginnings; all by default")
    parser.add_argument("--large-folds", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    kept = options.out / "fits.csv" if options.out else None
    table = pd.read_csv(kept) if kept and kept.exists() else pd.DataFrame({"problem": []})
    for name, (X, mask, truth, _) in problems():
        if not name.startswith(tuple(options.problems.split(","))) or name in set(table["problem"]):
            continue
        splits = KFold(5, shuffle=True, random_state=0).split(X)
        n_folds = options.large_folds if len(X) > LARGE else 5
        folds = [Fold(X, mask, truth, *split) for split in itertools.islice(splits, n_folds)]
        rows = pd.DataFrame(fits_of(folds)).replace({"constant": {"": None}})
        rows.insert(0, "problem", name)
        rows.insert(1, "source", name.split()[0])
        table = pd.concat([table, rows.round(5)], ignore_index=True) if len(table) else rows
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            table.to_csv(kept, index=False)
        print(f"{name} done", flush=True)
    report(table, options.out)


if __name__ == "__main__":
    main()
