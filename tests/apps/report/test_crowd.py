from gmpll.apps.pages.tables import MISSING
from gmpll.apps.report.facts import crowd_facts
from gmpll.apps.report.layouts import crowd_table
from gmpll.apps.report.scores_table import checked_scores


def test_means_over_random_states_by_method_and_part(made_up):
    def vote_job(dataset, method, transductive, inductive, seed=0):
        return made_up.job(
            experiment="crowd", dataset=dataset, method=method, seed=seed,
            transductive=transductive, inductive=inductive,
        )  # fmt: skip

    scores = made_up.table(
        vote_job("labelme", "GLAD", 0.7, 0.5),
        vote_job("labelme", "GLAD", 0.8, 0.5, seed=1),
        vote_job("labelme", "gmpll", 0.9, 0.4),
        vote_job("cifar10n", "gmpll", 0.6, float("nan")),
        made_up.failed(vote_job("cifar10n", "GLAD", 0.5, 0.5), "ValueError: no"),
        made_up.job(dataset="lost", method="IPAL"),
    )
    found = crowd_table(crowd_facts(checked_scores(scores)))
    assert found.header == ["Method", "cifar10n, items", "labelme, items", "labelme, test part"]
    cells = {row.cells[0].text: row.cells[1:] for row in found.rows}
    assert list(cells) == ["gmpll", "GLAD"]
    assert [cell.text for cell in cells["GLAD"]] == [MISSING, "0.750 ± 0.071", "0.500 ± 0.000"]
    assert [cell.strong for cell in cells["GLAD"]] == [False, False, True]
    assert [cell.strong for cell in cells["gmpll"]] == [True, True, False]
    assert [cell.note for cell in cells["gmpll"]] == ["", *["1 of 2 random states"] * 2]
    assert len(found.facts) == 5


def test_without_votes_there_is_no_table(made_up):
    lost = made_up.failed(made_up.job(experiment="crowd"), "ValueError: no")
    scores = checked_scores(made_up.table(made_up.job(), lost))
    assert crowd_table(crowd_facts(scores)).rows == []
