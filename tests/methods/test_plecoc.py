"""PL-ECOC against a literal transcription of coding, performance matrix and decoding."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gmpll.methods.plecoc as module
from gmpll.methods.plecoc import (
    PLECOC,
    decoding_losses,
    distinct_splits,
    draw_code,
    performance_matrix,
    sides_of_rows,
)
from problems import random_problem, real_world

RNG = np.random.RandomState
SHORT_CODE = pytest.mark.filterwarnings("ignore:None of", "ignore:The code has")


@SHORT_CODE
# --- Against the definition -----------------------------------------------------------------


def literal_plecoc(X, mask, code, queries):
    """Train every column with scikit-learn's own kernel, count and decode with loops."""
    scaler = StandardScaler().fit(X)
    rows, unseen = scaler.transform(X), scaler.transform(queries)
    q, L = code.shape
    machines = []
    for t in range(L):
        used, side = [], []
        for i in range(len(rows)):
            signs = {code[c, t] for c in range(q) if mask[i, c]}
            if len(signs) == 1:
                used.append(i)
                side.append(signs.pop())
        machines.append(SVC(kernel="rbf", C=1.0, gamma="auto").fit(rows[used], side))

    H = np.zeros((q, L))
    for c in range(q):
        members = rows[mask[:, c]]
        for t in range(L):
            H[c, t] = np.mean(np.sign(machines[t].decision_function(members)) == code[c, t])
    H /= H.sum(axis=1, keepdims=True)

    losses = np.zeros((len(unseen), q))
    for t in range(L):
        h = machines[t].decision_function(unseen)
        for c in range(q):
            losses[:, c] += H[c, t] * np.exp(-h * code[c, t])
    return H, losses


@pytest.mark.parametrize("kernel_limit", [module.KERNEL_LIMIT_BYTES, 0], ids=["shared", "own"])
def test_agrees_with_the_literal_method(kernel_limit, monkeypatch):
    """With the kernel shared by the columns, and with each machine computing its own."""
    monkeypatch.setattr(module, "KERNEL_LIMIT_BYTES", kernel_limit)
    monkeypatch.setattr("gmpll.methods._regression.BLOCK_BYTES", 10_000)  # several blocks
    X, mask, _ = random_problem(0, m=150, d=5, q=6)
    queries = random_problem(1, m=40, d=5, q=6)[0]
    model = PLECOC(random_state=0).fit(X, mask)
    H, losses = literal_plecoc(X, mask, model.code_, queries)
    np.testing.assert_allclose(model.performance_, H, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(queries), -losses, atol=2e-3)
    np.testing.assert_array_equal(model.predict(queries), losses.argmin(axis=1))

    _, train_losses = literal_plecoc(X, mask, model.code_, X)
    best = np.where(mask, train_losses, np.inf).argmin(axis=1)
    np.testing.assert_array_equal(model.labels_, best)


def test_sides_need_the_whole_candidate_set():
    rng = RNG(0)
    mask = rng.random_sample((50, 7)) < 0.3
    mask[np.arange(50), rng.randint(7, size=50)] = True
    code = (2 * rng.randint(2, size=(7, 20)) - 1).astype(np.int8)
    sides = sides_of_rows(mask, code)
    for i in range(50):
        for t in range(20):
            bits = code[mask[i], t]
            assert sides[i, t] == (bits[0] if (bits == bits[0]).all() else 0)


def test_every_column_keeps_the_limits():
    _, mask, _ = random_problem(0, m=200, d=2, q=8)
    code = draw_code(mask, 30, (40, 12), 2000, RNG(0))
    sides = sides_of_rows(mask, code)
    assert code.shape == (8, 30)
    assert ((sides != 0).sum(axis=0) >= 40).all()
    assert ((sides > 0).sum(axis=0) >= 12).all()
    assert ((sides < 0).sum(axis=0) >= 12).all()


