import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad
from scipy.optimize import check_grad
from scipy.special import expit, log_expit
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from gmpll.methods import lsbcmm
from gmpll.methods.lsbcmm import (
    LSBCMM,
    dealt_dirichlet,
    dirichlet_divergence,
    e_step,
    expected_log_theta,
    fit_gates,
    gate_objective,
    has_settled,
    log_stick_breaking,
    uniform_gates,
)
from problems import problems, random_problem

# Transcriptions: the published formulas, one row and one component after the other.


def literal_phi(activations):
    phi = np.empty((len(activations), activations.shape[1] + 1))
    for i, row in enumerate(activations):
        left = 1.0
        for k, activation in enumerate(row):
            phi[i, k] = left * expit(activation)
            left *= 1.0 - expit(activation)
        phi[i, -1] = left
    return phi


def literal_q(phi, expected, mask):
    """The full array of q_i(k, c)."""
    q = phi[:, :, None] * np.exp(expected)[None, :, :] * mask[:, None, :]
    return q / q.sum(axis=(1, 2), keepdims=True)


def literal_bound(q, phi, expected, dirichlet, gates, concentration, variance):
    """The bound as a sum of expectations, entropy, divergence and penalty."""
    used = q > 0
    log_joint = np.log(phi)[:, :, None] + expected[None, :, :]
    data = (q[used] * log_joint[used]).sum()
    entropy = -(q[used] * np.log(q[used])).sum()
    divergence = dirichlet_divergence(dirichlet, expected, concentration)
    return data + entropy - divergence - (gates[1:] ** 2).sum() / (2 * variance)


def literal_gate(rows, positive, negative, variance):
    """One weighted logistic regression by scikit-learn: every row once as 1 and once as 0."""
    learner = LogisticRegression(C=variance, tol=1e-10, max_iter=10_000)
    targets = np.repeat([1, 0], len(rows))
    learner.fit(np.r_[rows, rows][:, 1:], targets, sample_weight=np.r_[positive, negative])
    return np.r_[learner.intercept_, learner.coef_[0]]


def random_state_of_the_model(seed, m=25, d=3, q=4, n_components=7):
    X, mask, _ = random_problem(seed, m=m, d=d, q=q)
    rng = np.random.RandomState(seed)
    rows = np.c_[np.ones(m), X]
    return rows, mask, rng.randn(d + 1, n_components - 1), rng.gamma(1.0, 2.0, (n_components, q))


def test_stick_breaking():
    activations = np.random.RandomState(0).randn(10, 6)
    phi = np.exp(log_stick_breaking(activations))
    np.testing.assert_allclose(phi, literal_phi(activations))
    np.testing.assert_allclose(phi.sum(axis=1), 1.0)


def test_stick_breaking_does_not_underflow():
    # 400 components: the last ones are far below the smallest float.
    log_phi = log_stick_breaking(np.full((1, 399), 5.0))
    assert np.isfinite(log_phi).all()
    assert log_phi[0, -1] == pytest.approx(-399 * np.log1p(np.exp(5.0)))
    assert log_phi[0, -1] < np.log(np.finfo(float).tiny)
    extreme = log_stick_breaking(np.array([[-1000.0, 1000.0, 0.0]]))
    np.testing.assert_allclose(np.exp(extreme), [[0.0, 1.0, 0.0, 0.0]])


def test_without_gates_the_only_component_takes_all():
    np.testing.assert_array_equal(log_stick_breaking(np.zeros((3, 0))), np.zeros((3, 1)))


def test_uniform_gates():
    rows = np.c_[np.ones(4), np.random.RandomState(0).randn(4, 2)]
    np.testing.assert_allclose(np.exp(log_stick_breaking(rows @ uniform_gates(3, 9))), 1 / 9)


def test_expected_log_theta_is_the_mean_of_many_draws():
    dirichlet = np.array([[0.5, 1.5, 3.0], [11.0, 1.0, 1.0]])
    rng = np.random.RandomState(0)
    draws = np.stack([np.log(rng.dirichlet(a, 200_000)).mean(axis=0) for a in dirichlet])
    np.testing.assert_allclose(expected_log_theta(dirichlet), draws, atol=0.02)


