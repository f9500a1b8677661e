from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gmpll.apps.report.facts import (
    accuracy_facts,
    error_facts,
    failure_facts,
    fold_summary,
    incomplete_facts,
    rank_facts,
    sensitivity_facts,
    time_facts,
    win_tie_loss_facts,
)
from gmpll.apps.report.names import data_set_name
from gmpll.apps.report.scores_table import checked_scores, printable, read_scores
from gmpll.apps.report.write import provenance_groups
from gmpll.datasets import list_datasets


def _accuracies(made_up, values, **facts):
    return [made_up.job(fold=fold, inductive=value, **facts) for fold, value in enumerate(values)]


def test_summary_counts_done_failed_and_expected_folds(made_up):
    rows = [
        *_accuracies(made_up, [0.5, 0.7, 0.6, 0.6]),
        *_accuracies(made_up, [0.2, 0.4], method="CLPL"),
        made_up.failed(made_up.job(fold=2, method="CLPL"), "no"),
    ]
    scores = checked_scores(made_up.table(*rows))
    summary = fold_summary(scores, ["dataset", "p", "r", "method"], "inductive")
    row = summary.set_index("method").loc["CLPL"]
    assert (row["done"], row["failed"], row["expected"], row["measured"]) == (2, 1, 4, 2)
    assert row["mean"] == pytest.approx(0.3)
    assert row["std"] == pytest.approx(np.std([0.2, 0.4], ddof=1))


def test_a_method_whose_jobs_all_failed_keeps_its_row(made_up):
    rows = [*_accuracies(made_up, [0.5, 0.6]), made_up.failed(made_up.job(method="CLPL"), "no")]
    facts = accuracy_facts(checked_scores(made_up.table(*rows)), "inductive")
    row = facts.set_index("method").loc["CLPL"]
    assert math.isnan(row["mean"])
    assert not row["best"]
    assert row["verdict"] == ""


def test_verdicts_agree_with_scipy_and_with_the_formula(made_up):
    ours, theirs = np.array([0.71, 0.74, 0.69, 0.75, 0.73]), np.array([0.7, 0.7, 0.68, 0.7, 0.71])
    rows = _accuracies(made_up, ours) + _accuracies(made_up, theirs, method="IPAL")
    facts = accuracy_facts(checked_scores(made_up.table(*rows)), "inductive").set_index("method")
    expected = stats.ttest_rel(ours, theirs)
    assert facts.loc["IPAL", "p_value"] == pytest.approx(expected.pvalue)
    assert facts.loc["IPAL", "verdict"] == "win"
    lead = ours - theirs
    statistic = lead.mean() / np.sqrt((1 / 5 + 1 / 4) * lead.var(ddof=1))
    p_value = 2 * stats.t.sf(statistic, 4)
    assert facts.loc["IPAL", "corrected_p_value"] == pytest.approx(p_value)
    assert p_value > 0.05
    assert facts.loc["IPAL", "corrected_verdict"] == "tie"


def test_tests_pair_folds_and_leave_baselines_out(made_up):
    rows = [
        *_accuracies(made_up, [0.5, 0.7, 0.9]),
        # Given in another order and without fold 1: pairs must still be folds 0 and 2.
        made_up.job(method="CLPL", fold=2, inductive=0.8),
        made_up.job(method="CLPL", fold=0, inductive=0.6),
        *_accuracies(made_up, [0.1, 0.1, 0.1], method="Random candidate"),
    ]
    facts = accuracy_facts(checked_scores(made_up.table(*rows)), "inductive").set_index("method")
    assert facts.loc["CLPL", "pairs"] == 2
    assert facts.loc["CLPL", "lead"] == pytest.approx(0.0)
    assert facts.loc["CLPL", "verdict"] == "tie"
    assert facts.loc["Random candidate", "verdict"] == ""


def test_the_default_is_compared_where_the_run_has_it(made_up):
    rows = [
        *_accuracies(made_up, [0.5, 0.7, 0.9]),
        *_accuracies(made_up, [0.7, 0.9, 1.0], method="gmpll"),
        *_accuracies(made_up, [0.6, 0.8, 0.9], method="CLPL"),
    ]
    facts = accuracy_facts(checked_scores(made_up.table(*rows)), "inductive").set_index("method")
    assert facts.loc["CLPL", "lead"] == pytest.approx(0.1)
    assert facts.loc["GM-PLL", "lead"] == pytest.approx(1 / 6)
    assert facts.loc["gmpll", "verdict"] == ""


