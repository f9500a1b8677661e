"""From facts to drawings, one function per figure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from gmpll.apps.experiments.statistics import RankComparison
from gmpll.apps.pages.svg import DRAWING_STYLE, INK, PALETTE, to_svg
from gmpll.apps.report.facts import ALPHA
from gmpll.apps.report.layouts import counted, in_order, setting_name
from gmpll.apps.report.names import (
    BASELINES,
    COMPARED,
    DEFAULT,
    OURS,
    data_set_name,
    ordered_methods,
)
from gmpll.apps.report.scores_table import SETTING, groups_of, rows_of

_MARKERS = "osD^vP<>X"
_BASELINE_MARKERS = "sdx+"
_DASHES = ("-", "--", "-.", ":")
_Style = dict[str, Any]
_OPEN: _Style = {"markerfacecolor": "none"}
_THIN: _Style = {"linewidth": 1.2, "markersize": 3.6}
_FAINT: _Style = {"color": INK, "alpha": 0.65, "linewidth": 0.9, "markersize": 4.5, **_OPEN}
_THICK: _Style = {"color": INK, "marker": "*", "markersize": 7, "linewidth": 2.2, "zorder": 5}
_BARS: _Style = {"elinewidth": 0.8, "capsize": 1.8}
_PANELS_PER_ROW = 3
_PANEL_SIZE = (3.5, 2.6)
_LONGEST_NAME = 36
#: Columns of facts that a vertical line shows, with its name and style.
_REFERENCES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("formula", "r by the paper's formula", {"color": PALETTE[1], "lw": 5, "alpha": 0.35}),
    ("paper_best", "best value in the paper", {"color": PALETTE[0], "ls": ":", "lw": 1.6}),
)


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: stem of its files, and of those of its table; caption; SVG."""

    name: str
    caption: str
    svg: str