def test_drawing_in_blocks_is_drawing_one_by_one(monkeypatch):
    _, mask, _ = random_problem(0, m=100, d=2, q=8)
    expected = draw_code(mask, 40, (40, 5), 300, RNG(0))
    monkeypatch.setattr(module, "DRAW_BLOCK", 1)
    found = draw_code(mask, 40, (40, 5), 300, RNG(0))
    np.testing.assert_array_equal(found, expected)


def test_number_of_draws_is_limited():
    mask = np.ones((20, 4), dtype=bool)  # no split ever leaves a row
    rng = RNG(0)
    assert draw_code(mask, 5, (2, 1), 300, rng).shape == (4, 0)
    used = RNG(0)
    used.randint(2, size=(300, 4))
    assert rng.randint(10**6) == used.randint(10**6)


def test_singletons_use_every_row_in_every_column():
    X, y = load_iris(return_X_y=True)
    model = PLECOC(random_state=0).fit(X, y)
    assert model.code_.shape == (3, 16)  # ceil(10 log2 3)
    assert (sides_of_rows(np.eye(3, dtype=bool)[y], model.code_) != 0).all()
    np.testing.assert_array_equal(model.labels_, y)


# --- The traps ------------------------------------------------------------------------------


def test_long_codes_tell_all_labels_apart():
    """One column per bit would leave labels with the same codeword."""
    X, mask, _ = random_problem(0, m=400, d=4, q=16)
    code = PLECOC(random_state=0, min_share=0.02).fit(X, mask).code_
    assert code.shape == (16, 40)
    assert len(np.unique(code, axis=0)) == 16
    short = PLECOC(random_state=0, min_share=0.02, n_columns=4).fit(X, mask).code_
    assert len(np.unique(short, axis=0)) < 16


def test_performance_is_normalised_over_the_columns():
    X, mask, _ = random_problem(0, m=120, d=4, q=5)
    performance = PLECOC(random_state=0).fit(X, mask).performance_
    np.testing.assert_allclose(performance.sum(axis=1), 1.0)
    assert not np.allclose(performance.sum(axis=0), 1.0)


def test_a_label_that_no_machine_gets_right_has_no_free_win():
    code = np.array([[1, 1], [-1, -1]], dtype=np.int8)
    decisions = np.array([[-1.0, -2.0], [-0.5, -1.0]])
    performance = performance_matrix(decisions, code, np.eye(2, dtype=bool))
    np.testing.assert_allclose(performance, 0.5)
    losses = decoding_losses(decisions, code, performance)
    np.testing.assert_array_equal(losses.argmin(axis=1), [1, 1])


def test_a_label_that_is_never_a_candidate_is_never_predicted():
    X, mask, _ = random_problem(0, m=100, d=4, q=5, absent=True)
    model = PLECOC(random_state=0).fit(X, mask)
    assert len(model.classes_) == 5
    assert (model.decision_function(X)[:, 4] == -np.inf).all()
    assert not (model.predict(X) == 4).any()
    np.testing.assert_array_equal(model.label_confidences_[:, 4], 0.0)


def test_repeated_and_complementary_columns_count_but_are_trained_once(monkeypatch):
    X, mask, _ = random_problem(0, m=100, d=4, q=3)
    trained = []
    fit_machine = PLECOC._fit_machine

    def counting(self, rows, kernel, side):
        trained.append(side)
        return fit_machine(self, rows, kernel, side)

    monkeypatch.setattr(PLECOC, "_fit_machine", counting)
    model = PLECOC(random_state=0).fit(X, mask)
    assert model.code_.shape[1] == 16
    assert len(trained) == 3  # three labels can be split in three ways
    # That all sixteen columns weigh in the decoding is checked by the literal method.
    H, losses = literal_plecoc(X, mask, model.code_, X)
    np.testing.assert_allclose(model.performance_, H, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), -losses, atol=2e-3)


def test_distinct_splits_restore_the_code():
    code = (2 * RNG(0).randint(2, size=(4, 30)) - 1).astype(np.int8)
    splits, column, flip = distinct_splits(code)
    np.testing.assert_array_equal(splits[:, column] * flip, code)
    both = np.c_[splits, -splits]
    assert len(np.unique(both, axis=1).T) == both.shape[1]


