"""Which arrays keep their library in ``fit`` and ``predict``, and how they are checked.

NumPy arrays, data frames and sparse matrices go through scikit-learn's own checks. Dask arrays stay
Dask arrays. Tensors stay tensors, on their device, where scikit-learn is told so::

    SCIPY_ARRAY_API=1 python ...                       # before SciPy is loaded
    with sklearn.config_context(array_api_dispatch=True):
        model.fit(X, y)

Elsewhere tensors in the main memory are read as NumPy arrays, as scikit-learn does.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config  # type: ignore[attr-defined]

from gmpll.arrays import Array, beside, is_dask_array, is_torch_array, to_host
from gmpll.engines import engine_of


def keeps_library(X: Any) -> bool:
    """Whether X is to be kept as it is: a Dask array, or a tensor that scikit-learn dispatches."""
    if is_dask_array(X):
        return True
    if not is_torch_array(X):
        return False
    dispatched = bool(get_config()["array_api_dispatch"])
    if not dispatched and X.device.type != "cpu":
        raise ValueError(
            f"X is a tensor on {X.device}: set the environment variable SCIPY_ARRAY_API=1 before "
            "Python starts and call this inside sklearn.config_context(array_api_dispatch=True), "
            "or pass X.cpu()."
        )
    return dispatched


def check_features(estimator: Any, X: Array, *, reset: bool) -> Array:
    """Return rows of floating-point numbers; raise where there are none, or not as many as fit saw.

    Single and double precision are kept, everything else becomes double. In ``fit``, where
    ``reset`` is true, the estimator gets ``n_features_in_``.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}: it must be (n_samples, n_features), neither of them 0."
        )
    engine = engine_of(X)
    xp = engine.xp
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    (finite,) = engine.small(xp.all(xp.isfinite(X)))
    if not bool(finite):
        raise ValueError("Input X contains NaN or infinity: remove or impute such entries.")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def on_host(y: Any) -> Any:
    """Bring candidates or labels to the main memory; what is there already stays as it is."""
    if is_dask_array(y) or is_torch_array(y):
        return to_host(y)
    return y.compute() if hasattr(y, "dask") else y


def labels_of(codes: Array, classes: NDArray[Any]) -> Array:
    """Return the labels of codes where the codes live; names, which no tensor holds, in NumPy."""
    if is_torch_array(codes) and classes.dtype.kind in "iufb":
        return beside(classes, codes)[codes]
    if is_dask_array(codes):
        return engine_of(codes).map_rows(lambda block: classes[block.astype(np.intp)], codes)
    return classes[to_host(codes)]
