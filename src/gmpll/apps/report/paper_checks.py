"""Where the paper's printed figures contradict each other.

A reader who compares our figures with the paper's has to know which of the printed ones cannot be
right. Every sentence here is computed from :mod:`gmpll.apps.report.paper`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gmpll.apps.report import paper
from gmpll.apps.report.names import OURS, data_set_name
from gmpll.datasets import dataset_info
from gmpll.methods.gmpll import set_size_rule

#: The paper's configurations: seven shares p times three numbers r.
N_CONFIGURATIONS = 21
#: The paper averages over ten folds.
N_FOLDS = 10


def paper_contradictions() -> dict[str, list[str]]:
    """Return the contradictions found, a list of sentences per printed table."""
    return {
        "win/tie/loss": [*_wrong_counts(), *_wrong_sums()],
        "inductive": list(_odd_accuracies("inductive")),
        "transductive": list(_odd_accuracies("transductive")),
        "r": list(_wrong_r()),
        "beta": list(_other_beta()),
        "real-world data": list(_missing_data()),
    }


def _wrong_counts() -> Iterator[str]:
    for (data_set, method), counts in paper.WIN_TIE_LOSS.items():
        if sum(counts) != N_CONFIGURATIONS:
            yield (
                f"Table 3 counts {counts} for {method} on {data_set_name(data_set)}, "
                f"which makes {sum(counts)} comparisons instead of {N_CONFIGURATIONS}."
            )


def _wrong_sums() -> Iterator[str]:
    sums = (paper.WIN_TIE_LOSS_DATA_SUMS, "row"), (paper.WIN_TIE_LOSS_METHOD_SUMS, "column")
    for axis, (printed_sums, line) in enumerate(sums):
        for name, printed in printed_sums.items():
            counts = [c for key, c in paper.WIN_TIE_LOSS.items() if key[axis] == name]
            added = paper.Counts(*map(sum, zip(*counts, strict=True)))
            if added != printed:
                yield (
                    f"Table 3 prints the sum {printed} for {data_set_name(name)}; "
                    f"its {line} adds up to {added}."
                )


def _odd_accuracies(measure: str) -> Iterator[str]:
    table, printed = f"Table {paper.TABLE_NUMBERS[measure]}", paper.ACCURACY[measure]
    # No sample of n numbers between 0 and 1 has a larger standard deviation than an even split
    # between the two ends.
    largest_std = (N_FOLDS / (4 * (N_FOLDS - 1))) ** 0.5
    for (method, data_set), figure in printed.items():
        ours = printed[OURS, data_set].mean
        where = f"{method} on {data_set_name(data_set)}"
        if figure.std > largest_std:
            yield (
                f"{table} prints the standard deviation {figure.std} for {where}; "
                f"ten accuracies cannot have more than {largest_std:.3f}."
            )
        for mark, verdict, mean, wrong in (
            ("•", "better", "higher", figure.mean > ours),
            ("∘", "worse", "lower", figure.mean < ours),
        ):
            if figure.mark == mark and wrong:
                yield (
                    f"{table} marks GM-PLL ({ours:.3f}) as significantly {verdict} than {where}, "
                    f"which has the {mean} mean ({figure.mean:.3f})."
                )
    for data_set in dict.fromkeys(name for _, name in printed):
        column = {m: figure for (m, name), figure in printed.items() if name == data_set}
        best = max(column, key=lambda method: column[method].mean)
        if not column[best].bold:
            yield (
                f"{table} leaves the best figure on {data_set_name(data_set)} "
                f"({best}, {column[best].mean:.3f}) without bold type."
            )


def _wrong_r() -> Iterator[str]:
    for data_set, printed in paper.R_FORMULA.items():
        statistics = dataset_info(data_set).paper
        if statistics is None or statistics.mean_candidates is None:
            continue
        computed = set_size_rule(statistics.mean_candidates, statistics.n_classes)
        if computed != printed:
            yield (
                f"Table 7 gives r* = {printed:g} for {data_set_name(data_set)}; "
                f"the formula gives {computed} with the figures of Table 2."
            )


def _other_beta() -> Iterator[str]:
    for data_set, in_figure in paper.FIGURE_BETA.items():
        best = paper.BETA.get(data_set, in_figure)
        if best != in_figure:
            yield (
                f"The caption of the figure over r fixes β = {in_figure} on "
                f"{data_set_name(data_set)}, where Table 6 names {best} as the best value."
            )


def _missing_data() -> Iterator[str]:
    for data_set in paper.BETA:
        if dataset_info(data_set).paper is None:
            yield f"Table 2 leaves out {data_set_name(data_set)}, which Tables 4 to 8 use."
