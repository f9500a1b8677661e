from __future__ import annotations

from gmpll.apps.report import paper
from gmpll.apps.report.names import COMPARED, OURS
from gmpll.apps.report.paper_checks import paper_contradictions
from gmpll.datasets import list_datasets
from gmpll.methods.gmpll import set_size_rule

CONTROLLED = {info.name for info in list_datasets() if info.kind == "uci"}


def test_tables_are_complete():
    methods = {OURS, *COMPARED}
    real_world = {"lost", "msrcv2", "yahoo-news", "birdsong", "soccer-player", "fg-net"}
    for printed in paper.ACCURACY.values():
        assert set(printed) == {(method, name) for method in methods for name in real_world}
    assert set(paper.WIN_TIE_LOSS) == {(name, method) for name in CONTROLLED for method in COMPARED}
    assert set(paper.BETA) == set(paper.R_FORMULA) == set(paper.R_BEST) == real_world
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


def test_printed_row_sums_add_up_and_column_sums_do_not():
    sentences = paper_contradictions()["win/tie/loss"]
    # All nine rows add up, so only the eight columns are named; so the counts were read rightly.
    assert len(sentences) == len(COMPARED)
    assert all("its column adds up to" in sentence for sentence in sentences)
    assert any("142/0/42 for LSB-CMM" in s and "164/3/22" in s for s in sentences)


def test_other_contradictions():
    found = paper_contradictions()
    assert any("0.612" in sentence for sentence in found["transductive"])
    better_yet_marked_worse = [s for s in found["transductive"] if "higher mean" in s]
    assert len(better_yet_marked_worse) == 3
    assert found["inductive"] == [
        "Table 4 leaves the best figure on BirdSong (PL-ECOC, 0.740) without bold type."
    ]
    assert len(found["r"]) == len(found["beta"]) == len(found["real-world data"]) == 1


def test_a_contradiction_that_is_corrected_is_no_longer_reported(monkeypatch):
    monkeypatch.setitem(paper.R_FORMULA, "fg-net", 5)
    assert paper_contradictions()["r"] == []


def test_the_formula_is_that_of_the_method():
    """Eq. (10) rounds to the nearest integer; of two that are as near, to the even one."""
    assert set_size_rule(2.33, 16) == 3
    assert [set_size_rule(mean, 10) for mean in (1.5, 2.5, 3.5)] == [2, 4, 4]
    assert set_size_rule(1.0, 1) == 1


def test_a_printed_accuracy_is_read_with_its_mark_and_its_type():
    read = paper.PrintedAccuracy.parse("0.667±0.014*∘")
    assert read == paper.PrintedAccuracy(0.667, 0.014, "∘", True)
