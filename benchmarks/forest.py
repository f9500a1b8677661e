"""What stacking and a forest beside the regression are worth, and what the choices cost.

    python benchmarks/forest.py [--problems lost,glass] [--out results/forest]

Needs the data sets (environment variable GMPLL_DATA). The problems are those of
benchmarks/study.py. Protocol: KFold(5, shuffle=True, random_state=0), two folds of sets of up to
1800 rows and the first of larger ones; of sets of up to 600 rows, where the best of many settings
on five folds is mostly the luckiest, all folds with random_state 0, 1, 2 and 3. "unseen" is the
accuracy on the held-out fold, "training" that of the labels found for the training rows. The
classifier chooses as always; then there are fitted beside each other, and compared with true labels
here alone,

* each of the nine regressions; beside the one that was chosen and, on sets of up to 1800 rows, the
  one that is best on average, every stacking, and every share of the forest without stacking and
  with the chosen one: what do the three choices cost together, against what is best on average over
  the folds?
* on sets of up to 600 rows, in the first five folds, the chosen setting with a forest of share 0.5
  one of whose constants is changed: is the default's value also the best of the other data sets?

Tables: fits.csv (every fit), regret.csv (per problem), defaults.csv (one data set left out, with
all problems made from it). The rule for the share is tried with other numbers of standard errors
on the shares that were fitted, and each stacking for all problems. Problems that fits.csv holds
are not run again.
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
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from study_problems import problems

from gmpll import PartialLabelClassifier
from gmpll.evidence.pipeline import CandidateRows, Hyperparameters
from gmpll.evidence.selection import (
    ALTERNATIVES,
    FOREST_SHARES,
    N_STANDARD_ERRORS,
    N_STANDARD_ERRORS_SMALL,
    NO_STACKING,
    STACKING,
    Gain,
)
from gmpll.side_information import Prior

REGRESSION = ["views", "width", "ridge"]
#: Constant of the forest -> its value, and others with what takes whose place for them.
CONSTANTS = {
    "feature share": (1.0, {0.6: {"gmpll.evidence.forest.FEATURE_SHARE": 0.6}}),
    "best splits": (
        0.5,
        {
            0.0: {"gmpll.evidence.forest.RandomForestRegressor": ExtraTreesRegressor},
            1.0: {"gmpll.evidence.forest.ExtraTreesRegressor": RandomForestRegressor},
        },
    ),
    "leaf rows": (2, {1: {"gmpll.evidence.forest.LEAF_ROWS": 1}}),
}
#: Most rows of small sets and of those that are not large.
SMALL, LARGE = 600, 1800
#: Folds, and how often small sets are cut into them.
FOLDS, SHUFFLES = 5, 4
#: The share with which the constants are compared.
MIDDLE = 0.5
#: Numbers of standard errors to try.
ERRORS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)


class Fold:
    """The classifier on one fold: what it chose, and any other setting beside it."""

    def __init__(self, X, mask, truth, train, test):
        self.model = PartialLabelClassifier(random_state=0).fit(X[train], mask[train])
        self.selection, self.chosen = self.model.selection_, self.model.selection_.chosen
        self.regression = replace(self.chosen, forest=0.0, stacking=0.0, linear=0.0)
        self.stacking = (self.chosen.stacking, self.chosen.linear)
        self.labels = np.flatnonzero(self.model._seen)
        self.candidates = np.ascontiguousarray(mask[train][:, self.labels])
        self.X, self.X_unseen = X[train], X[test]
        self.truth, self.truth_unseen = truth[train], truth[test]
        self.pipelines = {}

    def pipeline(self, views):
        if views not in self.pipelines:
            rows = CandidateRows(
                self.X, self.candidates, self.labels, Prior(), self.model._similarity
            )
            self.pipelines[views] = self.model._pipeline(rows, views, np.random.RandomState(0))
        return self.pipelines[views]

    def fit(self, setting, stackings, constant="", value=np.nan):
        """Return what is said of a setting with several stackings, in the columns of fits.csv."""
        pipeline = self.pipeline(setting.views)
        confidences = pipeline.confidences(setting)
        predictor = pipeline.predictor(setting, confidences)
        rows = []
        for of_scores, of_features in dict.fromkeys(stackings):
            stacked = replace(setting, stacking=of_scores, linear=of_features)
            regression = pipeline.regression(stacked, confidences)
            if setting.forest:
                scores = replace(predictor, regression=regression)(self.X_unseen)
            else:
                scores = regression(self.X_unseen)
            rows.append(
                self.described(stacked)
                | {
                    "constant": constant,
                    "value": value,
                    "unseen": (self.labels[scores.argmax(axis=1)] == self.truth_unseen).mean(),
                    "training": (self.labels[confidences.argmax(axis=1)] == self.truth).mean(),
                }
            )
        return rows

    def described(self, setting):
        """Return a setting and what the choice knew of it."""
        beside = replace(setting, forest=0.0, stacking=0.0, linear=0.0) == self.regression
        stacking = (setting.stacking, setting.linear)
        gain = stacking_gain = Gain(np.nan, np.nan)
        if beside and not setting.forest:
            stacking_gain = dict(self.selection.stacking_gains).get(stacking, stacking_gain)
        if beside and stacking == self.stacking:
            gain = self.selection.forest_gains.get(setting.forest, gain)
        return {
            "views": "+".join(setting.views),
            "width": setting.width,
            "ridge": setting.ridge,
            "stacking": f"{setting.stacking:g}/{setting.linear:g}",
            "share": setting.forest,
            "beside chosen": beside,
            "chosen stacking": stacking == self.stacking,
            "chosen": setting == self.chosen,
            "stacking gain": stacking_gain.mean,
            "stacking error": stacking_gain.error,
            "gain": gain.mean,
            "error": gain.error,
        }

    def with_stacking_and_shares(self, setting):
        yield from self.fit(setting, STACKING[1:])
        for share in FOREST_SHARES[1:]:
            yield from self.fit(replace(setting, forest=share), [NO_STACKING, self.stacking])

    def with_other_constants(self):
        for constant, (_, values) in CONSTANTS.items():
            for value, places in values.items():
                with ExitStack() as stack:
                    for place, other in places.items():
                        stack.enter_context(patch(place, other))
                    setting = replace(self.regression, forest=MIDDLE)
                    yield from self.fit(setting, [self.stacking], constant, value)


def folds_of(X):
    """Yield rows to learn from and held-out ones, more of them the fewer rows there are."""
    n_folds = FOLDS * SHUFFLES if len(X) <= SMALL else 2 if len(X) <= LARGE else 1
    cuts = (KFold(FOLDS, shuffle=True, random_state=seed).split(X) for seed in range(SHUFFLES))
    return itertools.islice(itertools.chain.from_iterable(cuts), n_folds)


def fits_of(folds):
    """Return the fits of one problem, a dictionary for each."""
    balance = folds[0].chosen.balance
    regressions = [
        Hyperparameters(balance, views, width, ridge) for views, width, ridge in ALTERNATIVES
    ]
    rows = []
    for number, fold in enumerate(folds):
        fits = [row for setting in regressions for row in fold.fit(setting, [NO_STACKING])]
        fits += fold.with_stacking_and_shares(fold.regression)
        if len(fold.X) <= SMALL and number < FOLDS:
            fits += fold.with_other_constants()
        rows += [{"fold": number} | row for row in fits]
    alone = [row["unseen"] for row in rows if not row["share"] and row["stacking"] == "0/0"]
    best = regressions[int(np.reshape(alone, (len(folds), -1)).mean(axis=0).argmax())]
    for number, fold in enumerate(folds):
        if fold.regression != best and len(fold.X) <= LARGE:
            rows += [{"fold": number} | row for row in fold.with_stacking_and_shares(best)]
    return rows


def choices(fits):
    """Compare the default's choice with the best in hindsight, per problem."""
    compared = fits[fits["constant"].isna()]
    rows = []
    for name, part in compared.groupby("problem", sort=False):
        beside, alone = part[part["beside chosen"]], part[part["share"] == 0]
        no_forest = beside[beside["share"] == 0]
        plain = alone[alone["stacking"] == "0/0"]
        rows.append(
            {
                "problem": name,
                "folds": part["fold"].nunique(),
                "regression": no_forest.loc[no_forest["stacking"] == "0/0", "unseen"].mean(),
                "stacking": no_forest.loc[no_forest["chosen stacking"], "unseen"].mean(),
                "chosen": part.loc[part["chosen"], "unseen"].mean(),
                "best regression": best_on_average(plain, REGRESSION),
                "best beside": best_on_average(beside, ["stacking", "share"]),
                "best": best_on_average(part, [*REGRESSION, "stacking", "share"]),
            }
        )
    table = pd.DataFrame(rows)
    table["regret of regression"] = table["best regression"] - table["regression"]
    table["regret of stacking and share"] = table["best beside"] - table["chosen"]
    table["regret"] = table[["best beside", "best"]].max(axis=1) - table["chosen"]
    return table


