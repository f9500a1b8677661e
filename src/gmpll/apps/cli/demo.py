"""``gmpll demo``: the main job on embedded data."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmpll._atomic_io import atomic_write
from gmpll._seeds import LARGEST_SEED
from gmpll.apps.cli.outputs import check_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Share of the digits with wrong candidates, and how many wrong ones those have.
PARTIAL_SHARE = 0.8
EXTRA_LABELS = 3
TEST_SHARE = 0.25
TABLE_ROWS = 400
SCORES, LABELS, PICTURE = "scores.csv", "labels.csv", "confidence.png"
KNOWS_THE_TRUTH = "Full supervision (knows the truth)"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demo writes.")] = Path(
        "gmpll-demo"
    ),
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_SEED, help="Seed of the split and of the wrong candidates."
        ),
    ] = 0,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Only write a CSV of digits with candidates, for gmpll disambiguate.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier demo wrote.")
    ] = False,
) -> None:
    """Resolve ambiguous labels of handwritten digits, and compare with simple baselines."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    files = [out / name for name in (SCORES, LABELS, PICTURE)] if table is None else [table]
    for file in files:
        check_file(file, force=force, option="--out" if table is None else "--table")
    problem = _digits(seed)
    mask, names = problem["mask"], _names(problem["mask"])
    if table is not None:
        header = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
        rows = ([*pixels, name] for pixels, name in zip(problem["X"].tolist(), names, strict=True))
        _write_csv(table, [*header, "candidates"], itertools.islice(rows, TABLE_ROWS))
        console.print(f"Written: {table}", soft_wrap=True)
        return
    console.print(
        f"[bold]Handwritten digits[/bold]: {len(mask)} training images, "
        f"{mask.sum(axis=1).mean():.1f} candidate labels each on average, one of them right; "
        f"{len(problem['X_test'])} unseen images."
    )
    results, model = _compare(problem, seed)
    grid = Table("method", title="Share of labels found")
    for title in ("training images", "unseen images"):
        grid.add_column(title, justify="right")
    for method, seen, unseen in results:
        grid.add_row(method, "" if seen is None else f"{seen:.3f}", f"{unseen:.3f}")
    console.print(grid)
    _write_csv(out / SCORES, ("method", "transductive", "inductive"), results)
    cells = range(len(mask)), model.classes_.searchsorted(model.labels_)
    found = model.labels_, model.label_confidences_[cells], model.label_support_[cells]
    titles = ("candidates", "label", "confidence", "support")
    _write_csv(out / LABELS, titles, zip(names, *found, strict=True))
    if not _draw(out / PICTURE, model, problem["y"], mask):
        files.pop()
        console.print("Install gmpll\\[plot] to have the picture of the confidences as well.")
    console.print("Written: " + ", ".join(map(str, files)))


def _digits(seed: int) -> dict[str, Any]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from gmpll.datasets.corruption import random_candidates

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    mask = random_candidates(y, p=PARTIAL_SHARE, r=EXTRA_LABELS, random_state=seed)
    return {"X": X, "y": y, "mask": mask, "X_test": X_test, "y_test": y_test}


def _compare(problem: dict[str, Any], seed: int) -> tuple[list[Any], Any]:
    """Return name and accuracies on seen and unseen images of every method, and the first model."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from gmpll import GMPLL, PartialLabelClassifier
    from gmpll._progress import UNKNOWN, begin, plan
    from gmpll.apps.progress import shown
    from gmpll.methods.baselines import AnyCandidate, MostFrequentCandidate, RandomCandidate

    model = PartialLabelClassifier(random_state=seed)
    learners: dict[str, Any] = {
        "gmpll": model,
        "GM-PLL, the paper's method": GMPLL(random_state=seed),
        "Classifier on any candidate": AnyCandidate(random_state=seed),
        "Most frequent candidate": MostFrequentCandidate(random_state=seed),
        "Random candidate": RandomCandidate(random_state=seed),
        KNOWS_THE_TRUTH: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    results = []
    with shown(), plan(dict.fromkeys(learners, UNKNOWN)):
        for name, learner in learners.items():
            begin(name)
            learner.fit(problem["X"], problem["y" if name == KNOWS_THE_TRUTH else "mask"])
            found = getattr(learner, "labels_", None)
            transductive = None if found is None else float((found == problem["y"]).mean())
            inductive = float(learner.score(problem["X_test"], problem["y_test"]))
            results.append((name, transductive, inductive))
    return results, model


def _write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    with atomic_write(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _names(mask: NDArray[np.bool_]) -> list[str]:
    """Return the candidates of every row as text; the digits are their own numbers."""
    return ["|".join(map(str, row.nonzero()[0])) for row in mask]


def _draw(path: Path, model: Any, truth: NDArray[np.intp], mask: NDArray[np.bool_]) -> bool:
    """Draw how sure the matching is of labels that turn out right and of wrong ones, if it can."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    confidence = model.label_confidences_.max(axis=1)
    ambiguous, right = mask.sum(axis=1) > 1, model.labels_ == truth
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    panels = ("right", right, "#0072b2"), ("wrong", ~right, "#d55e00")
    for ax, (title, rows, colour) in zip(axes, panels, strict=True):
        ax.hist(confidence[ambiguous & rows], bins=20, range=(0, 1), color=colour)
        ax.set_title(f"{(ambiguous & rows).sum()} ambiguous labels, {title}ly found")
        ax.set_xlabel("confidence of the label")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("training images")
    with atomic_write(path) as beside:
        figure.savefig(beside, dpi=150, format="png")
    return True
