from __future__ import annotations

from gmpll.apps.report import paper
from gmpll.apps.report.names import COMPARED, OURS
from gmpll.apps.report.paper_checks import paper_contradictions
from gmpll.apps.report.rules import candidates_by_formula


def test_tables_are_complete():
    methods = {OURS, *COMPARED}
    real_world = {"lost", "msrcv2", "yahoo-news", "birdsong", "soccer-player", "fg-net"}
    for printed in (paper.INDUCTIVE, paper.TRANSDUCTIVE):
        assert set(printed) == {(method, name) for method in methods for name in real_world}
    assert set(paper.WIN_TIE_LOSS) == {
        (name, method) for name in paper.CONTROLLED_DATA for method in COMPARED
    }
    assert set(paper.BETA) == set(paper.R_FORMULA) == set(paper.R_BEST) == real_world
    everything = real_world | set(paper.CONTROLLED_DATA)
    assert set(paper.RUNNING_SECONDS) == set(paper.TESTING_SECONDS) == everything
    assert set(paper.PRINTED_NAMES) == everything


def test_column_sums_of_the_printed_accuracies():
    """A misread digit would show."""

    def total(printed, data_set):
        return round(sum(f.mean for (_, name), f in printed.items() if name == data_set), 3)

    assert total(paper.INDUCTIVE, "lost") == 5.794
    assert total(paper.INDUCTIVE, "fg-net") == 0.469
    assert total(paper.TRANSDUCTIVE, "msrcv2") == 5.865
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


def test_a_contradiction_that_is_mended_is_no_longer_reported(monkeypatch):
    monkeypatch.setitem(paper.R_FORMULA, "fg-net", 5)
    assert paper_contradictions()["r"] == []


def test_formula_rounds_halves_up():
    assert candidates_by_formula(1.5, 10) == 3
    assert candidates_by_formula(2.5, 10) == 4  # to even would also be 4
    assert candidates_by_formula(3.5, 10) == 5
