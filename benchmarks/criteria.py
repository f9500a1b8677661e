"""What the study says: how criteria rank settings, and what the defaults are worth elsewhere.

    python benchmarks/criteria.py [--study results/study]

Reads ``settings.csv.gz`` (``benchmarks/study.py``, five folds), ``choices.csv.gz`` (with
``--grid choices``) and, if it is there, ``balances.csv.gz`` (with ``--grid balances --folds 3``).
Criteria that a file has no column of are left out, and so is a criterion on a problem where it has
no value. Beside them it makes

``criteria.csv``
    for every problem and label-free criterion: the rank correlation with the true accuracy over the
    settings of the grid, and the regret, i.e. the accuracy of the best setting in hindsight minus
    that of the setting with the best value of the criterion (chosen fold by fold);
``choice.csv``
    the same for the alternatives that the default really compares, held out as the default does;
``balance.csv``
    the same for settings that differ in the balance and the width of the kernel;
``defaults.csv``
    for every constant of the default: the value that is best on average over all *other* data sets
    (all problems made from the same one are left out together), what it reaches on the one left
    out, what the default reaches there, and the best in hindsight;
``alternatives.csv``
    accuracy of what the lift with prior chooses among all alternatives of the default, and among
    those of them that leave the z-scores themselves out;
``ablation.csv``
    accuracies on unseen and training rows with one constant of the default changed at a time, for
    the real-world sets and as means over the corrupted ones (data sets weigh the same).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

CRITERIA = ["covering rate", "candidate lift", "lift with prior", "approximated accuracy",
            "partial likelihood", "expected lift", "set likelihood",
            "set likelihood, own balance", "hidden singles"]  # fmt: skip
PARAMETERS = ["views", "neighbors", "balance", "regressions", "iterations", "sharpness"]
DEFAULT = {"neighbors": 40, "balance": 0.5, "iterations": 10, "sharpness": 2.0}
REAL = ["lost", "msrcv2", "birdsong", "fg-net"]
#: The regressions around which constants are changed.
REGRESSIONS = ["((0.5, 0.1),)", "((1.5, 0.1),)"]


def read(path: Path) -> pd.DataFrame:
    """Read the fits; ``source`` is the data set that a problem was made from."""
    fits = pd.read_csv(path)
    fits = fits[fits["dataset"] != "dataset"].copy()  # headers of joined parts
    numbers = ["fold", "neighbors", "balance", "iterations", "sharpness", "unseen", "training"]
    numbers += [criterion for criterion in CRITERIA if criterion in fits]
    fits[numbers] = fits[numbers].apply(pd.to_numeric)
    fits["source"] = fits["dataset"].str.split(" ").str[0]
    return fits


def rank_criteria(fits: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation and regret of every criterion on every problem."""
    rows = []
    for name, problem in fits.groupby("dataset", sort=False):
        known = [c for c in CRITERIA if c in fits and problem[c].notna().all()]
        means = problem.groupby(PARAMETERS)[["unseen", *known]].mean()
        best = means["unseen"].max()
        for criterion in known:
            chosen = problem.loc[problem.groupby("fold")[criterion].idxmax(), "unseen"].mean()
            correlation = means["unseen"].corr(means[criterion], method="spearman")
            rows.append((name, criterion, correlation, best, chosen, best - chosen))
    columns = ["dataset", "criterion", "rank correlation", "best", "chosen", "regret"]
    return pd.DataFrame(rows, columns=columns)


def left_out(fits: pd.DataFrame) -> pd.DataFrame:
    """Leave one data set out for every constant of the default."""
    rows = []
    for parameter, default in {"views": "zr", **DEFAULT}.items():
        free = {name: value for name, value in {"views": "zr", **DEFAULT}.items()
                if name != parameter}  # fmt: skip
        part = fits[(fits[list(free)] == pd.Series(free)).all(axis=1)]
        part = part[part["regressions"].isin(REGRESSIONS)]
        table = part.groupby(["source", parameter])["unseen"].mean().unstack(parameter)
        table = table.dropna(axis=1)
        for source in table.index if len(table) > 1 else []:
            others = table.drop(index=source).mean()
            rows.append((parameter, source, default, table.loc[source, default], others.idxmax(),
                         table.loc[source, others.idxmax()], table.loc[source].idxmax(),
                         table.loc[source].max()))  # fmt: skip
    return pd.DataFrame(rows, columns=["parameter", "left out", "default", "accuracy of default",
                                       "best elsewhere", "its accuracy", "best here",
                                       "accuracy of best"])  # fmt: skip


def among(choices: pd.DataFrame) -> pd.DataFrame:
    """What is chosen with and without the third view."""

    def chosen(part: pd.DataFrame) -> pd.Series:
        best = part.groupby(["dataset", "fold"], sort=False)["lift with prior"].idxmax()
        return part.loc[best].groupby("dataset", sort=False)["unseen"].mean()

    table = {"among all": chosen(choices), "among both": chosen(choices[choices["views"] == "zr"])}
    return pd.DataFrame(table).reset_index()


def ablation(fits: pd.DataFrame) -> pd.DataFrame:
    """Change one constant at a time."""
    fits = fits[fits["regressions"].isin(REGRESSIONS)]
    default = {"views": "zr", **DEFAULT}
    is_default = {name: fits[name] == value for name, value in default.items()}
    rows = []
    for parameter in [None, *default]:
        others = [name for name in default if name != parameter]
        part = fits[pd.concat([is_default[name] for name in others], axis=1).all(axis=1)]
        if parameter is not None:
            part = part[~is_default[parameter][part.index]]
        for value, changed in part.groupby(parameter) if parameter else [("", part)]:
            means = changed.groupby(["source"])[["unseen", "training"]].mean()
            row = {"changed": f"{parameter} {value}" if parameter else "nothing"}
            corrupted = means.drop(index=REAL, errors="ignore")
            for name, values in [*((n, means.loc[n]) for n in REAL if n in means.index),
                                 ("corrupted", corrupted.mean())]:  # fmt: skip
                row |= {f"{name} {kind}": values[kind] for kind in ("unseen", "training")}
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", default="results/study", type=Path)
    folder = parser.parse_args().study
    fits = read(folder / "settings.csv.gz")
    grid = fits[fits["regressions"].str.count(r"\(") == 2]
    choices = read(folder / "choices.csv.gz")
    rankings = {"criteria": rank_criteria(grid), "choice": rank_criteria(choices)}
    if (folder / "balances.csv.gz").exists():
        rankings["balance"] = rank_criteria(read(folder / "balances.csv.gz"))
    for name, table in {
        **rankings,
        "defaults": left_out(fits),
        "ablation": ablation(fits),
        "alternatives": among(choices),
    }.items():
        table.round(4).to_csv(folder / f"{name}.csv", index=False)
    for name, table in rankings.items():
        summary = table.groupby("criterion")[["rank correlation", "regret"]].agg(["mean", "max"])
        print(f"\n{name}, {table['dataset'].nunique()} problems\n", summary.round(4).to_string())
    table = pd.read_csv(folder / "defaults.csv")
    table["loss of default"] = table["its accuracy"] - table["accuracy of default"]
    table["regret"] = table["accuracy of best"] - table["accuracy of default"]
    print("\nleave one data set out\n", table.groupby("parameter")[["loss of default", "regret"]]
          .agg(["mean", "max"]).round(4).to_string())  # fmt: skip


if __name__ == "__main__":
    main()