def test_best_never_is_a_baseline_and_the_paper_stands_beside(made_up):
    rows = [
        *_accuracies(made_up, [0.7, 0.7]),
        *_accuracies(made_up, [0.6, 0.6], method="gmpll"),
        *_accuracies(made_up, [0.9, 0.9], method="Full supervision"),
    ]
    facts = accuracy_facts(checked_scores(made_up.table(*rows)), "inductive").set_index("method")
    assert facts["best"].to_dict() == {
        "GM-PLL": True,
        "gmpll": False,
        "Full supervision": False,
    }
    assert facts.loc["GM-PLL", "paper_difference"] == pytest.approx(0.7 - 0.737)
    assert facts.loc["GM-PLL", "paper_mean"] == 0.737
    assert math.isnan(facts.loc["gmpll", "paper_mean"])
    assert math.isnan(facts.loc["Full supervision", "paper_mean"])


def _errors(made_up, values, **facts):
    return [
        made_up.job(fold=fold, inductive_mae=value, **{"dataset": "fg-net", **facts})
        for fold, value in enumerate(values)
    ]


def test_the_smaller_error_wins(made_up):
    ours, theirs = np.array([5.0, 5.5, 6.0, 5.2]), np.array([6.1, 6.4, 7.2, 6.0])
    rows = [
        *_errors(made_up, ours),
        *_errors(made_up, theirs, method="CLPL"),
        *_errors(made_up, ours - [1.0, 1.1, 0.9, 1.2], method="IPAL"),
        *_errors(made_up, [0.1] * 4, method="Full supervision"),
    ]
    facts = error_facts(checked_scores(made_up.table(*rows)), "real-world").set_index("method")
    assert set(facts["rows"]) == {"unseen"}
    assert facts["verdict"].drop("GM-PLL").to_dict() == {
        "CLPL": "win",
        "IPAL": "loss",
        "Full supervision": "",
    }
    assert facts.index[facts["best"]].tolist() == ["IPAL"]
    clpl = facts.loc["CLPL"]
    assert clpl["lead"] == pytest.approx((theirs - ours).mean())
    assert clpl["p_value"] == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert (clpl["mean"], clpl["std"]) == pytest.approx((theirs.mean(), theirs.std(ddof=1)))
    lead = theirs - ours
    statistic = lead.mean() / np.sqrt((1 / 4 + 1 / 3) * lead.var(ddof=1))
    assert clpl["corrected_p_value"] == pytest.approx(2 * stats.t.sf(statistic, 3))


def test_errors_are_of_ordered_sets_and_best_in_each_setting(made_up):
    rows = [
        *_accuracies(made_up, [0.5, 0.6]),
        made_up.failed(made_up.job(method="CLPL"), "lost has no errors, so this is no part of it"),
        made_up.failed(made_up.job(method="CLPL", dataset="fg-net"), "no"),
        *_errors(made_up, [5.0, 6.0]),
    ]
    for p, ours, theirs in ((0.1, 2.0, 3.0), (0.7, 4.0, 3.5)):
        facts = {"experiment": "controlled", "dataset": "abalone", "p": p, "r": 1}
        rows += _errors(made_up, [ours], **facts)
        rows += _errors(made_up, [theirs], method="IPAL", **facts)
    scores = checked_scores(made_up.table(*rows))
    found = error_facts(scores, "real-world").set_index("method")
    assert set(found["dataset"]) == {"fg-net"}
    assert found.loc["CLPL", ["measured", "failed"]].tolist() == [0, 1]
    controlled = error_facts(scores, "controlled").set_index(["p", "method"])
    assert controlled["best"].to_dict() == {
        (0.1, "GM-PLL"): True,
        (0.1, "IPAL"): False,
        (0.7, "GM-PLL"): False,
        (0.7, "IPAL"): True,
    }
    assert error_facts(scores, "timing").empty


def test_win_tie_loss_counts_configurations(made_up):
    rows = []
    for p, lead in ((0.1, 0.1), (0.2, -0.1), (0.3, 0.0)):
        facts = {"experiment": "controlled", "dataset": "glass", "p": p, "r": 1}
        base = np.array([0.5, 0.52, 0.54, 0.56])
        noise = np.array([0.001, -0.001, 0.001, -0.001])
        rows += _accuracies(made_up, base + lead + noise, **facts)
        rows += _accuracies(made_up, base, method="CLPL", **facts)
        # A single common fold is no comparison.
        rows += _accuracies(made_up, [0.1], method="IPAL", **facts)
    facts = win_tie_loss_facts(checked_scores(made_up.table(*rows))).set_index("method")
    assert facts.loc["CLPL", ["win", "tie", "loss"]].tolist() == [1, 1, 1]
    assert facts.loc["CLPL", ["configurations", "expected"]].tolist() == [3, 3]
    assert facts.loc["CLPL", ["paper_win", "paper_tie", "paper_loss"]].tolist() == [21, 0, 0]
    assert facts.loc["IPAL", "configurations"] == 0


