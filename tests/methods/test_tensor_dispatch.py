"""GM-PLL keeps tensors where scikit-learn is told to, which needs a variable set beforehand."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

SCRIPT = """
import numpy as np, sklearn, torch
from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem

problem = make_partial_label_problem(120, 8, 5, 2.0, random_state=0)
X, y = torch.from_numpy(problem.data), torch.from_numpy(np.asarray(problem.candidates))
for graph in ("full", "local"):
    model = GMPLL(graph=graph, prediction="independent", random_state=0)
    with sklearn.config_context(array_api_dispatch=True):
        model.fit(X, y)
        kept = (model.labels_, model.label_confidences_, model.predict(X), model.predict_proba(X))
    assert all(isinstance(values, torch.Tensor) for values in kept)
    expected = GMPLL(graph=graph, prediction="independent", random_state=0)
    expected.fit(problem.data, problem.candidates)
    assert (expected.labels_ == kept[0].numpy()).all()
    assert np.allclose(expected.predict_proba(problem.data), kept[3].numpy(), atol=1e-9)
    try:
        model.predict(problem.data)
    except ValueError as error:
        assert "fitted on tensors" in str(error)
    else:
        raise AssertionError("arrays were taken by a model of tensors")
    assert isinstance(model.fit(X, problem.candidates).labels_, np.ndarray)  # no dispatch
    assert isinstance(model.predict(problem.data), np.ndarray)
"""


def test_tensors_in_tensors_out():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
