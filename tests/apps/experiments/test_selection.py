import pytest

from gmpll.apps.experiments.declaration import Declaration, Experiment, built_in_declaration
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import Method, known_methods
from gmpll.apps.experiments.selection import available_part, named_in_full, restricted

TOY = Declaration(
    (
        Experiment("real-world", ("lost", "msrcv2"), ("Any candidate", "Random candidate")),
        Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,)),
    )
)


def test_all_means_the_methods_that_exist_now_and_the_declared_ones():
    mine = Method("Mine", "a:B")
    every = Declaration((Experiment("timing", ("Lost",)),), {"Mine": mine})
    (experiment,) = named_in_full(every).experiments
    assert experiment.datasets == ("lost",)
    in_all = {name for name, method in known_methods().items() if method.in_all}
    assert set(experiment.methods) == {*in_all, "Mine"}


def test_restriction_cuts_experiments_and_drops_empty_ones():
    cut = restricted(TOY, datasets=["LOST"], methods=["random candidate"])
    assert [(e.datasets, e.methods) for e in cut.experiments] == [
        (("lost",), ("Random candidate",))
    ]


@pytest.mark.parametrize("kind", ["real-world", "controlled", "crowd"])
@pytest.mark.parametrize("method", ["PL-CL", "SURE", "LALO", "PL-AGGD", "PRODEN", "Deep GM-PLL"])
def test_of_all_methods_any_can_be_named(kind, method):
    cut = restricted(built_in_declaration(kind), methods=[method])
    assert {experiment.methods for experiment in cut.experiments} == {(method,)}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"datasets": ["mnist"]}, "no data set 'mnist'; the data sets are lost, .*iris"),
        ({"datasets": ["glass"]}, "'glass' is not part of this run, which has lost, msrcv2, iris"),
        ({"methods": ["SVM"]}, "no method 'SVM'; the methods are"),
        ({"methods": ["Full supervision"]}, "not part of this run, which has Any candidate"),
        ({"datasets": ["iris"], "methods": ["Random candidate"]}, "not part of this run"),
    ],
)
def test_names_that_cannot_be_kept(choice, message):
    with pytest.raises(ExperimentError, match=message):
        restricted(TOY, **choice)


def test_missing_data_is_left_out(tmp_path):
    left, skipped = available_part(TOY, tmp_path)
    assert [item.datasets for item in left.experiments] == [("iris",)]
    assert skipped == ["lost", "msrcv2"]


def test_nothing_may_be_left(tmp_path):
    left, skipped = available_part(built_in_declaration("real-world"), tmp_path)
    assert left.experiments == ()
    assert len(skipped) == 6