def _line_styles(methods: Sequence[str]) -> dict[str, _Style]:
    """Give every method a colour, a marker and a dash; the paper's have the same everywhere."""
    unknown = (m for m in methods if m not in (*COMPARED, *BASELINES, OURS, DEFAULT))
    styles: dict[str, _Style] = {}
    for place, method in enumerate((*COMPARED, *unknown)):
        dash = _DASHES[(place // 4 + place // len(PALETTE)) % len(_DASHES)]
        color, marker = PALETTE[place % len(PALETTE)], _MARKERS[place % len(_MARKERS)]
        styles[method] = {"color": color, "marker": marker, "linestyle": dash, **_THIN}
    for method, marker, dash in zip(BASELINES, _BASELINE_MARKERS, cycle(_DASHES[1:]), strict=False):
        styles[method] = {"marker": marker, "linestyle": dash, **_FAINT}
    return {
        **styles,
        OURS: _THICK,
        DEFAULT: {**_THICK, "linestyle": "--", "linewidth": 1.5, **_OPEN},
    }


def _line_figure(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[tuple[str, pd.DataFrame]],
    x: str,
    x_name: str,
    shift: float = 0.0,
) -> Drawing:
    """Draw a grid of panels with a line per method, name the axes and add one legend for all.

    Lines are moved sideways by a share of the distance between the values of x.
    """
    methods = ordered_methods(method for _, part in panels for method in part["method"])
    width, height = _PANEL_SIZE
    with rc_context(DRAWING_STYLE):
        # Few panels: keep room for the legend.
        figure, axes = _grid_of_panels(len(panels), height, at_least=2 * width, below=0.7)
        entries: dict[str, Any] = {}
        for place, (panel, (panel_title, part)) in enumerate(zip(axes, panels, strict=False)):
            _draw_lines(panel, part, x, methods, shift)
            panel.set_title(_short(panel_title))
            if place % _PANELS_PER_ROW == 0:  # the panels share their axes
                panel.set_ylabel("accuracy")
            if place + _PANELS_PER_ROW >= len(panels):
                panel.set_xlabel(x_name)
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
        ncols = min(len(entries), 5 if len(panels) >= _PANELS_PER_ROW else 3)
        below: _Style = {"loc": "outside lower center", "ncols": ncols, "handlelength": 3.2}
        figure.legend(entries.values(), entries.keys(), **below)
        lines = f"; one line each for {', '.join(methods)}" if shift else ""
        description = f"Line charts for {', '.join(found for found, _ in panels)}{lines}."
        return Drawing(name, caption, to_svg(figure, name, title, description))


def _grid_of_panels(
    number: int, height: float, *, at_least: float, below: float = 0.0, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Make a figure with so many panels of a height, ``at_least`` so wide, with room below."""
    n_columns = min(number, _PANELS_PER_ROW)
    n_rows = math.ceil(number / n_columns)
    figure = Figure(
        figsize=(max(_PANEL_SIZE[0] * n_columns, at_least), height * n_rows + below),
        layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.06),
    )
    axes: list[Axes] = list(figure.subplots(n_rows, n_columns, squeeze=False, sharey=sharey).flat)
    for unused in axes[number:]:
        unused.set_visible(False)
    return figure, axes


def _draw_lines(
    panel: Axes, part: pd.DataFrame, x: str, methods: Sequence[str], shift: float
) -> None:
    styles, values = _line_styles(methods), sorted(part[x].unique())
    for column, label, style in _REFERENCES:
        if column in part and not math.isnan(part[column].iloc[0]):
            panel.axvline(part[column].iloc[0], label=label, **style)
    step = shift * min((b - a for a, b in pairwise(values)), default=0.1)
    for rank, method in enumerate(methods):
        line = part[part["method"] == method].sort_values(x)
        if line.empty:
            continue
        panel.errorbar(
            line[x] + (rank - (len(methods) - 1) / 2) * step,
            line["mean"],
            yerr=line["std"].fillna(0.0),
            # Matplotlib hides labels that begin with an underscore.
            label=_short(f"\N{ZERO WIDTH SPACE}{method}" if method.startswith("_") else method),
            **_BARS,
            **styles[method],
        )
    panel.set_xticks(values)


def _short(name: str) -> str:
    """A name of any length must leave room for the drawing; the tables have it in full."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def curve_figure(facts: pd.DataFrame, r: int) -> Drawing:
    """Draw accuracy over p for one r: a panel per data set, a line per method.

    With one p for every data set there is no line to draw, but a dot per method.
    """
    part = facts[(facts["r"] == r) & (facts["measured"] > 0)]
    if part.groupby("dataset")["p"].nunique().max() == 1:
        return _dot_figure(part, r)
    return _line_figure(
        f"curves-r{r}",
        f"Accuracy over p, r = {r}",
        f"Inductive accuracy on the controlled sets over p, with r = {r} false "
        f"candidate{'s' if r > 1 else ''}. Bars: standard deviation over the folds; lines are "
        "moved sideways a little so that they do not hide each other.",
        [(data_set_name(name), group) for (name,), group in groups_of(in_order(part), ["dataset"])],
        "p",
        "share p of partially labelled rows",
        0.045,
    )


def _dot_figure(part: pd.DataFrame, r: int) -> Drawing:
    """Draw accuracy by method: a panel per data set, a row per method."""
    methods = ordered_methods(part["method"])
    panels = list(groups_of(in_order(part), ["dataset", "p"]))
    name, title = f"curves-r{r}", f"Accuracy by method, r = {r}"
    with rc_context(DRAWING_STYLE):
        height = 0.7 + 0.21 * len(methods)
        figure, axes = _grid_of_panels(len(panels), height, at_least=6.0, sharey=True)
        styles = _line_styles(methods)
        for panel, ((data_set, p), group) in zip(axes, panels, strict=False):
            for row in rows_of(group):
                spread, place = 0.0 if math.isnan(row.std) else row.std, methods.index(row.method)
                panel.errorbar(row.mean, place, xerr=spread, **_BARS, **styles[row.method])
            panel.set_title(_short(f"{data_set_name(data_set)}, p = {p:g}"))
            panel.set_xlabel("accuracy")
        axes[0].set_yticks(range(len(methods)), [_short(method) for method in methods])
        axes[0].invert_yaxis()
        names = ", ".join(data_set_name(data_set) for (data_set, _), _ in panels)
        svg = to_svg(figure, name, title, f"Dots for {', '.join(methods)} on {names}.")
    caption = (
        f"Inductive accuracy of every method, with r = {counted(r, 'false candidate')}. Bars: "
        "standard deviation over the folds."
    )
    return Drawing(name, caption, svg)


def sensitivity_figure(facts: pd.DataFrame, parameter: str, symbol: str) -> Drawing:
    """Draw accuracy over the values of one parameter: a panel per data set."""
    part = facts[(facts["parameter"] == parameter) & (facts["measured"] > 0)]
    return _line_figure(
        f"sensitivity-{parameter}",
        f"Accuracy over {symbol}",
        f"Inductive accuracy over {symbol}. Bars: standard deviation over the folds.",
        [(setting_name(*setting), group) for setting, group in groups_of(part, SETTING)],
        "value",
        symbol,
    )


def rank_figure(facts: RankComparison, name: str, title: str) -> Drawing:
    """Draw a critical-difference diagram: methods that a bar joins do not differ."""
    from scikit_posthocs import critical_difference_diagram

    ranks = facts.average_ranks
    with rc_context(DRAWING_STYLE):
        figure = Figure(figsize=(8, 1.5 + 0.17 * len(ranks)), layout="constrained")
        panel = figure.subplots()
        panel.grid(False)
        panel.spines["top"].set_visible(True)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=20, min_n_ticks=1))
        drawn = critical_difference_diagram(
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
        for (bar,) in drawn["crossbars"]:  # in the order of a set, another one in every process
            bar.set_xdata(sorted(bar.get_xdata()))
        averages = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks.items())
        difference = f"Critical difference {facts.critical_difference:.2f}."
        svg = to_svg(figure, name, title, f"Average ranks: {averages}. {difference}")
    caption = (
        f"{title}: average rank over {len(facts.data_sets)} data sets, 1 is best. Methods that a "
        f"bar joins are less than the critical difference {facts.critical_difference:.2f} apart "
        "(Nemenyi, 0.05)."
    )
    return Drawing(name, caption, svg)
