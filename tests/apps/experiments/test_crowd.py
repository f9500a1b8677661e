"""Labels from votes: the items, the methods, the scores; all data are invented."""

import numpy as np
import pytest

from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    built_in_declaration,
    crowd,
    expand,
    methods,
    run,
    scores,
)
from gmpll.apps.experiments.protocol import run_job
from gmpll.apps.experiments.store import RunFolder

N_ITEMS, N_TEST = 60, 20


@pytest.fixture
def crowd_home(tmp_path):
    """Two crowd sets of two labels; two good annotators and one who votes the opposite."""
    rng = np.random.default_rng(0)
    y, y_test = rng.integers(2, size=N_ITEMS), rng.integers(2, size=N_TEST)
    votes = np.where(rng.random((N_ITEMS, 3)) < 0.1, 1 - y[:, None], y[:, None])
    votes[:, 2] = 1 - votes[:, 2]
    counts = np.stack([(votes == label).sum(axis=1) for label in range(2)], axis=1)
    X, X_test = (rng.normal(3.0 * labels[:, None], 1.0, (len(labels), 4)) for labels in (y, y_test))
    arrays = {"X": X, "y": y, "votes": votes, "counts": counts, "S": counts > 0}
    folder = tmp_path / "data" / "crowd"
    folder.mkdir(parents=True)
    np.savez(folder / "labelme.npz", **arrays, X_test=X_test, y_test=y_test)
    np.savez(folder / "cifar10n.npz", **arrays)
    return folder.parent


def changed(home, name, **changes):
    """Write a set again, with other arrays, into a folder of its own."""
    folder = home.parent / "changed" / "crowd"
    folder.mkdir(parents=True)
    np.savez(folder / f"{name}.npz", **{**np.load(home / "crowd" / f"{name}.npz"), **changes})
    return folder.parent


def experiment(*methods, datasets=("labelme",), seeds=(0,), max_rows=40):
    return Declaration(
        (Experiment("crowd", datasets, methods, folds=1, seeds=seeds, max_rows=max_rows),)
    )


def result(home, method, *, dataset="labelme", seed=0, max_rows=40):
    (job,) = expand(experiment(method, datasets=(dataset,), seeds=(seed,), max_rows=max_rows))
    return run_job(job, str(home))


def test_every_method_finds_labels_and_predicts_the_test_part(crowd_home, tmp_path, silent):
    pytest.importorskip("crowdkit")
    pytest.importorskip("cleanlab")
    summary = run(experiment("all"), tmp_path / "run", data_home=crowd_home, progress=silent)
    assert (summary.total, summary.failed) == (len(crowd.CROWD_METHODS), 0)
    table = scores(tmp_path / "run", data_home=crowd_home).set_index("method")
    assert table.index.tolist() == list(crowd.CROWD_METHODS)
    assert (table[["transductive", "inductive"]] > 0.6).all(axis=None)
    assert table.at["Dawid-Skene", "transductive"] > table.at["majority vote", "transductive"]
    assert table.at["gmpll", "transductive"] >= 0.95
    again = run(experiment("all"), tmp_path / "run", data_home=crowd_home, progress=silent)
    assert again == summary
    assert "0 jobs to run" in silent.console.file.getvalue()


@pytest.mark.parametrize(
    "method", ["PL-CL", "SURE", "LALO", "PL-AGGD", "Any candidate", "Full supervision", "PRODEN"]
)
def test_methods_for_candidate_sets_take_part_where_they_are_named(crowd_home, method):
    if method == "PRODEN":
        pytest.importorskip("torch")
    found = result(crowd_home, method)
    assert len(found.predicted) == N_TEST
    truth = np.load(crowd_home / "crowd" / "labelme.npz")["y_test"]
    assert method == "Any candidate" or np.mean(found.predicted == truth) > 0.6


