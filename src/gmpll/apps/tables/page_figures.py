"""The drawings of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmpll.apps.pages.svg import PALETTE, drawing_style, to_svg

if TYPE_CHECKING:
    from gmpll.apps.tables.page_facts import PageFacts

__all__ = ["confidence_figure", "frequency_figure", "map_figure"]

#: Labels with a colour of their own on the map; the others share the last colour.
_COLOURED = len(PALETTE) - 1
_MARKERS = "osD^vP<"
#: Confidence from doubtful to sure, and the place of its colour in the palette.
_STEPS = ((0.0, 0.5, 1), (0.5, 0.75, 4), (0.75, 0.95, 5), (0.95, 1.01, 0))
_MAX_BARS = 20
_MAX_NAME = 24


def confidence_figure(facts: PageFacts) -> str:
    """Draw how sure the ambiguous rows are."""
    with _style():
        figure = _figure(7.0, 2.4)
        axes = figure.subplots()
        axes.hist(facts.confidence, bins=20, range=(0, 1), color=PALETTE[0])
        axes.set_xlabel("confidence of the label")
        axes.set_ylabel("rows")
        axes.set_xlim(0, 1)
        counts, _ = np.histogram(facts.confidence, bins=4, range=(0, 1))
        said = ", ".join(f"{c} rows in quarter {k}" for k, c in enumerate(counts, start=1))
        return to_svg(figure, "confidence", "Confidence of ambiguous rows", f"Histogram: {said}.")


def frequency_figure(facts: PageFacts) -> str:
    """Draw label frequencies before and after."""
    shown = facts.frequencies[:_MAX_BARS]
    names = [_name(label) for label in shown["label"]]
    places = np.arange(len(shown))
    with _style():
        figure = _figure(7.0, 1.0 + 0.36 * len(shown))
        axes = figure.subplots()
        for offset, column, colour, words in (
            (-0.2, "expected", PALETTE[7], "before: guess in every set"),
            (0.2, "found", PALETTE[0], "after"),
        ):
            axes.barh(places + offset, shown[column], 0.36, color=colour, label=words)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlabel("rows")
        figure.legend(loc="outside upper left", ncols=2)
        said = "; ".join(
            f"{name}: {before:.0f} before, {after} after"
            for name, before, after in zip(names, shown["expected"], shown["found"], strict=True)
        )
        return to_svg(figure, "frequencies", "Label frequencies before and after", said)


def map_figure(facts: PageFacts) -> str:
    """Draw the rows in two dimensions, by label and by confidence."""
    points, labels = facts.map.points, facts.map.labels
    with _style():
        figure = _figure(9.4, 4.6)
        left, right = figure.subplots(1, 2)
        frequent = facts.frequencies.index[:_COLOURED].tolist()  # the codes of the labels
        others = ~np.isin(labels, frequent)
        if others.any():
            _dots(left, points[others], PALETTE[-1], "other labels")
        for place, code in enumerate(frequent):
            name = _name(facts.classes[code])
            _dots(left, points[labels == code], PALETTE[place], name, _MARKERS[place])
        for low, high, colour in _STEPS:
            chosen = (facts.map.confidence >= low) & (facts.map.confidence < high)
            words = f"{low:.2f} to {min(high, 1):.2f}"
            _dots(right, points[chosen], PALETTE[colour], words)
        for axes, title in ((left, "label"), (right, "confidence")):
            axes.set_title(f"by {title}")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
            axes.spines[["left", "bottom"]].set_visible(False)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(
                    loc="upper center",
                    bbox_to_anchor=(0.5, 0),
                    ncols=3,
                    fontsize=8.5,
                    markerscale=2,
                )
        said = (
            f"{len(points)} rows as points, near each other where their features are similar; the "
            f"colour shows the label on the left and its confidence on the right."
        )
        return to_svg(figure, "map", "Map of the rows", said)


def _dots(axes: Any, points: Any, colour: str, name: str, marker: str = "o") -> None:
    if len(points):
        look = {"linestyle": "none", "markersize": 3.2, "markeredgewidth": 0, "alpha": 0.75}
        axes.plot(*points.T, marker=marker, color=colour, label=name, **look)


def _name(label: str) -> str:
    """Return a name that fits, on one line, and that matplotlib does not hide."""
    text = " ".join("".join(c for c in label if c.isprintable()).split())
    text = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") or not text else text


def _style() -> Any:
    from matplotlib import rc_context

    return rc_context(drawing_style())


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