def test_ranks_use_a_complete_block(made_up):
    rows = []
    for dataset in ("lost", "msrcv2", "birdsong"):
        for rank, method in enumerate(("GM-PLL", "CLPL", "IPAL")):
            if (dataset, method) != ("birdsong", "IPAL"):
                rows += _accuracies(made_up, [0.9 - rank / 10], dataset=dataset, method=method)
    facts = rank_facts(checked_scores(made_up.table(*rows)), "real-world", "inductive")
    assert facts is not None
    assert facts.average_ranks.to_dict() == {"GM-PLL": 1.0, "CLPL": 2.0, "IPAL": 3.0}
    assert facts.left_out_data_sets == ["birdsong"]
    assert facts.left_out_methods == []


def test_joined_methods_are_those_within_the_critical_difference(made_up):
    scores = checked_scores(made_up.full_scores())
    facts = rank_facts(scores, "controlled", "inductive")
    assert facts is not None
    assert facts.left_out_data_sets == ["abalone"]  # PL-LEAF failed there for r = 3
    ranks = facts.average_ranks
    for one in ranks.index:
        for other in ranks.index:
            far = abs(ranks[one] - ranks[other]) > facts.critical_difference
            assert far == (facts.pairwise_p_values.loc[one, other] < 0.05)


def test_too_few_to_rank(made_up):
    scores = checked_scores(made_up.table(made_up.job()))
    assert rank_facts(scores, "real-world", "inductive") is None
    assert rank_facts(scores, "controlled", "inductive") is None


def test_sensitivity_knows_formula_and_paper(made_up):
    facts = {"experiment": "sensitivity", "parameter": "r", "value": 2}
    rows = [
        made_up.job(**facts, dataset="lost"),
        made_up.job(**facts, dataset="glass", p=0.7, r=3),
        made_up.job(**facts, dataset="unknown"),
    ]
    scores = checked_scores(made_up.table(*rows))
    found = sensitivity_facts(scores, list_datasets()).set_index("dataset")
    assert found.loc["lost", "formula"] == round(1 + 2.2317 / np.log10(16))
    assert found.loc["glass", "formula"] == round(1 + (1 + 0.7 * 3) / np.log10(6))
    assert math.isnan(found.loc["unknown", "formula"])
    assert found.loc["lost", "paper_best"] == 3


def test_times_add_up(made_up):
    row = made_up.job(experiment="timing", fit_seconds=2.0, predict_seconds=0.5)
    facts = time_facts(checked_scores(made_up.table(row))).iloc[0]
    assert (facts["running_mean"], facts["testing_mean"]) == (2.5, 0.5)
    assert (facts["paper_running"], facts["paper_testing"]) == (37.046, 0.837)


def test_incomplete_and_failed_are_listed(made_up):
    scores = checked_scores(made_up.full_scores())
    incomplete = incomplete_facts(scores).set_index(["experiment", "dataset", "method"])
    bird = incomplete.loc[[("real-world", "birdsong", "LSB-CMM")]].iloc[0]
    assert (bird["done"], bird["failed"], bird["missing"], bird["expected"]) == (3, 0, 2, 5)
    failures = failure_facts(scores)
    assert len(failures) == (scores["status"] == "failed").sum()
    assert failures["error"].str.contains("unable to allocate").any()


def test_shares_meet_in_spite_of_rounding(made_up):
    rows = [made_up.job(experiment="controlled", p=p, r=1) for p in (0.3, 0.1 + 0.2)]
    assert checked_scores(made_up.table(*rows))["p"].nunique() == 1


def test_missing_columns_are_named(made_up):
    with pytest.raises(ValueError, match=r"column\(s\) fold, error"):
        checked_scores(made_up.table(made_up.job()).drop(columns=["fold", "error"]))


def test_text_in_a_number_column_is_refused(made_up):
    with pytest.raises(ValueError, match="column inductive"):
        checked_scores(made_up.table(made_up.job(inductive="good")))


def test_csv_round_trip_keeps_names_that_look_like_nothing(made_up, tmp_path):
    scores = made_up.table(made_up.job(method="NA"), made_up.job(method="None", dataset="null"))
    scores.to_csv(tmp_path / "scores.csv", index=False)
    back = checked_scores(read_scores(tmp_path / "scores.csv"))
    pd.testing.assert_frame_equal(back, checked_scores(scores))


def test_names_and_texts_can_be_printed():
    assert (data_set_name("fg-net"), data_set_name("my-data")) == ("FG-NET", "my-data")
    assert printable("bell\x07") == "bell�"


def test_provenance_is_grouped_and_flattened():
    facts = {"commit": "3a1ee69", "empty": "", "run": {"versions": {"numpy": "2.4"}, "none": []}}
    assert provenance_groups(facts) == [
        ("General", [("commit", "3a1ee69")]),
        ("run", [("versions: numpy", "2.4")]),
    ]
