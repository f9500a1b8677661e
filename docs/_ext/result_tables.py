"""Tables of measured figures, read from the folder of results when the site is built.

``.. result-table:: inductive`` puts one of :data:`TABLES` on a page. No figure is typed twice.
"""

from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gmpll.apps.report.names import data_set_name, ordered_methods

RESULTS = Path(__file__).parents[2] / "results"
#: The real-world sets that were measured, in the paper's order.
DATASETS = ["lost", "msrcv2", "fg-net", "birdsong"]


def accuracies(part):
    """Mean and standard deviation over the folds, by method and data set."""
    rows = _read(f"real-world/report/tables/{part}.csv")
    rows["figure"] = [
        f"{mean:.3f} ± {std:.3f}" for mean, std in zip(rows["mean"], rows["std"], strict=True)
    ]
    return _by_method(rows, "figure")


def differences_from_the_paper(part):
    """Measured mean minus printed mean."""
    rows = _read(f"real-world/report/tables/{part}.csv")
    rows = rows[rows["paper_difference"].notna()].copy()
    rows["figure"] = [f"{difference:+.3f}" for difference in rows["paper_difference"]]
    return _by_method(rows, "figure")


def win_tie_loss():
    """Win/tie/loss of GM-PLL on the controlled sets."""
    rows = _read("controlled/report/tables/win-tie-loss.csv")
    rows["figure"] = [f"{row.win}/{row.tie}/{row.loss}" for row in rows.itertuples()]
    table = rows.pivot(index="method", columns="dataset", values="figure")
    table = table[list(dict.fromkeys(rows["dataset"]))].rename(columns=data_set_name)
    return _sorted_methods(table)


def ablation():
    """Accuracy on unseen and on training rows with one part left out at a time."""
    rows = _read("ablation.csv")
    rows["figure"] = [f"{row.unseen:.3f} / {row.training:.3f}" for row in rows.itertuples()]
    table = rows.pivot(index="variant", columns="dataset", values="figure")
    order = list(dict.fromkeys(rows["variant"]))
    return table.loc[order, DATASETS].rename(columns=data_set_name).rename_axis("variant")


def fit_times():
    """Seconds of one fit of every method at several sizes."""
    rows = _read("methods.csv")
    rows["figure"] = [f"{seconds:.2f}" for seconds in rows["fit_seconds"]]
    table = rows.pivot(index="method", columns="rows", values="figure")
    return _sorted_methods(table.rename(columns=lambda size: f"{size} rows"))


def running_times():
    """Seconds of a fit with its prediction, beside those that the paper prints."""
    rows = _read("timing/report/tables/times.csv")
    rows["seconds"] = [f"{s:.1f}" for s in rows["running_mean"]]
    table = _by_method(rows, "seconds")
    printed = rows.drop_duplicates("dataset").set_index("dataset")["paper_running"]
    table.loc["printed in the paper, its machine"] = [f"{printed[name]:.1f}" for name in DATASETS]
    return table


def full_graph():
    """Matching on the full graph beside the dense algorithm and the bare products."""
    rows = _read("full_graph.csv").astype(str)
    names = {
        "seconds": "seconds", "to_bare": "times bare products", "dense_to_ours": "dense / ours",
        "stored_mib": "MiB, kept", "streamed_mib": "MiB, streamed",
    }  # fmt: skip
    return rows.set_index("shape")[list(names)].rename(columns=names)


def local_graph():
    """Fits on a local graph beside their search for neighbours."""
    rows = _read("local_graph.csv")
    rows = rows[rows["varied"] == "rows"].set_index("rows")
    names = {
        "search": "search", "search_seconds": "search, s", "fit_seconds": "fit, s",
        "ratio": "fit / search", "recall": "recall", "peak_mib": "MiB",
    }  # fmt: skip
    return rows[list(names)].rename(columns=names)


def neighbors():
    """The approximate search for neighbours beside PyNNDescent."""
    rows = _read("neighbors.csv")
    cell = [f"{s:.1f} s, {r:.3f}" for s, r in zip(rows["seconds"], rows["recall"], strict=True)]
    table = rows.assign(cell=cell).pivot(index="data", columns="method", values="cell")
    first = rows.drop_duplicates("method").set_index("method")["first_seconds"]
    table.loc["first call in a process, 3000 rows"] = [f"{first[m]:.1f} s" for m in table.columns]
    return table[rows["method"].unique()].loc[
        [*rows["data"].unique(), "first call in a process, 3000 rows"]
    ]


