from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import Bunch
from threadpoolctl import threadpool_info

from gmpll.apps.experiments import protocol
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.methods import FULL_SUPERVISION, known_methods
from gmpll.apps.experiments.protocol import load_problem, load_truth, run_job, split_rows

JOB = Job("controlled", "iris", "A", "Any candidate", fold=0, n_folds=5, seed=0, p=0.6, r=1)
HONEST = [name for name, method in known_methods().items() if method.in_all][:-1]


def fold(job, number):
    return replace(job, fold=number)


def test_every_row_is_tested_once():
    tested = np.concatenate([split_rows(fold(JOB, k), 23)[1] for k in range(5)])
    assert sorted(tested) == list(range(23))
    for k in range(5):
        train, test = split_rows(fold(JOB, k), 23)
        assert sorted([*train, *test]) == list(range(23))


def test_another_seed_makes_other_folds():
    first, second = split_rows(JOB, 100)[1], split_rows(replace(JOB, seed=1), 100)[1]
    assert set(first) != set(second)


def test_a_limit_of_rows_holds_for_all_folds_and_methods():
    job = replace(JOB, max_rows=40)
    rows = [frozenset(np.concatenate(split_rows(fold(job, k), 150))) for k in range(5)]
    assert len(set(rows)) == 1
    assert len(rows[0]) == 40
    assert max(rows[0]) > 40, "drawn from all rows, not the first ones"


def test_all_methods_and_folds_meet_the_same_candidates():
    masks = [
        load_problem(job).mask
        for job in (JOB, fold(JOB, 3), replace(JOB, method="B", estimator="Random candidate"))
    ]
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


@pytest.mark.parametrize("change", [{"seed": 1}, {"p": 0.7}, {"r": 2}])
def test_candidates_depend_on_the_declared_corruption(change):
    assert (load_problem(JOB).mask != load_problem(replace(JOB, **change)).mask).any()


def test_corruption_is_what_p_and_r_say():
    mask = load_problem(replace(JOB, dataset="digits", p=0.5, r=3)).mask
    sizes = mask.sum(axis=1)
    assert set(sizes) == {1, 4}
    assert np.mean(sizes == 4) == pytest.approx(0.5, abs=0.05)
    assert mask[np.arange(len(mask)), load_digits().target].all()


def test_a_set_without_candidates_needs_corruption():
    with pytest.raises(ExperimentError, match="iris has no candidate sets of its own"):
        load_problem(replace(JOB, p=None, r=None))


def digits_with_candidates(target):
    """As many digits as there are targets."""
    digits, n = load_digits(), len(target)
    mask = np.random.default_rng(0).random((n, 10)) < 0.3
    mask[np.arange(n), digits.target[:n]] = True
    names = np.arange(10)
    return Bunch(data=digits.data[:n], candidates=mask, target=target, target_names=names)


@pytest.fixture
def give(monkeypatch):
    """Replace the data set that jobs load."""

    def give(bunch):
        monkeypatch.setattr(protocol, "_load", lambda *names: bunch)
        monkeypatch.setattr(protocol, "_fingerprint", lambda *names: "")

    return give


@pytest.mark.parametrize("name", HONEST)
def test_the_truth_does_not_reach_a_method(give, name):
    method = known_methods()[name]
    grid = {key: values[:2] for key, values in method.grid.items()}
    job = Job(
        "real-world", "digits", name, method.estimator, fold=1, n_folds=4, seed=0,
        settings=method.settings, grid=grid, criterion="candidate lift" if grid else "",
    )  # fmt: skip
    truth = load_digits().target[:120]
    results = []
    for target in (truth, (truth + 1) % 10):
        give(digits_with_candidates(target))
        results.append(run_job(job))
    np.testing.assert_array_equal(results[0].predicted, results[1].predicted)
    np.testing.assert_array_equal(results[0].labels, results[1].labels)
    assert results[0].facts["chosen"] == results[1].facts["chosen"]
    assert results[0].labels.shape == results[0].train_rows.shape


