"""From facts to drawings, one function per figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

from gmpll.apps.pages.svg import INK, PALETTE, drawing_style, to_svg
from gmpll.apps.report.comparisons import ALPHA
from gmpll.apps.report.frames import groups_of
from gmpll.apps.report.layouts import setting_name
from gmpll.apps.report.names import (
    COMPARED,
    OURS,
    PAPER_VARIANT,
    data_set_name,
    is_baseline,
    ordered_data_sets,
    ordered_methods,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gmpll.apps.report.comparisons import RankFacts

__all__ = ["Drawing", "curve_figure", "rank_figure", "sensitivity_figure"]

_MARKERS = "osD^vP<>X"
_DASHES = ("-", "--", "-.", ":")
_PANELS_PER_ROW = 3
_PANEL_SIZE = (3.5, 2.6)
_LONGEST_NAME = 36


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: stem of its file, caption, SVG, stem of the table behind it."""

    name: str
    caption: str
    svg: str
    table: str


def _line_styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give every method a colour, a marker and a dash; the paper's have the same everywhere."""
    styles: dict[str, dict[str, Any]] = {}
    own = (OURS, PAPER_VARIANT)
    known = [*COMPARED, *(m for m in methods if m not in COMPARED and m not in own)]
    for place, method in enumerate(m for m in known if not is_baseline(m)):
        styles[method] = {
            "color": PALETTE[place % len(PALETTE)],
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _DASHES[(place // 4 + place // len(PALETTE)) % len(_DASHES)],
            "linewidth": 1.2,
            "markersize": 3.6,
        }
    for method, dash in zip((m for m in methods if is_baseline(m)), cycle(_DASHES[1:])):
        styles[method] = {"color": INK, "alpha": 0.55, "linestyle": dash, "linewidth": 0.9}
    ours = {"color": INK, "marker": "*", "markersize": 7, "linewidth": 2.2, "zorder": 5}
    variant = {**ours, "linestyle": "--", "linewidth": 1.5, "markerfacecolor": "none"}
    return {**styles, OURS: ours, PAPER_VARIANT: variant}


def _new_panels(n_panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    n_columns = min(n_panels, _PANELS_PER_ROW)
    n_rows = math.ceil(n_panels / n_columns)
    width, height = _PANEL_SIZE
    # Few panels: keep room for the legend.
    figure = Figure(
        figsize=(max(width * n_columns, 2 * width), height * n_rows + 0.7),
        layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.06),
    )
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for unused in panels[n_panels:]:
        unused.set_visible(False)
    return figure, panels[:n_panels]


def _name_axes(panels: Sequence[Axes], x_name: str) -> None:
    """Name the axes at the rim only: the panels share them."""
    for place, panel in enumerate(panels):
        if place % _PANELS_PER_ROW == 0:
            panel.set_ylabel("accuracy")
        if place + _PANELS_PER_ROW >= len(panels):
            panel.set_xlabel(x_name)


def _error_line(panel: Axes, x: Any, part: pd.DataFrame, style: dict[str, Any], label: str) -> None:
    panel.errorbar(
        x,
        part["mean"],
        yerr=part["std"].fillna(0.0),
        label=_legend_text(label),
        elinewidth=0.8,
        capsize=1.8,
        **style,
    )


def _legend_text(label: str) -> str:
    """Matplotlib hides labels that begin with an underscore."""
    return _short(f"\N{ZERO WIDTH SPACE}{label}" if label.startswith("_") else label)


def _short(name: str) -> str:
    """A name of any length must leave room for the drawing; the tables have it in full."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _shared_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    entries: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=min(len(entries), 5 if len(panels) >= _PANELS_PER_ROW else 3),
            handlelength=3.2,
        )


def curve_figure(facts: pd.DataFrame, r: int) -> Drawing:
    """Draw accuracy over p for one r: a panel per data set, a line per method."""
    from matplotlib import rc_context

    part = facts[(facts["r"] == r) & (facts["measured"] > 0)]
    data_sets, methods = ordered_data_sets(part["dataset"]), ordered_methods(part["method"])
    with rc_context(drawing_style()):
        styles = _line_styles(methods)
        figure, panels = _new_panels(len(data_sets))
        for panel, data_set in zip(panels, data_sets, strict=True):
            _draw_curves(panel, part[part["dataset"] == data_set], methods, styles)
            panel.set_title(_short(data_set_name(data_set)))
        _name_axes(panels, "share p of partially labelled rows")
        _shared_legend(figure, panels)
        names = ", ".join(map(data_set_name, data_sets))
        caption = (
            f"Inductive accuracy on the controlled sets over p, with r = {r} false "
            f"candidate{'s' if r > 1 else ''}. Bars: standard deviation over the folds; lines are "
            "moved sideways a little so that they do not hide each other."
        )
        svg = to_svg(
            figure,
            f"curves-r{r}",
            f"Accuracy over p, r = {r}",
            f"Line charts for {names}; one line each for {', '.join(methods)}.",
        )
    return Drawing(f"curves-r{r}", caption, svg, f"curves-r{r}")


def _draw_curves(
    panel: Axes, part: pd.DataFrame, methods: Sequence[str], styles: dict[str, dict[str, Any]]
) -> None:
    shares = sorted(part["p"].unique())
    step = min((b - a for a, b in pairwise(shares)), default=0.1)
    for place, method in enumerate(methods):
        line = part[part["method"] == method].sort_values("p")
        if len(line):
            aside = (place - (len(methods) - 1) / 2) * step * 0.045
            _error_line(panel, line["p"] + aside, line, styles[method], method)
    panel.set_xticks(shares)


def sensitivity_figure(facts: pd.DataFrame, parameter: str, symbol: str) -> Drawing:
    """Draw accuracy over the values of one parameter: a panel per data set."""
    from matplotlib import rc_context

    part = facts[(facts["parameter"] == parameter) & (facts["measured"] > 0)]
    methods = ordered_methods(part["method"])
    groups = list(groups_of(part, ["dataset", "p", "r"]))
    with rc_context(drawing_style()):
        styles = _line_styles(methods)
        figure, panels = _new_panels(len(groups))
        names = []
        for panel, ((data_set, p, r), group) in zip(panels, groups, strict=True):
            names.append(setting_name(data_set, p, r))
            _draw_references(panel, group)
            for method in methods:
                line = group[group["method"] == method].sort_values("value")
                if len(line):
                    _error_line(panel, line["value"], line, styles[method], method)
            panel.set_title(_short(names[-1]))
            panel.set_xticks(sorted(group["value"].unique()))
        _name_axes(panels, symbol)
        _shared_legend(figure, panels)
        svg = to_svg(
            figure,
            f"sensitivity-{parameter}",
            f"Accuracy over {symbol}",
            f"Line charts for {', '.join(names)}.",
        )
    caption = f"Inductive accuracy over {symbol}. Bars: standard deviation over the folds."
    return Drawing(f"sensitivity-{parameter}", caption, svg, f"sensitivity-{parameter}")


def _draw_references(panel: Axes, group: pd.DataFrame) -> None:
    formula, best = float(group["formula"].iloc[0]), float(group["paper_best"].iloc[0])
    if not math.isnan(formula):
        panel.axvline(
            formula,
            color=PALETTE[1],
            linewidth=5,
            alpha=0.35,
            label="r by the paper's formula",
        )
    if not math.isnan(best):
        panel.axvline(
            best, color=PALETTE[0], linestyle=":", linewidth=1.6, label="best value in the paper"
        )


def rank_figure(facts: RankFacts, name: str, title: str) -> Drawing:
    """Draw a critical-difference diagram: methods that a bar joins do not differ."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
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
    return Drawing(name, caption, svg, name)