def test_tiny_concentrations_stay_finite():
    # Draws from this distribution underflow to log 0; the expectation does not.
    assert (expected_log_theta(np.full((1, 5), 0.01)) > -120).all()
    X, mask, _ = random_problem(0, m=40, d=3, q=4)
    model = LSBCMM(concentration=0.01, max_iter=30).fit(X, mask)
    assert np.isfinite(model.bound_path_).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_divergence_is_the_integral():
    a, prior = np.array([[2.5, 4.0]]), 0.7

    def integrand(t):
        density = beta.pdf(t, 2.5, 4.0)
        return density * np.log(density / beta.pdf(t, prior, prior))

    expected, _ = quad(integrand, 0, 1)
    assert dirichlet_divergence(a, expected_log_theta(a), prior) == pytest.approx(expected)
    twice = np.r_[a, a]
    assert dirichlet_divergence(twice, expected_log_theta(twice), prior) == pytest.approx(
        2 * expected
    )
    same = np.full((3, 4), prior)
    assert dirichlet_divergence(same, expected_log_theta(same), prior) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_e_step_is_the_full_array_summed(seed):
    rows, mask, gates, dirichlet = random_state_of_the_model(seed)
    expected = expected_log_theta(dirichlet)
    phi = literal_phi(rows @ gates)
    q = literal_q(phi, expected, mask)
    responsibilities, counts, evidence = e_step(log_stick_breaking(rows @ gates), expected, mask)
    np.testing.assert_allclose(responsibilities, q.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(counts, q.sum(axis=0), atol=1e-12)
    assert counts.sum() == pytest.approx(len(rows))

    bound = literal_bound(q, phi, expected, dirichlet, gates, 0.05, 2.0)
    divergence = dirichlet_divergence(dirichlet, expected, 0.05)
    penalty = (gates[1:] ** 2).sum() / 4.0
    assert evidence - divergence - penalty == pytest.approx(bound)


def test_gate_gradient():
    rows, mask, gates, dirichlet = random_state_of_the_model(0)
    expected = expected_log_theta(dirichlet)
    r = e_step(log_stick_breaking(rows @ gates), expected, mask)[0]
    later = np.cumsum(r[:, ::-1], axis=1)[:, :0:-1]
    args = rows, r[:, :-1], later, 0.5
    error = check_grad(
        lambda w: gate_objective(w, *args)[0], lambda w: gate_objective(w, *args)[1], gates.ravel()
    )
    assert error < 1e-4 * np.linalg.norm(gate_objective(gates.ravel(), *args)[1])


def test_the_gate_objective_does_not_depend_on_its_blocks_nor_overflow(monkeypatch):
    rows, mask, gates, dirichlet = random_state_of_the_model(0)
    r = e_step(log_stick_breaking(rows @ gates), expected_log_theta(dirichlet), mask)[0]
    taken, reached = r[:, :-1], np.cumsum(r[:, ::-1], axis=1)[:, :0:-1]
    for scale in (1.0, 1e4):
        a = rows @ (scale * gates)
        value = (reached * -log_expit(-a) - taken * a).sum()
        value += (scale * gates[1:] ** 2).sum() * scale / (2 * 0.5)
        gradient = rows.T @ (reached * expit(a) - taken)
        gradient[1:] += scale * gates[1:] / 0.5
        for entries in (1, 2**15):
            monkeypatch.setattr(lsbcmm, "BLOCK_ENTRIES", entries)
            found = gate_objective((scale * gates).ravel(), rows, taken, reached, 0.5)
            assert found[0] == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(found[1], gradient.ravel(), atol=1e-9 * scale)


@pytest.mark.parametrize("variance", [0.1, 1.0, 10.0])
def test_gates_are_weighted_logistic_regressions(variance):
    rows, mask, gates, dirichlet = random_state_of_the_model(1)
    expected = expected_log_theta(dirichlet)
    r = e_step(log_stick_breaking(rows @ gates), expected, mask)[0]
    found = fit_gates(rows, r, gates, variance, 2000)
    for k in range(gates.shape[1]):
        reference = literal_gate(rows, r[:, k], r[:, k + 1 :].sum(axis=1), variance)
        np.testing.assert_allclose(found[:, k], reference, atol=5e-3)


def test_rounds_agree_with_a_literal_em():
    X, mask, _ = random_problem(4, m=50, d=3, q=3)
    model = LSBCMM(
        components_per_label=2, max_iter=6, max_gate_iter=2000, gate_variance=0.5, random_state=0
    ).fit(X, mask)

    rows = np.c_[np.ones(50), StandardScaler().fit_transform(X)]
    dirichlet = dealt_dirichlet(mask, 2, np.random.RandomState(0))
    gates, bounds = uniform_gates(4, 6), []
    for _ in range(6):
        expected = expected_log_theta(dirichlet)
        phi = literal_phi(rows @ gates)
        q = literal_q(phi, expected, mask)
        bounds.append(literal_bound(q, phi, expected, dirichlet, gates, 0.05, 0.5))
        used = dirichlet, gates
        dirichlet = q.sum(axis=0) + 0.05
        r = q.sum(axis=2)
        gates = np.stack(
            [literal_gate(rows, r[:, k], r[:, k + 1 :].sum(axis=1), 0.5) for k in range(5)], axis=1
        )
    np.testing.assert_allclose(model.bound_path_, bounds, rtol=1e-4)
    np.testing.assert_allclose(model.dirichlet_, used[0], atol=0.02)
    probability = literal_phi(rows @ used[1]) @ (used[0] / used[0].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), probability, atol=5e-3)


