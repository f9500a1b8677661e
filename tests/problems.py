"""Random partial label problems with everything that goes wrong in life."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.io import loadmat


def random_problem(seed, m=12, d=4, q=4, *, zero_rows=False, duplicates=False, absent=False):
    rng = np.random.RandomState(seed)
    truth = rng.randint(q - absent, size=m)
    X = rng.randn(q, d)[truth] * 1.5 + rng.randn(m, d)
    if duplicates:
        X[m // 2] = X[0]
        X[m // 2 + 1] = X[0]
    mask = rng.random_sample((m, q)) < 0.35
    if absent:
        mask[:, -1] = False
    mask[np.arange(m), truth] = True
    if zero_rows:  # a row that equals the mean becomes zero by z-scoring
        X[-1] = 0.0
        X[-2] = X[:-2].mean(axis=0)
        X[-1] = X[-2]
    return X, mask, truth


def problems():
    return st.builds(
        random_problem,
        seed=st.integers(0, 10_000),
        m=st.integers(4, 14),
        d=st.integers(1, 5),
        q=st.integers(2, 5),
        zero_rows=st.booleans(),
        duplicates=st.booleans(),
        absent=st.booleans(),
    )


def random_label_similarity(rng, q, levels=None):
    values = rng.random_sample((q, q)) if levels is None else rng.choice(levels, size=(q, q))
    similarity = np.triu(values, 1)
    return similarity + similarity.T + np.eye(q)


def real_world(name):
    """Rows, candidates and truth of a real-world data set; a test without it is skipped."""
    path = Path(os.environ.get("GMPLL_DATA", "")) / "realworld" / f"{name}.mat"
    if not path.exists():
        pytest.skip(f"GMPLL_DATA names no folder with realworld/{name}.mat")
    content = loadmat(path, spmatrix=False)
    candidates, truth = (
        sp.csr_array(content[key]).toarray() for key in ("partial_target", "target")
    )
    return content["data"], candidates.T > 0, truth.argmax(axis=0)
