import pytest

from gmpll.apps.experiments.declaration import (
    BUILT_IN,
    Declaration,
    Experiment,
    built_in_declaration,
    expand,
    parse_declaration,
    read_declaration,
)
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import known_methods
from gmpll.datasets import dataset_info

GOOD = {"kind": "controlled", "datasets": ["iris"], "p": [0.5], "r": [1]}


def parse(**changes):
    return parse_declaration({"experiment": [GOOD | changes]}, where="test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "other"}, "kind is 'other' but must be one of real-world"),
        ({"datasets": []}, "datasets is empty"),
        ({"datasets": "iris"}, "datasets must be a list of names"),
        ({"methods": [3]}, "methods must be a list of names"),
        ({"p": [1.5]}, "p must lie between 0 and 1"),
        ({"p": ["much"]}, "p must be a list of numbers"),
        ({"r": [0]}, "r must be at least 1"),
        ({"r": []}, "p and r belong together"),
        ({"p": [], "r": []}, "a controlled experiment needs p and r"),
        ({"folds": 1}, "folds is 1 but"),
        ({"run_folds": 11}, "run_folds is 11 but"),
        ({"tune": "accuracy"}, "tune is 'accuracy' but must be one of candidate lift"),
        ({"kind": "sensitivity"}, "needs a table vary"),
        ({"max_rows": 3}, "max_rows is 3"),
        ({"tune_once": "yes"}, "tune_once is 'yes' but must be true or false"),
        ({"max_rows": 50.5}, "max_rows is 50.5"),
        ({"r": [1.5]}, "r must be a list of integers"),
        ({"seeds": [-1]}, "seeds must be a list of integers"),
        ({"vary": [1]}, "vary must be a table"),
        ({"fixed": {"iris": 3}}, "iris must be a table"),
        ({"fold": 3}, "there is no key 'fold'"),
        ({"kind": "crowd", "p": [], "r": []}, "a crowd experiment has folds = 1"),
        ({"kind": "crowd", "folds": 1}, "a crowd experiment has folds = 1 and neither p"),
    ],
)
def test_a_wrong_value_is_named(changes, message):
    with pytest.raises(ExperimentError, match=f"test, experiment 1: .*{message}"):
        parse(**changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "declares no"),
        ({"experiment": [GOOD], "runs": 1}, "no key 'runs'"),
        ({"experiment": [GOOD], "tables": 1}, "tables must be a table"),
        ({"experiment": [GOOD], "tables": {"a.csv": {}}}, "'a.csv' is a data set of no experiment"),
        ({"experiment": [GOOD], "tables": {"iris": {}}}, "'iris' is no table"),
        ({"experiment": [GOOD], "tables": {"a.csv": {"gold": "b"}}}, "no key 'gold'"),
        ({"experiment": [GOOD], "tables": {"a.csv": {"truth": ["b"]}}}, "truth must be a word"),
        (
            {"experiment": [GOOD], "tables": {"a.csv": {"text": [1]}}},
            "text must be a word .* or",
        ),
        ({"experiment": [GOOD], "variants": {"x": 1}}, "must be a table"),
        ({"experiment": [GOOD], "variants": {"x": {}}}, "either method or class"),
        ({"experiment": [GOOD], "variants": {"x": {"class": "nowhere"}}}, "package.module:Class"),
        ({"experiment": [GOOD], "variants": {"x": {"method": "nope"}}}, "no method 'nope'"),
        (
            {"experiment": [GOOD], "variants": {"Any candidate": {"class": "a:B"}}},
            "a method of this name exists",
        ),
    ],
)
def test_a_wrong_table_is_named(content, message):
    with pytest.raises(ExperimentError, match=message):
        parse_declaration(content, where="test")


