"""The table of the crowd experiment: labels found from annotators' votes."""

from __future__ import annotations

import pandas as pd

from gmpll.apps.pages.tables import MISSING, Cell, Row, Table, figure
from gmpll.apps.report.names import data_set_name
from gmpll.apps.report.scores_table import of_experiment

#: Measure of the scores -> which rows it is taken over.
_PARTS = {"transductive": "items", "inductive": "test part"}


def crowd_table(scores: pd.DataFrame) -> Table | None:
    """Lay out the accuracy on the voted items and on the test parts; None without any figure."""
    done = of_experiment(scores, "crowd").query("status == 'ok'")
    data_sets = list(done["dataset"].unique())
    facts = done.groupby(["dataset", "method"], sort=False)[list(_PARTS)].agg(["mean", "std"])
    columns = [
        (data_set, measure)
        for data_set in data_sets
        for measure in _PARTS
        if done.loc[done["dataset"] == data_set, measure].notna().any()
    ]
    if not columns:
        return None
    best = {
        (data_set, measure): facts.loc[data_set, (measure, "mean")].max()
        for data_set, measure in columns
    }
    rows = []
    for method in done["method"].unique():  # in the order of the declaration: ours come last
        cells = [Cell(method)]
        for data_set, measure in columns:
            if (data_set, method) not in facts.index:
                cells.append(Cell(MISSING))
                continue
            mean, std = facts.loc[(data_set, method), measure]
            cells.append(Cell(figure(mean, std), strong=mean >= best[data_set, measure]))
        rows.append(Row(cells))
    notes = [
        "± is the standard deviation over the random states, each of which draws other items where "
        "a set has more than are used. Bold: best mean.",
        "Votes say nothing about unseen items: the test part is predicted by a logistic regression "
        "on the labels that a method found, by the method itself where it learns from features.",
    ]
    if "cifar10n" in data_sets:
        notes.append(
            "The annotators of cifar10n are not named: methods that learn from features are given "
            "counts of votes, the others take the three columns of votes for three annotators."
        )
    flat = facts.set_axis(["_".join(column) for column in facts.columns], axis=1)
    return Table(
        "crowd",
        "Share of right labels found from votes",
        ["Method", *(f"{data_set_name(name)}, {_PARTS[measure]}" for name, measure in columns)],
        rows,
        flat.reset_index(),
        notes,
    )