def default():
    """The default beside a support vector machine on the true labels."""
    rows = _read("default.csv").set_index("problem")
    table = rows[["rows", "features"]].astype(object)
    table["fit, s"] = [f"{seconds:.2f}" for seconds in rows["fit"]]
    table["fit / SVM's"] = [f"{ratio:.1f}" for ratio in rows["ratio"]]
    table["one row, ms"] = [f"{1000 * seconds:.2f}" for seconds in rows["one row"]]
    many = rows["10,000 rows"]
    table["10,000 rows, s"] = [f"{seconds:.2f}" for seconds in many]
    table["10,000 rows / SVM's"] = [f"{r:.2f}" for r in many / rows["svm 10,000 rows"]]
    return table


def default_on_gpu():
    """The default on one GPU, host to host."""
    rows = _read("gpu/default.csv").set_index("problem")
    table = rows[["rows", "features", "labels"]].astype(object)
    for column in ("first fit", "fit", "host fit"):
        name = column.replace("host fit", "fit on the host") + ", s"
        table[name] = ["" if pd.isna(seconds) else f"{seconds:.2f}" for seconds in rows[column]]
    equal = rows["equal labels"]
    table["equal labels"] = ["" if pd.isna(share) else f"{100 * share:.1f} %" for share in equal]
    return table


def reconstruction():
    """Weights of unseen rows beside a loop over ``scipy.optimize.nnls``."""
    names = {
        "microseconds": "microseconds a row", "loop_microseconds": "loop",
        "times_faster": "times faster", "difference": "largest difference",
    }  # fmt: skip
    return _read("reconstruction.csv").set_index("features")[list(names)].rename(columns=names)


def gpu():
    """The tensor engine on one GPU beside plain PyTorch."""
    rows = _read("gpu/gpu.csv")
    rows = rows[rows["target"].notna() & rows["variant"].str.contains("default|high, fused,")]
    table = rows.set_index(["task", "shape"])[
        ["variant", "seconds", "plain_over_ours", "max_abs_difference", "equal_labels"]
    ]
    table["seconds"] = [f"{seconds:.3g}" for seconds in table["seconds"]]
    table["plain_over_ours"] = [f"{ratio:.1f}" for ratio in table["plain_over_ours"]]
    names = {"plain_over_ours": "plain PyTorch / ours", "max_abs_difference": "largest difference",
             "equal_labels": "equal labels"}  # fmt: skip
    return table.rename(columns=names).astype(object).where(table.notna().to_numpy(), "")


TABLES = {
    "default": default,
    "default-gpu": default_on_gpu,
    "full-graph": full_graph,
    "local-graph": local_graph,
    "neighbors": neighbors,
    "reconstruction": reconstruction,
    "gpu": gpu,
    "inductive": lambda: accuracies("inductive"),
    "transductive": lambda: accuracies("transductive"),
    "inductive-difference": lambda: differences_from_the_paper("inductive"),
    "transductive-difference": lambda: differences_from_the_paper("transductive"),
    "win-tie-loss": win_tie_loss,
    "ablation": ablation,
    "fit-times": fit_times,
    "running-times": running_times,
}


def _read(name):
    return pd.read_csv(RESULTS / name)


def _by_method(rows, values):
    table = rows.pivot(index="method", columns="dataset", values=values)
    return _sorted_methods(table[DATASETS].rename(columns=data_set_name)).fillna("")


def _sorted_methods(table):
    return table.loc[ordered_methods(table.index)]


class ResultTable(SphinxDirective):
    """Put a table of results on the page."""

    required_arguments = 1

    def run(self):
        """Return the table."""
        name = directives.choice(self.arguments[0], tuple(TABLES))
        for path in RESULTS.rglob("*.csv"):
            self.env.note_dependency(str(path))
        frame = TABLES[name]()
        frame.columns.name = None
        return [table_node(frame.reset_index())]


def table_node(frame):
    """Return a table of the site."""
    group = nodes.tgroup(cols=frame.shape[1])
    group += [nodes.colspec(colwidth=1) for _ in frame.columns]
    group += nodes.thead("", _row(frame.columns))
    group += nodes.tbody("", *(_row(cells) for cells in frame.itertuples(index=False)))
    return nodes.table("", group, classes=["results"])


def _row(cells):
    entries = [nodes.entry("", nodes.paragraph(text=str(cell))) for cell in cells]
    return nodes.row("", *entries)


def setup(app):
    """Connect to Sphinx."""
    app.add_directive("result-table", ResultTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