@settings(max_examples=20, deadline=None)
@given(problems())
def test_the_bound_never_decreases(problem):
    X, mask, _ = problem
    for max_gate_iter in (1, 10):
        model = LSBCMM(max_iter=12, tol=0.0, max_gate_iter=max_gate_iter, random_state=0)
        bounds = model.fit(X, mask).bound_path_
        assert bounds.shape == (model.n_iter_,)
        assert model.n_iter_ <= 12
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


def test_it_is_a_bound_of_the_likelihood():
    # With theta at its posterior mean the likelihood is no smaller than the data term, by Jensen.
    X, mask, _ = random_problem(0, m=60, d=3, q=4)
    model = LSBCMM(max_iter=30, random_state=0).fit(X, mask)
    likelihood = np.log((model.predict_proba(X) * mask).sum(axis=1)).sum()
    penalty = (model.gates_[1:] ** 2).sum() / 2.0
    assert model.bound_path_[-1] + penalty <= likelihood


def test_components_are_dealt_to_rare_labels_first():
    mask = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=bool)
    dirichlet = dealt_dirichlet(mask, 2, np.random.RandomState(0))
    assert dirichlet.argmax(axis=1).tolist() == [2, 1, 0, 2, 1, 0]
    assert np.unique(dirichlet).tolist() == [1.0, 11.0]


def test_equally_frequent_labels_are_dealt_in_random_order():
    mask = np.ones((3, 4), dtype=bool)
    first = {
        int(dealt_dirichlet(mask, 1, np.random.RandomState(seed))[0].argmax()) for seed in range(40)
    }
    assert first == {0, 1, 2, 3}


def test_number_of_components_follows_the_labels_that_occur():
    X, mask, _ = random_problem(0, m=40, d=3, q=4, absent=True)
    assert LSBCMM(max_iter=2).fit(X, mask).dirichlet_.shape == (15, 3)
    assert LSBCMM(components_per_label=1, max_iter=2).fit(X, mask).gates_.shape == (4, 2)


def test_order_of_rows_and_labels_does_not_matter():
    X, mask, _ = random_problem(5, m=70, d=4, q=5)
    shares = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
    assert np.diff(np.sort(shares)).min() > 1e-6  # no ties when the components are dealt
    reference = LSBCMM(max_iter=15, random_state=0).fit(X, mask)
    rng = np.random.RandomState(0)
    rows, labels = rng.permutation(70), rng.permutation(5)
    model = LSBCMM(max_iter=15, random_state=1).fit(X[rows], mask[rows][:, labels])
    np.testing.assert_allclose(
        model.predict_proba(X), reference.predict_proba(X)[:, labels], atol=1e-3
    )
    np.testing.assert_array_equal(labels[model.labels_], reference.labels_[rows])


def test_confidences_are_the_probabilities_within_the_candidates():
    X, mask, _ = random_problem(0, m=40, d=3, q=4)
    model = LSBCMM(max_iter=10, random_state=0).fit(X, mask)
    inside = model.predict_proba(X) * mask
    np.testing.assert_allclose(
        model.label_confidences_, inside / inside.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_stopping():
    assert not has_settled([-10.0] * 10, 1e-4)  # more than ten rounds are asked for
    assert has_settled([-10.0] * 11, 1e-4)
    rising = list(np.linspace(-100.0, -50.0, 11))
    assert not has_settled(rising, 1e-4)
    assert has_settled(rising, 0.5)
    assert not has_settled([-10.0] * 50, 0.0)
    X, mask, _ = random_problem(0, m=40, d=3, q=4)
    assert LSBCMM(tol=0.0, max_iter=14).fit(X, mask).n_iter_ == 14
    assert LSBCMM(tol=10.0).fit(X, mask).n_iter_ == 11


def test_too_small_a_concentration_is_refused():
    with pytest.raises(ValueError, match="'concentration' parameter of LSBCMM"):
        LSBCMM(concentration=1e-4).fit([[0.0], [1.0]], [0, 1])
