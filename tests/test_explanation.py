import numpy as np
import pandas as pd
import pytest

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.datasets import make_partial_label_problem
from gmpll.explanation import explain, explain_rows


@pytest.fixture(scope="module", params=["graph alone", "default", "similar labels"])
def fitted(request):
    problem = make_partial_label_problem(150, 6, 4, 2.2, separation=2.5, random_state=3)
    settings = {
        "graph alone": None,
        "default": {"label_similarity": None},
        "similar labels": {
            "label_similarity": np.eye(4) + 0.3 * (np.eye(4, k=1) + np.eye(4, k=-1)),
        },
    }[request.param]
    model = GMPLL("local", n_graph_neighbors=12, balance=0.5, random_state=0)
    if settings is not None:
        model = PartialLabelClassifier(
            model, hyperparameters={"views": ("cosine",)}, random_state=0, **settings
        )
    model.fit(problem.data, problem.candidates)
    return model, np.asarray(problem.candidates, dtype=bool), problem.data


def similarity_of(model):
    return np.eye(4) if model.label_similarity is None else np.asarray(model.label_similarity)


def literal_weights(X, k):
    """The self-tuning nearest-neighbour graph of z-scored rows of length one, by its formula."""
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :k]
    scale = np.sort(distance, axis=1)[:, 6]
    weights = np.zeros_like(distance)
    for i, row in enumerate(near):
        weights[i, row] = np.exp(-(distance[i, row] ** 2) / (scale[i] * scale[row]))
    return np.maximum(weights, weights.T)


def test_neighbours_are_those_of_the_graph_with_its_weights(fitted):
    model, _, X = fitted
    weights = literal_weights(X, 12)
    for why in explain_rows(model, [0, 7, 149]):
        got = {near.row: near.weight for near in why.neighbors}
        assert got == pytest.approx({j: w for j, w in enumerate(weights[why.row]) if w > 0})
        assert [near.weight for near in why.neighbors] == sorted(got.values(), reverse=True)
        assert all(near.label == model.labels_[near.row] for near in why.neighbors)
        assert sum(near.share for near in why.neighbors) == pytest.approx(1)


def test_support_is_the_weighted_vote(fitted):
    model, mask, X = fitted
    weights = literal_weights(X, 12)
    ballots = model.label_confidences_ @ similarity_of(model)
    for i in range(0, 150, 10):
        votes = np.where(mask[i], weights[i] @ ballots, 0)
        why = explain(model, i)
        expected = {c: votes[c] / votes.sum() for c in np.flatnonzero(mask[i])}
        assert why.support == pytest.approx(expected)
        assert list(why.support.values()) == sorted(why.support.values(), reverse=True)


def test_the_iterations_and_what_came_afterwards_end_where_the_model_ended(fitted):
    model, mask, _ = fitted
    rows = np.flatnonzero(mask.sum(axis=1) > 1)
    for n in (3, 1000):
        for why in explain_rows(model, rows, max_iterations=n):
            steps = [*why.iterations, *([why.afterwards] if why.afterwards else [])]
            last = steps[-1].confidences if steps else why.beforehand
            for label, value in last.items():
                assert value == pytest.approx(model.label_confidences_[why.row, label], abs=1e-2)


def test_the_replay_of_the_graph_alone_is_the_matching():
    problem = make_partial_label_problem(150, 6, 4, 2.2, separation=2.5, random_state=3)
    model = GMPLL("local", random_state=0, balance=0.5)
    model.fit(problem.data, problem.candidates)
    whys = explain_rows(model, range(150), max_iterations=1000)
    assert all(why.afterwards is None for why in whys)


def test_iterations_add_and_take_away_the_same_and_add_up(fitted):
    model, mask, _ = fitted
    why = explain(model, int(np.argmax(mask.sum(axis=1))))
    modelled = getattr(model, "selected_", {}).get("tau") is not None
    assert len(why.iterations) > (0 if modelled else 1)
    assert sum(why.beforehand.values()) == pytest.approx(1)
    equal = dict.fromkeys(why.support, 1 / len(why.support))
    assert (why.beforehand == pytest.approx(equal)) == (not modelled)
    now = why.beforehand
    for step in (*why.iterations, *([why.afterwards] if why.afterwards else [])):
        assert sum(step.changes.values()) == pytest.approx(0, abs=1e-9)
        now = {label: now[label] + change for label, change in step.changes.items()}
        assert step.confidences == pytest.approx(now, abs=1e-2)


def votes_of(model, why, changed=(), label=None):
    ballots = model.label_confidences_.copy()
    ballots[list(changed)] = np.eye(4)[label] if label is not None else 0
    ballots = ballots @ similarity_of(model)
    return sum(near.weight * ballots[near.row] for near in why.neighbors)


def test_what_would_have_changed_the_decision_does_and_one_less_does_not(fitted):
    model, mask, _ = fitted
    tipped = 0
    for why in explain_rows(model, np.flatnonzero(mask.sum(axis=1) > 1)):
        other = why.tipping.label
        assert other != why.label
        before = votes_of(model, why)
        assert (before[other] > before[why.label]) == why.tipping.is_preferred
        count = len(why.tipping.neighbors)
        if count:
            tipped += 1
            for changed, expected in ((count, True), (count - 1, False)):
                rows = why.tipping.neighbors[:changed]
                after = votes_of(model, why, rows, other) if changed else before
                assert (after[other] > after[why.label]) == expected
    assert tipped > 50


def test_a_single_candidate_needs_no_reasons(fitted):
    model, mask, _ = fitted
    why = explain(model, int(np.flatnonzero(mask.sum(axis=1) == 1)[0]))
    assert why.tipping is None
    assert why.iterations == ()
    assert "one candidate" in str(why)


def test_it_reads_as_sentences(fitted):
    model, mask, _ = fitted
    row = int(np.flatnonzero(mask.sum(axis=1) > 1)[0])
    why = explain(model, row)
    text = str(why)
    assert text.startswith(f"Row {row}: {why.label}")
    assert "iteration 1:" in text
    assert "id-" in why.counterfactual(lambda r: f"id-{r}") or not why.tipping.neighbors


def test_label_names_in_any_order():
    X = np.array([[0.0, 1.0], [0.1, 1.0], [0.05, 1.1], [1.0, 0.0], [1.0, 0.1], [1.1, 0.0]])
    sets = pd.DataFrame({"z": [1, 1, 1, 0, 0, 0], "a": [1, 0, 0, 1, 1, 1]})
    model = PartialLabelClassifier(
        GMPLL("local", n_graph_neighbors=2, balance=0.5), random_state=0
    ).fit(X, sets)
    why = explain(model, 0)
    assert why.label == "z"
    assert why.neighbors[0].label == "z"


def test_errors_are_sentences(fitted):
    model, mask, X = fitted
    with pytest.raises(IndexError, match="There is no row 150"):
        explain(model, 150)
    full = GMPLL(random_state=0).fit(X, mask)
    with pytest.raises(ValueError, match="graph='local'"):
        explain(full, 0)
