"""Declarations: any content is understood or refused in a sentence, and comes back the same."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from generic import examples, refused
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    Job,
    Method,
    built_in_declaration,
    expand,
    known_methods,
    read_declaration,
    run,
    scores,
    write_scores,
)
from gmpll.apps.experiments.declaration import BUILT_IN, parse_declaration
from gmpll.apps.experiments.statistics import (
    friedman_nemenyi,
    paired_t_test,
)

pytestmark = pytest.mark.filterwarnings("ignore")

values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.sampled_from(["all", "iris", "controlled", "GM-PLL", "candidate lift"]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip
KEYS = ("kind", "datasets", "methods", "p", "r", "folds", "run_folds", "seeds", "tune", "vary",
        "fixed", "max_rows")  # fmt: skip
GOOD = {"kind": "controlled", "datasets": ["iris"], "methods": ["PL-KNN"], "p": [0.5], "r": [1],
        "folds": 2}  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=3), st.booleans(), values)
@examples(400)
def test_any_declaration_is_understood_or_refused_in_a_sentence(changes, spoil, variant):
    content = {"experiment": [GOOD | changes], "variants": variant if spoil else {}}
    error, declaration = refused(lambda: parse_declaration(content, where="x"), ExperimentError)
    if error is not None:
        return
    error, jobs = refused(lambda: expand(declaration), ExperimentError)
    again = parse_declaration(json.loads(json.dumps(declaration.plain())), where="x")
    if error is None:
        assert [job.id for job in expand(again)] == [job.id for job in jobs]
        assert len({job.id for job in jobs}) == len(jobs)


@given(
    st.integers(0, 9), st.integers(2, 9), st.integers(0, 2**31),
    st.one_of(st.none(), st.floats(0, 1)),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(), st.booleans())),
)  # fmt: skip
@examples(60)
def test_the_id_of_a_job_survives_json(fold, folds, seed, p, settings):
    job = Job("timing", "iris", "m", "m", fold, folds, seed, settings=settings, p=p)
    back = Job(**json.loads(json.dumps(asdict(job))))
    assert back == job
    assert back.id == job.id


@given(st.text(max_size=8))
@examples(30)
def test_unknown_names_are_refused_in_a_sentence(name):
    error, _ = refused(lambda: built_in_declaration(name), ExperimentError)
    assert (error is None) == (name in BUILT_IN)
    error, _ = refused(lambda: read_declaration(f"no-such-folder/{len(name)}"), ExperimentError)
    assert error is not None
    assert all(isinstance(method, Method) for method in known_methods().values())


accuracies = hnp.arrays(np.float64, 6, elements=st.floats(0, 1))


@given(accuracies, accuracies, st.floats(0.05, 0.9))
@examples(60)
def test_tests_are_antisymmetric(a, b, share):
    for test_share in (0.0, share):
        one, other = (paired_t_test(*pair, test_share=test_share) for pair in ((a, b), (b, a)))
        assert 0 <= one.p_value <= 1
        assert one.p_value == pytest.approx(other.p_value)
        assert one.statistic == pytest.approx(-other.statistic)


@given(hnp.arrays(np.float64, (5, 3), elements=st.floats(0, 1)))
@examples(30)
def test_ranks_do_not_depend_on_the_order_of_data_sets(table):
    one, other = friedman_nemenyi(table), friedman_nemenyi(table[::-1])
    np.testing.assert_allclose(one.average_ranks, other.average_ranks)
    assert one.p_value == pytest.approx(other.p_value, nan_ok=True)


def test_a_run_can_be_scored_again_and_survives_damage(tmp_path):
    small = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=2)
    declaration = Declaration((small,))
    summary = run(declaration, tmp_path)
    assert (summary.total, summary.failed) == (2, 0)
    first = write_scores(tmp_path)
    for file in (tmp_path / "jobs").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    assert len(scores(tmp_path)) == 0
    run(declaration, tmp_path)
    again = scores(tmp_path)
    np.testing.assert_array_equal(again["inductive"], first["inductive"])
