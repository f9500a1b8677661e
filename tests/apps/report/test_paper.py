from __future__ import annotations

from collections.abc import Iterator

from gmpll.apps.report import paper
from gmpll.apps.report.names import COMPARED, OURS, data_set_name
from gmpll.apps.report.paper import PRINTED, column, printed_table
from gmpll.datasets import dataset_info, list_datasets
from gmpll.methods.gmpll import set_size_rule

#: What the paper says that its formula gives.
R_FORMULA = column("parameters", "r*")
#: The paper's configurations: seven shares p times three numbers r.
N_CONFIGURATIONS = 21
#: The paper averages over ten folds.
N_FOLDS = 10
CONTROLLED = {info.name for info in list_datasets() if info.kind == "uci"}


def test_tables_are_complete():
    methods = {OURS, *COMPARED}
    real_world = {"lost", "msrcv2", "yahoo-news", "birdsong", "soccer-player", "fg-net"}
    for printed in paper.ACCURACY.values():
        assert set(printed) == {(method, name) for method in methods for name in real_world}
    assert set(paper.WIN_TIE_LOSS) == {(name, method) for name in CONTROLLED for method in COMPARED}
    assert set(paper.BETA) == set(R_FORMULA) == set(paper.R_BEST) == real_world
    everything = real_world | CONTROLLED
    assert set(paper.RUNNING_SECONDS) == set(paper.TESTING_SECONDS) == everything
    assert set(paper.PRINTED_NAMES) == everything


def test_column_sums_of_the_printed_accuracies():
    """A misread digit would show."""

    def total(printed, data_set):
        return round(sum(f.mean for (_, name), f in printed.items() if name == data_set), 3)

    assert total(paper.ACCURACY["inductive"], "lost") == 5.794
    assert total(paper.ACCURACY["inductive"], "fg-net") == 0.469
    assert total(paper.ACCURACY["transductive"], "msrcv2") == 5.865
    assert round(sum(paper.RUNNING_SECONDS.values()), 3) == 13557.014


def test_testing_is_part_of_running():
    assert all(
        paper.TESTING_SECONDS[name] < seconds for name, seconds in paper.RUNNING_SECONDS.items()
    )


def test_every_count_covers_the_21_configurations():
    assert {sum(counts) for counts in paper.WIN_TIE_LOSS.values()} == {21}


def test_the_remarks_are_what_the_tables_show():
    assert paper_contradictions() == paper.REMARKS
    # All nine rows of Table 3 add up, so the counts were read rightly.
    assert all("its column adds up to" in sentence for sentence in paper.REMARKS["win-tie-loss"])


def test_a_contradiction_that_is_corrected_is_no_longer_found(monkeypatch):
    monkeypatch.setitem(R_FORMULA, "fg-net", 5)
    assert paper_contradictions()["r"] == []


def test_the_formula_is_that_of_the_method():
    """Eq. (10) rounds to the nearest integer; of two that are as near, to the even one."""
    assert set_size_rule(2.33, 16) == 3
    assert [set_size_rule(mean, 10) for mean in (1.5, 2.5, 3.5)] == [2, 4, 4]
    assert set_size_rule(1.0, 1) == 1


def test_a_printed_accuracy_is_read_with_its_mark_and_its_type():
    read = paper.PrintedAccuracy.parse("0.667±0.014*∘")
    assert read == paper.PrintedAccuracy(0.667, 0.014, "∘", True)


def paper_contradictions() -> dict[str, list[str]]:
    """Return the contradictions found, a list of sentences per printed table."""
    return {
        "win-tie-loss": [*_wrong_counts(), *_wrong_sums()],
        "inductive": list(_odd_accuracies("inductive")),
        "transductive": list(_odd_accuracies("transductive")),
        "r": list(_wrong_r()),
        "beta": list(_other_beta()),
        "data": list(_missing_data()),
    }


def _wrong_counts() -> Iterator[str]:
    for (data_set, method), counts in paper.WIN_TIE_LOSS.items():
        if sum(counts) != N_CONFIGURATIONS:
            yield (
                f"Table 3 counts {counts} for {method} on {data_set_name(data_set)}, "
                f"which makes {sum(counts)} comparisons instead of {N_CONFIGURATIONS}."
            )


def _wrong_sums() -> Iterator[str]:
    printed_counts = {
        key: paper.Counts.parse(c) for key, c in printed_table("win_tie_loss").items() if c != "-"
    }
    for axis, line in enumerate(("row", "column")):
        sums = {key[axis]: c for key, c in printed_counts.items() if key[1 - axis] == "sum"}
        for name, printed in sums.items():
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
    for data_set, printed in R_FORMULA.items():
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
    for data_set, in_figure in PRINTED["figures"]["beta"].items():
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