def test_positive_decisions_belong_to_the_positive_side():
    """Whichever side the first row is on."""
    X = np.r_[np.full((10, 1), -1.0), np.full((10, 1), 1.0)]
    for y in (np.repeat([0, 1], 10), np.repeat([1, 0], 10)):
        model = PLECOC(random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
        assert model.performance_.min() > 0


def test_huge_decisions_stay_finite():
    code = np.array([[1], [-1]], dtype=np.int8)
    losses = decoding_losses(np.array([[5000.0]]), code, np.ones((2, 1)))
    assert np.isfinite(losses).all()
    assert losses.argmin() == 0


# --- Too few columns ------------------------------------------------------------------------


def test_a_short_code_warns_and_works():
    X, mask, _ = random_problem(0, m=60, d=4, q=8)
    with pytest.warns(UserWarning, match="instead of 30"):
        model = PLECOC(random_state=0, min_share=0.2, max_draws=100).fit(X, mask)
    assert 0 < model.code_.shape[1] < 30
    assert mask[np.arange(60), model.labels_].all()


def test_without_any_column_the_limits_are_relaxed():
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:3, 50:53, 100:103]
    with pytest.warns(UserWarning, match="at least one row on either side are used"):
        model = PLECOC(random_state=0).fit(X[few], y[few])
    assert model.code_.shape[1] == 16
    np.testing.assert_array_equal(model.labels_, y[few])
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("n_labels", [2, 3])
def test_without_any_split_all_labels_are_rated_alike(n_labels):
    X, mask = RNG(0).normal(size=(9, 2)), np.ones((9, n_labels), dtype=bool)
    models = []
    for seed in range(20):
        with pytest.warns(UserWarning, match="so 0 columns"):
            models.append(PLECOC(random_state=seed, max_draws=20).fit(X, mask))
    for model in models:
        np.testing.assert_allclose(model.label_confidences_, 1 / n_labels)
        assert np.ptp(model.decision_function(X)) == 0
    predicted = {int(model.predict(X[:1])[0]) for model in models}
    assert predicted == set(range(n_labels))  # the tie does not go to the first label


# --- Degenerate input and reproducibility ---------------------------------------------------


def test_seed_and_threads_do_not_change_the_model():
    X, mask, _ = random_problem(0, m=120, d=4, q=6)
    first = PLECOC(random_state=3).fit(X, mask)
    second = PLECOC(random_state=3, n_jobs=2).fit(X, mask)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    other = PLECOC(random_state=4).fit(X, mask)
    assert not np.array_equal(first.code_, other.code_)


def test_order_of_rows_does_not_matter():
    X, mask, _ = random_problem(0, m=120, d=4, q=6)
    order = RNG(1).permutation(120)
    first = PLECOC(random_state=3).fit(X, mask)
    second = PLECOC(random_state=3).fit(X[order], mask[order])
    np.testing.assert_array_equal(first.code_, second.code_)
    np.testing.assert_array_equal(first.labels_[order], second.labels_)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


# --- Real data ------------------------------------------------------------------------------


def test_weights_of_the_columns_matter_on_lost():
    X, mask, truth = real_world("lost")
    train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=0)
    accuracy, unweighted = [], []
    for seed in range(3):
        model = PLECOC(random_state=seed).fit(X[train], mask[train])
        accuracy.append(np.mean(model.predict(X[test]) == truth[test]))
        model.performance_ = np.full_like(model.performance_, 1 / model.code_.shape[1])
        unweighted.append(np.mean(model.predict(X[test]) == truth[test]))
    assert np.mean(accuracy) > 0.55
    assert np.mean(accuracy) > np.mean(unweighted) + 0.05


def test_few_columns_on_fg_net_are_kept():
    X, mask, _ = real_world("FG-NET")
    with pytest.warns(UserWarning, match="instead of 63"):
        model = PLECOC(random_state=0).fit(X, mask)
    assert 1 <= model.code_.shape[1] < 63
    assert mask[np.arange(len(X)), model.labels_].all()
