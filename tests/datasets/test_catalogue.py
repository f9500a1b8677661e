import pytest

from gmpll.datasets import PAPER_DIFFERENCES, dataset_info, list_datasets

STATISTICS = ("n_samples", "n_features", "n_classes", "mean_candidates")


def test_six_real_world_nine_uci_three_embedded():
    kinds = [info.kind for info in list_datasets()]
    assert [kinds.count(kind) for kind in ("real-world", "uci", "embedded")] == [6, 9, 3]
    assert len({info.name for info in list_datasets()}) == 18


@pytest.mark.parametrize("info", list_datasets(), ids=lambda info: info.name)
def test_every_difference_from_the_paper_is_explained_and_no_other(info):
    if info.paper is None:
        assert info.name not in PAPER_DIFFERENCES
        return
    differing = set()
    for statistic in STATISTICS:
        ours, printed = getattr(info, statistic), getattr(info.paper, statistic)
        if ours is not None and round(ours, 2) != printed:
            differing.add(statistic)
    assert differing == set(PAPER_DIFFERENCES.get(info.name, {}))


@pytest.mark.parametrize("info", list_datasets(), ids=lambda info: info.name)
def test_description_names_source_licence_and_citation(info):
    text = info.description()
    for part in (info.title, info.source, info.licence, info.citation, str(info.n_samples)):
        assert part in text


def test_names_are_looked_up_in_any_case_and_within_a_kind():
    assert dataset_info("FG-NET").name == "fg-net"
    with pytest.raises(ValueError, match=r"There is no data set 'moon'; choose one of: lost, "):
        dataset_info("moon")
    with pytest.raises(ValueError, match=r"There is no uci set 'lost'; choose one of: glass, "):
        dataset_info("lost", kind="uci")


def test_ages_and_rings_are_ordered():
    assert [info.name for info in list_datasets() if info.ordered] == ["fg-net", "abalone"]
