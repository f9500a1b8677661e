"""GM-PLL on tensors against GM-PLL on arrays, in double precision up to 1e-9."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll import GMPLL  # noqa: E402
from gmpll.datasets import make_partial_label_problem  # noqa: E402
from gmpll.methods._tensor_fit import (  # noqa: E402
    fit_tensors,
    predict_proba_tensors,
    predict_tensors,
    predicts_tensors,
)


@pytest.fixture(scope="module")
def data():
    problem = make_partial_label_problem(240, 10, 6, 2.5, random_state=0)
    mask = np.asarray(problem.candidates, dtype=bool)
    return problem.data, np.column_stack([mask, np.zeros(len(mask), dtype=bool)])


def model(**parameters):
    return GMPLL(**({"prediction": "independent", "random_state": 0} | parameters))


@pytest.mark.parametrize("graph", ["full", "local"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"r": 1},
        {"balance": 0, "max_iter": 20},
        {"label_similarity": np.eye(7) * 0.5 + 0.5},
        {"n_neighbors": 3},
    ],
)
def test_tensors_give_what_arrays_give(data, graph, parameters):
    X, mask = data
    expected = model(graph=graph, **parameters).fit(X[:160], mask[:160])
    found = fit_tensors(
        model(graph=graph, **parameters),
        torch.from_numpy(X[:160]),
        torch.from_numpy(mask[:160]),
    )
    for name in ("label_confidences_", "label_support_"):
        values = getattr(found, name)
        assert isinstance(values, torch.Tensor)
        np.testing.assert_allclose(values.numpy(), getattr(expected, name), atol=1e-9)
    np.testing.assert_array_equal(found.labels_.numpy(), expected.labels_)
    np.testing.assert_array_equal(found.classes_.numpy(), expected.classes_)
    assert (found.n_iter_, found.r_, found.converged_, found.prediction_) == (
        expected.n_iter_,
        expected.r_,
        expected.converged_,
        expected.prediction_,
    )
    unseen = torch.from_numpy(X[160:])
    np.testing.assert_allclose(
        predict_proba_tensors(found, unseen).numpy(), expected.predict_proba(X[160:]), atol=1e-9
    )
    np.testing.assert_array_equal(predict_tensors(found, unseen).numpy(), expected.predict(X[160:]))


@pytest.mark.parametrize("graph", ["full", "local"])
def test_single_precision_is_kept_and_finds_the_same_labels(data, graph):
    X, mask = data
    expected = model(graph=graph).fit(X, mask)
    found = fit_tensors(
        model(graph=graph), torch.from_numpy(X).float(), torch.from_numpy(mask).int()
    )
    assert found.label_confidences_.dtype == torch.float32
    assert (found.labels_.numpy() == expected.labels_).mean() > 0.99
    assert predict_proba_tensors(found, torch.from_numpy(X)).dtype == torch.float32


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"graph": "local", "prediction": "auto"}, "set prediction='independent'"),
        ({"prediction": "joint"}, "set prediction='independent'"),
        ({"graph": "full", "alpha": 0.1}, "set alpha=0"),
        ({"scaling": "rank"}, "set scaling='standard'"),
    ],
)
def test_what_tensors_cannot_do_is_said(data, parameters, message):
    X, mask = data
    with pytest.raises(ValueError, match=message):
        fit_tensors(model(**parameters), torch.from_numpy(X), torch.from_numpy(mask))


def test_other_knowledge_is_refused_by_name(data):
    X, mask = map(torch.from_numpy, data)
    with pytest.raises(ValueError, match="with gold; leave it out"):
        fit_tensors(model(), X, mask, gold=[0] * len(X), impossible=None)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X[0], y), "must be"),
        (lambda X, y: (X * float("nan"), y), "NaN or infinity"),
        (lambda X, y: (X, y.numpy()), "y must be a tensor"),
        (lambda X, y: (X, y[:-1]), "but y has 239"),
        (lambda X, y: (X, y * 2), "0 or 1"),
        (lambda X, y: (X, y & False), "Row 0 has an empty candidate set"),
    ],
)
def test_wrong_input_is_refused(data, spoil, message):
    X, mask = map(torch.from_numpy, data)
    with pytest.raises(ValueError, match=message):
        fit_tensors(model(), *spoil(X, mask))


def test_unseen_rows_must_fit_the_training_rows(data):
    X, mask = map(torch.from_numpy, data)
    fitted = fit_tensors(model(graph="full"), X, mask)
    with pytest.raises(ValueError, match="expecting 10 features"):
        predict_tensors(fitted, X[:, :4])
    with pytest.raises(ValueError, match="fitted on NumPy arrays"):
        predict_tensors(model(graph="full").fit(*data), X)
    with pytest.raises(ValueError, match="fitted on tensors: predict with tensors too"):
        predicts_tensors(fitted, data[0])
    assert not predicts_tensors(model(), data[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("graph", ["full", "local"])
def test_everything_stays_on_the_device(data, graph):
    X, mask = data
    expected = model(graph=graph).fit(X, mask)
    there = torch.from_numpy(X).float().cuda()
    found = fit_tensors(model(graph=graph), there, torch.from_numpy(mask).cuda())
    for values in (
        found.labels_,
        found.label_confidences_,
        found.label_support_,
        predict_tensors(found, there),
        predict_proba_tensors(found, there),
    ):
        assert values.is_cuda
    assert (found.labels_.cpu().numpy() == expected.labels_).mean() > 0.99
    predicted = predict_tensors(found, there).cpu().numpy()
    assert (predicted == expected.predict(X)).mean() > 0.99