def test_a_file_that_is_no_toml(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[[experiment")
    with pytest.raises(ExperimentError, match="not valid TOML"):
        read_declaration(file)
    with pytest.raises(ExperimentError, match="cannot be read: No such file"):
        read_declaration(tmp_path / "none.toml")


def test_jobs_are_the_product_of_what_is_declared():
    declaration = parse(
        datasets=["iris", "wine"],
        p=[0.1, 0.5],
        r=[1, 2],
        folds=4,
        run_folds=3,
        seeds=[0, 1],
        methods=["Any candidate", "Random candidate"],
    )
    jobs = expand(declaration)
    assert len(jobs) == 2 * 4 * 3 * 2 * 2
    assert len({job.id for job in jobs}) == len(jobs)
    assert {job.fold for job in jobs} == {0, 1, 2}
    assert {job.n_folds for job in jobs} == {4}


def test_the_same_job_declared_twice_is_one_job():
    once = parse(methods=["Any candidate"])
    twice = Declaration(once.experiments * 2)
    assert expand(twice) == expand(once)


def test_a_varied_or_fixed_parameter_is_not_tuned():
    content = {
        "experiment": [
            GOOD
            | {
                "kind": "sensitivity",
                "methods": ["mine"],
                "tune": "covering rate",
                "vary": {"a": [1, 2]},
                "fixed": {"iris": {"b": 3}},
                "folds": 2,
            }
        ],
        "variants": {"mine": {"class": "m:C", "grid": {"a": [1], "b": [2], "c": [4, 5]}}},
    }
    jobs = expand(parse_declaration(content, where="test"))
    assert [(dict(job.settings), dict(job.grid), job.value) for job in jobs[:2]] == [
        ({"b": 3, "a": 1}, {"c": (4, 5)}, 1.0),
        ({"b": 3, "a": 2}, {"c": (4, 5)}, 2.0),
    ]
    assert {job.parameter for job in jobs} == {"a"}


def test_without_tuning_there_is_neither_grid_nor_criterion():
    content = {
        "experiment": [GOOD | {"methods": ["mine"]}],
        "variants": {"mine": {"class": "m:C", "grid": {"a": [1]}}},
    }
    assert {
        (job.criterion, len(job.grid)) for job in expand(parse_declaration(content, where="t"))
    } == {("", 0)}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_declarations_name_data_sets_that_exist(name):
    for experiment in built_in_declaration(name).experiments:
        for dataset in experiment.datasets:
            info = dataset_info(dataset)
            assert (info.kind in ("real-world", "crowd")) == (not experiment.p)
            assert (info.kind == "crowd") == (experiment.kind == "crowd")
            assert all(r < info.n_classes for r in experiment.r)


def test_the_controlled_experiment_is_the_papers():
    jobs = expand(built_in_declaration("controlled"))
    assert len(jobs) == 9 * 7 * 3 * 10 * sum(method.in_all for method in known_methods().values())


def test_an_unknown_built_in_declaration():
    with pytest.raises(ExperimentError, match="there are real-world, controlled"):
        built_in_declaration("everything")


def test_plain_values_are_read_back():
    declaration = parse(vary={"beta": [0.1]}, fixed={"iris": {"r": 2}}, max_rows=50, tune_once=True)
    assert parse_declaration(declaration.plain(), where="again") == declaration


def test_what_may_stand_in_one_table():
    one = Experiment("timing", ("iris",), folds=3)
    assert one.fits_beside(Experiment("timing", ("wine",), folds=3, max_rows=9))
    assert one.fits_beside(Experiment("controlled", ("iris",), folds=10))
    assert not one.fits_beside(Experiment("timing", ("wine",), folds=10))
    assert not one.fits_beside(Experiment("timing", ("iris",), folds=3, max_rows=9))
    assert one.fits_beside(Experiment("timing", ("wine",), folds=3, tune_once=True))
    assert not one.fits_beside(Experiment("timing", ("iris",), folds=3, tune_once=True))


def test_tuning_once_is_part_of_every_tuned_job():
    once = Experiment(
        "real-world", ("lost",), ("CLPL", "IPAL"), folds=3, tune="candidate lift", tune_once=True
    )
    jobs = expand(Declaration((once,)))
    assert [job.tune_fold for job in jobs if job.method == "CLPL"] == [0, 0, 0]
    assert [job.tune_fold for job in jobs if job.method == "IPAL"] == [None] * 3
    assert once.protocol().endswith("on the first fold's training rows")
