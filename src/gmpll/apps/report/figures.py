"""From facts to drawings, one function per figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from gmpll.apps.pages.svg import INK, PALETTE, drawing_style, to_svg
from gmpll.apps.report.comparisons import ALPHA, RankFacts
from gmpll.apps.report.layouts import setting_name
from gmpll.apps.report.names import (
    BASELINES,
    COMPARED,
    DEFAULT,
    OURS,
    data_set_name,
    ordered_data_sets,
    ordered_methods,
)
from gmpll.apps.report.scores_table import groups_of

_MARKERS = "osD^vP<>X"
_DASHES = ("-", "--", "-.", ":")
_PANELS_PER_ROW = 3
_PANEL_SIZE = (3.5, 2.6)
_LONGEST_NAME = 36


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: stem of its files, and of those of its table; caption; SVG."""

    name: str
    caption: str
    svg: str

    @property
    def table(self) -> str:
        """Stem of the files of the table behind it."""
        return self.name


def _line_styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give every method a colour, a marker and a dash; the paper's have the same everywhere."""
    styles: dict[str, dict[str, Any]] = {}
    unknown = (m for m in methods if m not in (*COMPARED, *BASELINES, OURS, DEFAULT))
    for place, method in enumerate((*COMPARED, *unknown)):
        styles[method] = {
            "color": PALETTE[place % len(PALETTE)],
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _DASHES[(place // 4 + place // len(PALETTE)) % len(_DASHES)],
            "linewidth": 1.2,
            "markersize": 3.6,
        }
    for method, dash in zip((m for m in methods if m in BASELINES), cycle(_DASHES[1:])):
        styles[method] = {"color": INK, "alpha": 0.55, "linestyle": dash, "linewidth": 0.9}
    ours = {"color": INK, "marker": "*", "markersize": 7, "linewidth": 2.2, "zorder": 5}
    variant = {**ours, "linestyle": "--", "linewidth": 1.5, "markerfacecolor": "none"}
    return {**styles, OURS: ours, DEFAULT: variant}


def _draw_panels(titles: Sequence[str], x_name: str, draw: Callable[[Axes, int], None]) -> Figure:
    """Make a grid of panels, let each be drawn, name the axes and add one legend for all."""
    n_columns = min(len(titles), _PANELS_PER_ROW)
    n_rows = math.ceil(len(titles) / n_columns)
    width, height = _PANEL_SIZE
    # Few panels: keep room for the legend.
    figure = Figure(
        figsize=(max(width * n_columns, 2 * width), height * n_rows + 0.7),
        layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.06),
    )
    panels: list[Axes] = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for unused in panels[len(titles) :]:
        unused.set_visible(False)
    entries: dict[str, Any] = {}
    for place, (panel, title) in enumerate(zip(panels, titles, strict=False)):
        draw(panel, place)
        panel.set_title(_short(title))
        if place % _PANELS_PER_ROW == 0:  # the panels share their axes
            panel.set_ylabel("accuracy")
        if place + _PANELS_PER_ROW >= len(titles):
            panel.set_xlabel(x_name)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=min(len(entries), 5 if len(titles) >= _PANELS_PER_ROW else 3),
            handlelength=3.2,
        )
    return figure


def _error_line(panel: Axes, x: Any, part: pd.DataFrame, style: dict[str, Any], label: str) -> None:
    # Matplotlib hides labels that begin with an underscore.
    shown = f"\N{ZERO WIDTH SPACE}{label}" if label.startswith("_") else label
    panel.errorbar(
        x,
        part["mean"],
        yerr=part["std"].fillna(0.0),
        label=_short(shown),
        elinewidth=0.8,
        capsize=1.8,
        **style,
    )