def best_on_average(fits, setting):
    """Return the largest mean over the folds of settings that were fitted in all of them."""
    means = fits.groupby(setting)["unseen"].agg(["mean", "size"])
    return means.loc[means["size"] == fits["fold"].nunique(), "mean"].max()


def left_out(fits):
    """Leave one data set out for every constant."""
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
    middle = beside[(beside["share"] == MIDDLE) & beside["chosen stacking"]]
    middle = middle[middle["fold"] < FOLDS]
    middle = middle[middle["problem"].isin(fits.loc[fits["constant"].notna(), "problem"])]
    for constant, (default, _) in CONSTANTS.items():
        part = middle[middle["constant"].isna() | (middle["constant"] == constant)].copy()
        part["value"] = part["value"].fillna(default)
        yield constant, default, by_source(part, "value")

    fitted = beside[beside["constant"].isna()]
    alone = fitted[fitted["share"] == 0]
    penalties = by_source(alone, "stacking")
    penalties.insert(0, "chosen", by_source(alone[alone["chosen stacking"]])["unseen"])
    yield "stacking", "chosen", penalties
    small = fitted["problem"].isin(middle["problem"])
    yield "standard errors, few rows", N_STANDARD_ERRORS_SMALL, by_errors(fitted[small])
    yield "standard errors", N_STANDARD_ERRORS, by_errors(fitted[~small])


