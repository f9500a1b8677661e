"""The methods as scikit-learn estimators, and what they share."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from gmpll.deep import (  # noqa: E402
    CC,
    DEEP_METHODS,
    LWS,
    POP,
    PRODEN,
    PartialLabelNetwork,
    PiCO,
)
from problems import random_problem  # noqa: E402

QUICK = {"learning_rate": 0.02, "max_iter": 15, "random_state": 0, "device": "cpu"}
ESTIMATORS = [Method(**QUICK) for Method in DEEP_METHODS.values()]
ESTIMATORS[list(DEEP_METHODS).index("PiCO")].set_params(max_iter=5, embedding=16)  # the slowest
every_method = pytest.mark.parametrize("method", ESTIMATORS, ids=lambda m: type(m).__name__)


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)


def case(seed=0, m=60, d=4, q=4):
    X, mask, _ = random_problem(seed, m=m, d=d, q=q)
    return X, mask


@every_method
def test_confidences_live_on_the_candidates_and_fits_repeat(method):
    X, mask = case()
    users_own = torch.random.get_rng_state()
    model = clone(method).fit(X, mask)
    assert torch.equal(torch.random.get_rng_state(), users_own)
    assert (model.label_confidences_[~mask] == 0).all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
    assert mask[np.arange(len(mask)), model.labels_].all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    again = clone(method).fit(X, mask)
    np.testing.assert_array_equal(model.label_confidences_, again.label_confidences_)
    revived = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict_proba(X), revived.predict_proba(X))


@every_method
def test_clusters_are_found(method):
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(4), 30)
    X = 6 * rng.randn(4, 6)[y] + rng.randn(120, 6)
    mask = np.eye(4, dtype=bool)[y]
    mask[np.arange(120), rng.randint(4, size=120)] = True
    order = rng.permutation(120)
    X, y, mask = X[order], y[order], mask[order]
    model = clone(method).set_params(module="mlp", max_iter=15).fit(X[:90], mask[:90])
    assert (model.labels_ == y[:90]).mean() > 0.9
    assert model.score(X[90:], y[90:]) > 0.9


@every_method
def test_two_moons_are_told_apart(method):
    X, y = make_moons(200, noise=0.1, random_state=0)
    mask = np.eye(3, dtype=bool)[y]
    mask |= np.random.RandomState(0).rand(200, 3) < 0.3
    model = clone(method).set_params(module="mlp", learning_rate=0.01, max_iter=40)
    model.fit(X[:150], mask[:150])
    assert model.score(X[150:], y[150:]) > 0.9


@every_method
def test_batches_and_loaders_teach_the_same(method):
    X, mask = case(m=96)
    # Every label in the first batch, so that both know them all.
    by_hand, by_loader = clone(method), clone(method)
    for start in range(0, 96, 32):
        part = slice(start, start + 32)
        by_hand.partial_fit(X[part], mask[part])
    data = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(mask))
    by_loader.partial_fit(torch.utils.data.DataLoader(data, batch_size=32))
    np.testing.assert_array_equal(by_hand.predict_proba(X), by_loader.predict_proba(X))
    assert by_hand.n_samples_seen_ == 96
    assert by_hand.n_iter_ == 3
    revived = pickle.loads(pickle.dumps(by_hand)).partial_fit(X[:32], mask[:32])
    np.testing.assert_array_equal(
        revived.predict_proba(X), by_hand.partial_fit(X[:32], mask[:32]).predict_proba(X)
    )


def test_a_stream_learns_and_goes_on_from_a_fit():
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=1200)
    X = np.eye(3)[y] * 3 + rng.randn(1200, 3)
    sets = [{"abc"[label], "abc"[other]} for label, other in zip(y, rng.randint(3, size=1200))]  # noqa: B905
    model = CC("linear", batch_size=50, random_state=0)
    for start in range(0, 1000, 100):
        part = slice(start, start + 100)
        model.partial_fit(X[part], sets[part], classes=["a", "b", "c"])
    truth = np.array(["a", "b", "c"])[y]
    assert model.score(X[1000:], truth[1000:]) > 0.85
    fitted = CC("linear", max_iter=50, random_state=0).fit(X[:200], sets[:200])
    before = fitted.predict_proba(X[1000:])
    fitted.partial_fit(X[200:300], sets[200:300])
    assert 0 < np.abs(fitted.predict_proba(X[1000:]) - before).max() < 0.2
    with pytest.raises(ValueError, match="which is none of the 3 labels"):
        fitted.partial_fit(X[:2], [{"z"}, {"a"}])
    with pytest.raises(ValueError, match="but the labels of this model are"):
        fitted.partial_fit(X[:2], sets[:2], classes=["a", "b"])
    in_their_order = CC("linear", random_state=0)
    for _ in range(2):
        in_their_order.partial_fit(X[:50], sets[:50], classes=["c", "a", "b"])
    assert in_their_order.classes_.tolist() == ["c", "a", "b"]


def test_the_model_is_chosen_by_held_out_candidates():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (400, 2))
    ring = (np.hypot(*X.T) > 0.7).astype(int)
    for y, expected in ((ring, "mlp"), ((X[:, 0] > 0).astype(int), "linear")):
        mask = np.eye(3, dtype=bool)[y]
        mask[:, 2] |= rng.rand(400) < 0.5
        model = CC(max_iter=100, random_state=0, device="cpu").fit(X, mask)
        lifts = model.module_lifts_
        assert model.module_name_ == max(lifts, key=lifts.get)
        if expected == "mlp":
            assert model.module_name_ == "mlp"
        assert model.score(X, y) > 0.9


def test_modules_of_the_users_own_are_copied():
    X, mask = case()
    torch.manual_seed(0)
    own = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
    before = own[0].weight.detach().clone()
    model = PRODEN(own, max_iter=3, random_state=0).fit(X, mask)
    assert torch.equal(own[0].weight, before)
    assert not torch.equal(model.module_[0].weight, before)
    assert model.module_name_ == "own"
    factory = PRODEN(lambda d, q: torch.nn.Linear(d, q), max_iter=3, random_state=0)
    assert factory.fit(X, mask).module_.out_features == 4
    assert clone(factory).module is factory.module
    with pytest.raises(ValueError, match=r"must return \(2, 4\)\. Pass a callable"):
        PRODEN(torch.nn.Linear(4, 5)).fit(X, mask)
    with pytest.raises(ValueError, match=r"must be a torch\.nn\.Module or a"):
        PRODEN(lambda d, q: "nothing").fit(X, mask)
    with pytest.raises(ValueError, match=r"must return a gmpll\.deep\.Objective"):
        PartialLabelNetwork(objective=dict).fit(X, mask)


def test_widths_make_a_perceptron_with_batch_normalisation():
    X, mask = case(m=65)  # batches of 16: the last one would have a single row
    model = PRODEN((7, 5), **QUICK, batch_size=16).fit(X, mask)
    kinds = [type(layer).__name__ for layer in model.module_]
    assert kinds == ["Linear", "ReLU", "BatchNorm1d"] * 2 + ["Linear"]
    assert [layer.out_features for layer in model.module_[::3]] == [7, 5, 4]
    assert model.module_name_ == "mlp"
    alone = np.vstack([model.predict_proba(X[[row]]) for row in range(5)])
    np.testing.assert_allclose(alone, model.predict_proba(X)[:5], atol=1e-12)
    with pytest.raises(ValueError, match="positive integers"):
        PRODEN((7, 0), **QUICK).fit(X, mask)


def test_images_reach_the_module_in_their_shape():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 20)
    X = rng.rand(40, 36) * 0.2
    X[y == 1, :18] += 1.0
    sets = [{label, row % 2} for row, label in enumerate(y)]
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2)
    )
    for Method in (PRODEN, PiCO):
        model = Method(
            module, image_shape=(1, 6, 6), learning_rate=0.01, max_iter=30, random_state=0
        )
        assert model.fit(X, sets).score(X, y) == 1.0
    assert (
        PRODEN("mlp", image_shape=(1, 6, 6), max_iter=30, random_state=0).fit(X, sets).score(X, y)
        > 0.9
    )
    with pytest.raises(ValueError, match="does not fit rows of 36 features"):
        PRODEN(image_shape=(3, 6, 6)).fit(X, sets)


def test_early_stopping_labels_held_out_rows_too():
    X, mask = case(m=80)
    model = CC("mlp", early_stopping=True, n_iter_no_change=2, random_state=0, max_iter=60)
    model.fit(X, mask)
    assert model.n_iter_ == len(model.validation_curve_) >= model.best_iter_
    assert mask[np.arange(80), model.labels_].all()


def test_outliers_and_sparse_features():
    X, mask = case()
    X[0, 0] = 1e6  # logits of a row of 39 standard deviations ruin published code
    model = PRODEN("mlp", max_iter=30, random_state=0).fit(X, mask)
    assert np.isfinite(model.label_confidences_).all()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = CC("linear", max_iter=3, random_state=0).fit(X, mask)
    sparse = CC("linear", max_iter=3, random_state=0).fit(sp.csr_array(X), mask)
    np.testing.assert_array_equal(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)))


def test_struck_candidates_have_no_confidence():
    X, mask = case()
    model = POP("linear", theta=0.4, warmup=2, interval=1, max_iter=30, random_state=0)
    confidences = model.fit(X, mask).label_confidences_
    assert ((confidences == 0) & mask).any()
    assert mask[np.arange(60), model.labels_].all()


def test_a_device_that_is_not_here():
    X, mask = case()
    if torch.cuda.is_available():
        cpu, cuda = (
            LWS("linear", device=d, max_iter=20, random_state=0).fit(X, mask)
            for d in ("cpu", "cuda")
        )
        np.testing.assert_allclose(cpu.predict_proba(X), cuda.predict_proba(X), atol=1e-4)
    else:
        with pytest.raises(ValueError, match="finds no CUDA device"):
            LWS(device="cuda").fit(X, mask)


def test_parameter_tables_cover_the_constructors():
    for Method in DEEP_METHODS.values():
        assert set(Method._parameter_constraints) == set(Method().get_params()), Method


WITHOUT_TORCH = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from gmpll import LALO, PLAGGD, PLCL, SURE
for Method in (LALO, PLAGGD, PLCL, SURE):
    print(*Method(random_state=0).fit([[0.0], [5.0]], [{"a"}, {"a", "b"}]).labels_)
from gmpll.deep import PRODEN
"""


def test_torch_is_loaded_late():
    code = "import sys, gmpll, gmpll.methods; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_torch_is_missed_in_one_sentence_and_by_networks_alone():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH],
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(done.stdout.split()) == 8
    sentence = "ImportError: gmpll.deep needs PyTorch: pip install 'gmpll[torch]'."
    assert done.stderr.splitlines()[-1] == sentence