def test_a_set_without_a_test_part_has_no_figure_for_it(crowd_home, tmp_path, silent):
    declared = experiment("gmpll (votes only)", datasets=("cifar10n",), seeds=(0, 1))
    run(declared, tmp_path / "run", data_home=crowd_home, progress=silent)
    table = scores(tmp_path / "run", data_home=crowd_home)
    assert table["inductive"].isna().all()
    assert (table["transductive"] >= 0.6).all()
    assert table["seed"].tolist() == [0, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_items_are_drawn_as_the_protocol_says(crowd_home, seed):
    found = result(crowd_home, "gmpll (votes only)", seed=seed, max_rows=25)
    drawn = np.random.default_rng(seed).permutation(N_ITEMS)[:25]
    np.testing.assert_array_equal(found.train_rows, drawn)
    np.testing.assert_array_equal(found.test_rows, N_ITEMS + np.arange(N_TEST))
    everything = result(crowd_home, "gmpll (votes only)", max_rows=1000)
    assert sorted(everything.train_rows) == list(range(N_ITEMS))


def test_items_without_a_vote_are_left_out(crowd_home):
    votes = np.load(crowd_home / "crowd" / "labelme.npz")["votes"]
    votes[:7] = -1
    found = result(changed(crowd_home, "labelme", votes=votes), "gmpll (votes only)", max_rows=1000)
    assert sorted(found.train_rows) == list(range(7, N_ITEMS))


@pytest.mark.parametrize(
    ("method", "package"),
    [
        ("one-coin Dawid-Skene", "crowdkit"),
        ("CROWDLAB", "cleanlab"),
        ("gmpll (votes only)", "gmpll"),
        ("gmpll", "gmpll"),
    ],
)
def test_the_truth_does_not_reach_a_method(crowd_home, method, package):
    pytest.importorskip(package)
    y = np.load(crowd_home / "crowd" / "labelme.npz")["y"]
    other = changed(crowd_home, "labelme", y=1 - y, y_test=np.zeros(N_TEST, dtype=int))
    one, two = result(crowd_home, method), result(other, method)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.predicted, two.predicted)


def test_columns_of_unnamed_annotators_are_no_persons(crowd_home):
    votes = np.load(crowd_home / "crowd" / "cifar10n.npz")["votes"]
    shuffled = np.random.default_rng(1).permuted(votes, axis=1)
    other = changed(crowd_home, "cifar10n", votes=shuffled)
    one, two = (result(h, "gmpll (votes only)", dataset="cifar10n") for h in (crowd_home, other))
    np.testing.assert_array_equal(one.labels, two.labels)
    named = result(crowd_home, "gmpll (votes only)")
    assert (named.labels != one.labels).any()  # the third annotator counts inversely by name


def test_tied_votes_are_drawn(crowd_home):
    pytest.importorskip("crowdkit")
    split = np.tile([0, 1, -1], (N_ITEMS, 1))
    home = changed(crowd_home, "labelme", votes=split)
    assert 5 < result(home, "majority vote", max_rows=None).labels.sum() < N_ITEMS - 5


def test_other_votes_are_another_data_set(crowd_home, tmp_path, silent):
    declared = experiment("gmpll (votes only)")
    run(declared, tmp_path / "run", data_home=crowd_home, progress=silent)
    votes = np.load(crowd_home / "crowd" / "labelme.npz")["votes"][::-1]
    with pytest.raises(ExperimentError, match="not the one that the predictions were made on"):
        scores(tmp_path / "run", data_home=changed(crowd_home, "labelme", votes=votes))


def test_a_missing_package_is_told_before_anything_runs(crowd_home, tmp_path, silent, monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(ExperimentError, match=r"GLAD needs crowd-kit: pip install 'gmpll\[exp"):
        run(experiment("GLAD"), tmp_path / "run", data_home=crowd_home, progress=silent)
    with pytest.raises(ExperimentError, match="CROWDLAB needs cleanlab"):
        run(experiment("CROWDLAB"), tmp_path / "run", data_home=crowd_home, progress=silent)
    assert not (tmp_path / "run").exists()
    ours = experiment("gmpll (votes only)")
    assert run(ours, tmp_path / "run", data_home=crowd_home, progress=silent).failed == 0


def test_a_set_without_votes_is_refused():
    (job,) = expand(experiment("gmpll", datasets=("iris",)))
    with pytest.raises(ExperimentError, match="iris has no votes of annotators"):
        run_job(job)


def test_the_declaration_that_comes_with_the_package():
    declaration = built_in_declaration("crowd")
    jobs = expand(declaration)
    assert len(jobs) == 3 * 3 * len(crowd.CROWD_METHODS)
    assert {job.max_rows for job in jobs} == {3000}
    assert declaration.experiments[0].protocol() == "at most 3000 items, random states 0, 1, 2"
    assert jobs[0].title == "labelme, majority vote"
    assert RunFolder("nowhere").file_of(jobs[0]).name == f"{jobs[0].id}.npz"
