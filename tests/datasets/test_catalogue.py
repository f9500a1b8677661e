from collections import Counter

import pytest

from gmpll.datasets import PAPER_DIFFERENCES, dataset_info, list_datasets

STATISTICS = ("n_samples", "n_features", "n_classes", "mean_candidates")


def test_kinds():
    kinds = Counter(info.kind for info in list_datasets())
    assert kinds == {"real-world": 6, "uci": 9, "crowd": 3, "prepared": 4, "embedded": 3}
    assert len({info.name for info in list_datasets()}) == 25


@pytest.mark.parametrize("info", list_datasets(), ids=lambda info: info.name)
def test_every_set_but_the_embedded_has_a_file_with_a_place_and_a_checksum(info):
    if info.kind == "embedded":
        assert not info.file_name
    else:
        assert info.folder
        assert info.file_name
        assert info.checksum.startswith(("sha256:", "git-blob:"))
    assert (info.layout is not None) == (info.kind == "uci")


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
