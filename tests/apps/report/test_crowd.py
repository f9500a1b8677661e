from gmpll.apps.pages.tables import MISSING
from gmpll.apps.report.crowd import crowd_table


def test_means_over_random_states_by_method_and_part(made_up):
    def vote_job(dataset, method, transductive, inductive, seed=0):
        return made_up.job(
            experiment="crowd", dataset=dataset, method=method, seed=seed,
            transductive=transductive, inductive=inductive,
        )  # fmt: skip

    found = crowd_table(
        made_up.table(
            vote_job("labelme", "GLAD", 0.7, 0.5),
            vote_job("labelme", "GLAD", 0.8, 0.5, seed=1),
            vote_job("labelme", "gmpll", 0.9, 0.4),
            vote_job("cifar10n", "gmpll", 0.6, float("nan")),
            made_up.failed(vote_job("cifar10n", "GLAD", 0.5, 0.5), "ValueError: no"),
            made_up.job(dataset="lost", method="IPAL"),
        )
    )
    assert found.header == ["Method", "labelme, items", "labelme, test part", "cifar10n, items"]
    cells = {row.cells[0].text: row.cells[1:] for row in found.rows}
    assert list(cells) == ["GLAD", "gmpll"]
    assert [cell.text for cell in cells["GLAD"]] == ["0.750 ± 0.071", "0.500 ± 0.000", MISSING]
    assert [cell.strong for cell in cells["GLAD"]] == [False, True, False]
    assert [cell.strong for cell in cells["gmpll"]] == [True, False, True]
    assert len(found.facts) == 3


def test_without_votes_there_is_no_table(made_up):
    lost = made_up.failed(made_up.job(experiment="crowd"), "ValueError: no")
    assert crowd_table(made_up.table(made_up.job(), lost)) is None