def by_source(fits, *values):
    """Return the mean accuracy of every data set, by the values of a column."""
    means = fits.groupby(["source", *values])["unseen"].mean()
    return means.unstack() if values else means.to_frame()


def by_errors(fits):
    """Choose the share with other numbers of standard errors."""
    rows = []
    compared = fits[fits["gain"].notna()]
    for (source, *_), part in compared.groupby(["source", "problem", "fold"], sort=False):
        for errors in ERRORS:
            taken = (part["gain"] - errors * part["error"]).idxmax()
            rows.append((source, errors, part.loc[taken, "unseen"]))
    return by_source(pd.DataFrame(rows, columns=["source", "errors", "unseen"]), "errors")


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
            {"default": "first", "best elsewhere": lambda column: list(dict.fromkeys(column)),
             "gain": ["mean", "max"]}).round(4).to_string())  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="", help="names or beginnings; all by default")
    parser.add_argument("--out", type=Path, help="folder for the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    kept = options.out / "fits.csv" if options.out else None
    table = pd.read_csv(kept) if kept and kept.exists() else pd.DataFrame({"problem": []})
    for name, (X, mask, truth, _) in problems():
        if not name.startswith(tuple(options.problems.split(","))) or name in set(table["problem"]):
            continue
        folds = [Fold(X, mask, truth, *split) for split in folds_of(X)]
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
