"""``gmpll demo``: the main job on embedded data."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
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
SCORED = ("method", "transductive", "inductive")
RESOLVED = ("candidates", "label", "confidence", "support")
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
    if table is not None:
        check_file(table, force=force, option="--table")
        digits = _digits(seed)
        names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
        pairs = zip(digits["X"].tolist(), _names(range(10), digits["mask"]), strict=True)
        rows = ([*pixels, candidates] for pixels, candidates in pairs)
        _write_csv(table, [*names, "candidates"], itertools.islice(rows, TABLE_ROWS))
        console.print(f"Written: {table}", soft_wrap=True)
        return
    for name in (SCORES, LABELS, PICTURE):
        check_file(out / name, force=force)

    problem = _digits(seed)
    mask = problem["mask"]
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
    _write_csv(out / SCORES, SCORED, results)
    cells = range(len(mask)), model.classes_.searchsorted(model.labels_)
    found = model.labels_, model.label_confidences_[cells], model.label_support_[cells]
    names = _names(model.classes_, mask)
    _write_csv(out / LABELS, RESOLVED, zip(names, *found, strict=True))
    written = [SCORES, LABELS]
    if _draw(out / PICTURE, model, problem["y"], mask):
        written.append(PICTURE)
    else:
        console.print("Install gmpll\\[plot] to have the picture of the confidences as well.")
    console.print("Written: " + ", ".join(str(out / name) for name in written))


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


def _names(classes: Sequence[Any], mask: NDArray[np.bool_]) -> list[str]:
    """Return the candidates of every row as text."""
    return ["|".join(str(classes[code]) for code in row.nonzero()[0]) for row in mask]


def _draw(path: Path, model: Any, truth: NDArray[np.intp], mask: NDArray[np.bool_]) -> bool:
    """Draw how sure the matching is of labels that turn out right and of wrong ones, if it can."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    confidence = model.label_confidences_.max(axis=1)
    ambiguous = mask.sum(axis=1) > 1
    right = model.labels_ == truth
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for ax, chosen, title, colour in (
        (axes[0], ambiguous & right, "right", "#0072b2"),
        (axes[1], ambiguous & ~right, "wrong", "#d55e00"),
    ):
        ax.hist(confidence[chosen], bins=20, range=(0, 1), color=colour)
        ax.set_title(f"{chosen.sum()} ambiguous labels, {title}ly found")
        ax.set_xlabel("confidence of the label")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("training images")
    with atomic_write(path) as beside:
        figure.savefig(beside, dpi=150, format="png")
    return True