def _short(name: str) -> str:
    """A name of any length must leave room for the drawing; the tables have it in full."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def curve_figure(facts: pd.DataFrame, r: int) -> Drawing:
    """Draw accuracy over p for one r: a panel per data set, a line per method."""
    part = facts[(facts["r"] == r) & (facts["measured"] > 0)]
    data_sets, methods = ordered_data_sets(part["dataset"]), ordered_methods(part["method"])
    styles, titles = _line_styles(methods), [data_set_name(data_set) for data_set in data_sets]

    def draw(panel: Axes, place: int) -> None:
        of_set = part[part["dataset"] == data_sets[place]]
        shares = sorted(of_set["p"].unique())
        step = min((b - a for a, b in pairwise(shares)), default=0.1)
        for rank, method in enumerate(methods):
            line = of_set[of_set["method"] == method].sort_values("p")
            if len(line):
                aside = (rank - (len(methods) - 1) / 2) * step * 0.045
                _error_line(panel, line["p"] + aside, line, styles[method], method)
        panel.set_xticks(shares)

    with rc_context(drawing_style()):
        svg = to_svg(
            _draw_panels(titles, "share p of partially labelled rows", draw),
            f"curves-r{r}",
            f"Accuracy over p, r = {r}",
            f"Line charts for {', '.join(titles)}; one line each for {', '.join(methods)}.",
        )
    caption = (
        f"Inductive accuracy on the controlled sets over p, with r = {r} false "
        f"candidate{'s' if r > 1 else ''}. Bars: standard deviation over the folds; lines are "
        "moved sideways a little so that they do not hide each other."
    )
    return Drawing(f"curves-r{r}", caption, svg)


def sensitivity_figure(facts: pd.DataFrame, parameter: str, symbol: str) -> Drawing:
    """Draw accuracy over the values of one parameter: a panel per data set."""
    part = facts[(facts["parameter"] == parameter) & (facts["measured"] > 0)]
    methods = ordered_methods(part["method"])
    styles, groups = _line_styles(methods), list(groups_of(part, ["dataset", "p", "r"]))
    titles = [setting_name(*setting) for setting, _ in groups]

    def draw(panel: Axes, place: int) -> None:
        _, group = groups[place]
        _draw_references(panel, group)
        for method in methods:
            line = group[group["method"] == method].sort_values("value")
            if len(line):
                _error_line(panel, line["value"], line, styles[method], method)
        panel.set_xticks(sorted(group["value"].unique()))

    with rc_context(drawing_style()):
        svg = to_svg(
            _draw_panels(titles, symbol, draw),
            f"sensitivity-{parameter}",
            f"Accuracy over {symbol}",
            f"Line charts for {', '.join(titles)}.",
        )
    caption = f"Inductive accuracy over {symbol}. Bars: standard deviation over the folds."
    return Drawing(f"sensitivity-{parameter}", caption, svg)


def _draw_references(panel: Axes, group: pd.DataFrame) -> None:
    formula, best = float(group["formula"].iloc[0]), float(group["paper_best"].iloc[0])
    if not math.isnan(formula):
        style: dict[str, Any] = {"color": PALETTE[1], "linewidth": 5, "alpha": 0.35}
        panel.axvline(formula, label="r by the paper's formula", **style)
    if not math.isnan(best):
        style = {"color": PALETTE[0], "linestyle": ":", "linewidth": 1.6}
        panel.axvline(best, label="best value in the paper", **style)


def rank_figure(facts: RankFacts, name: str, title: str) -> Drawing:
    """Draw a critical-difference diagram: methods that a bar joins do not differ."""
    from scikit_posthocs import critical_difference_diagram

    ranks = facts.average_ranks
    with rc_context(drawing_style()):
        figure = Figure(figsize=(8, 1.5 + 0.17 * len(ranks)), layout="constrained")
        panel = figure.subplots()
        panel.grid(False)
        panel.spines["top"].set_visible(True)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=20))
        critical_difference_diagram(
            ranks,
            facts.pairwise_p_values,
            alpha=ALPHA,
            ax=panel,
            label_fmt_left=f"{{label:.{_LONGEST_NAME}}} ({{rank:.2f}}) ",
            label_fmt_right=f" ({{rank:.2f}}) {{label:.{_LONGEST_NAME}}}",
            elbow_props={"color": INK, "linewidth": 0.8},
            marker_props={"color": INK, "s": 14},
            crossbar_props={"color": PALETTE[1], "linewidth": 3.5},
            text_h_margin=0.25,
        )
        svg = to_svg(
            figure,
            name,
            title,
            "Average ranks: "
            + ", ".join(f"{method} {rank:.2f}" for method, rank in ranks.items())
            + f". Critical difference {facts.critical_difference:.2f}.",
        )
    caption = (
        f"{title}: average rank over {len(facts.data_sets)} data sets, 1 is best. Methods that a "
        f"bar joins are less than the critical difference {facts.critical_difference:.2f} apart "
        "(Nemenyi, 0.05)."
    )
    return Drawing(name, caption, svg)