def test_the_upper_bound_is_told_the_truth_of_training_rows_only(give):
    job = Job("real-world", "digits", "F", FULL_SUPERVISION, fold=0, n_folds=4, seed=0)
    truth = load_digits().target[:300]
    give(digits_with_candidates(truth))
    told = run_job(job)
    assert np.mean(told.predicted == truth[told.test_rows]) > 0.9
    assert told.labels.size == 0

    scrambled = truth.copy()
    scrambled[told.test_rows] = 0
    give(digits_with_candidates(scrambled))
    np.testing.assert_array_equal(run_job(job).predicted, told.predicted)


def test_tuning_is_recorded():
    job = replace(
        JOB, estimator="sklearn.neighbors:KNeighborsClassifier", dataset="wine",
        grid={"n_neighbors": (1, 5)}, criterion="covering rate",
    )  # fmt: skip
    # A multi-output classifier predicts masks, not labels: the job must fail, not score nonsense.
    with pytest.raises((IndexError, ValueError)):
        run_job(job)
    mine = replace(job, estimator="Any candidate", grid={"estimator": (None,)})
    result = run_job(mine)
    assert result.facts["chosen"] == {"estimator": None}
    assert len(result.facts["tried"]) == 1
    assert result.facts["tune_seconds"] > 0


def test_a_choice_of_the_first_fold_is_kept(monkeypatch):
    job = replace(JOB, estimator="CLPL", grid={"C": (0.001, 1.0)}, criterion="covering rate")
    own = [run_job(fold(job, k)).facts["tried"] for k in (0, 3)]
    assert own[0] != own[1]
    first, fourth = (run_job(replace(job, fold=k, tune_fold=0)) for k in (0, 3))
    assert first.facts["tried"] == fourth.facts["tried"] == own[0]
    assert set(fourth.test_rows).isdisjoint(first.test_rows)

    def refuse(*arguments, **options):
        raise AssertionError("the choice was made again")

    monkeypatch.setattr(protocol, "choose_parameters", refuse)
    settled = run_job(replace(job, fold=3, tune_fold=0), settled=first.facts)
    np.testing.assert_array_equal(settled.predicted, fourth.predicted)
    assert settled.facts["chosen"] == first.facts["chosen"]


def test_a_job_gives_the_same_result_every_time():
    job = replace(JOB, estimator="Random candidate")
    first, second = run_job(job), run_job(job)
    np.testing.assert_array_equal(first.predicted, second.predicted)
    np.testing.assert_array_equal(first.labels, second.labels)


def test_one_thread_per_worker(give, monkeypatch):
    threads = []

    class Spy:
        def fit(self, X, mask):
            threads.extend(library["num_threads"] for library in threadpool_info())
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    monkeypatch.setattr(protocol, "make_estimator", lambda *arguments: Spy())
    run_job(JOB)
    assert set(threads) == {1}


def test_the_fingerprint_tells_data_sets_apart():
    assert load_truth("iris").fingerprint == load_truth("iris").fingerprint
    assert load_truth("iris").fingerprint != load_truth("wine").fingerprint


def test_ordered_labels_bring_their_numbers(give):
    data = {"data": np.zeros((3, 1)), "candidates": None, "target": [2, 0, 1]}
    rings = np.array([3, 4, 29])
    give(Bunch(**data, target_names=rings, ordered=True))
    truth = load_truth("abalone")
    assert truth.label_values[truth.target].tolist() == [29, 3, 4]
    give(Bunch(**data, target_names=rings, ordered=False))
    assert load_truth("glass").label_values is None


def test_warnings_are_kept_with_the_result(monkeypatch):
    import warnings

    class Spy:
        def fit(self, X, mask):
            warnings.warn("mind the gap", UserWarning, stacklevel=1)
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    monkeypatch.setattr(protocol, "make_estimator", lambda *arguments: Spy())
    result = run_job(JOB)
    assert result.facts["warnings"] == ["mind the gap"]
    assert result.labels.size == 0
