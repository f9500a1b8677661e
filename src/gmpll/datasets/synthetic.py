"""Partial label problems of any size, made on the spot."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state, gen_batches

from gmpll._typing import Floats, Places, RandomSource
from gmpll.datasets.corruption import class_dependent_candidates

#: Normal numbers are drawn in blocks of about this many bytes.
BLOCK_BYTES = 2**26


def make_partial_label_problem(
    n_samples: int = 100,
    n_features: int = 20,
    n_classes: int = 5,
    mean_candidates: float = 2.0,
    imbalance: float = 0.0,
    separation: float = 3.0,
    random_state: RandomSource | None = None,
    *,
    dtype: Any = np.float64,
) -> Bunch:
    r"""Make Gaussian classes with random candidate sets.

    Class :math:`k` has a share of the rows proportional to :math:`(k+1)^{-z}` where :math:`z` is
    the imbalance, and features :math:`N(\mu_k, I)`. The centres are drawn from
    :math:`N(0, \tfrac{s^2}{2d} I)`, so that the expected squared distance of two centres is
    :math:`s^2` in any number of dimensions. Every label other than the true one is a candidate
    with probability :math:`(m - 1)/(q - 1)`, independently.

    Parameters
    ----------
    n_samples, n_features, n_classes : int
        Size of the problem; with ``n_samples >= n_classes`` every class occurs.
    mean_candidates : float in [1, n_classes], default=2.0
        Expected size m of the candidate sets.
    imbalance : float, default=0.0
        Exponent z of Zipf's law; 0 makes classes of equal size.
    separation : float, default=3.0
        Typical distance s of two centres, in standard deviations of a class.
    random_state : int, RandomState or None, default=None
        Seed.
    dtype : {float64, float32}, default=float64
        Type of ``data``. Beyond the arrays returned, a block of some tens of megabytes is used
        whatever the size.

    Returns
    -------
    Bunch
        With ``name``, ``data``, ``candidates``, ``target``, ``target_names``, ``feature_names``,
        ``centers`` (n_classes, n_features) and ``DESCR``.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(1000, 3, 4, 1.5, imbalance=1.0, random_state=0)
    >>> problem.data.shape, problem.candidates.shape
    ((1000, 3), (1000, 4))
    >>> np.bincount(problem.target).tolist()
    [480, 240, 160, 120]
    """
    for name, value, least in (
        ("n_samples", n_samples, 1),
        ("n_features", n_features, 1),
        ("n_classes", n_classes, 2),
        ("imbalance", imbalance, 0),
        ("separation", separation, 0),
    ):
        if not least <= value < np.inf:
            raise ValueError(f"{name} must be at least {least} and finite, not {value}.")
    if not 1 <= mean_candidates <= n_classes:
        raise ValueError(
            f"mean_candidates must be between 1 and {n_classes}, not {mean_candidates}."
        )
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float64 or float32, not {np.dtype(dtype)}.")
    rng = check_random_state(random_state)
    weights = np.arange(1, n_classes + 1, dtype=np.float64) ** -imbalance  # Zipf's law
    sizes = _shared_out(n_samples, weights)
    if n_samples >= n_classes and not sizes.all():  # where there are enough, no class stays empty
        sizes = 1 + _shared_out(n_samples - n_classes, weights)
    target = np.repeat(np.arange(n_classes), sizes)
    rng.shuffle(target)
    centers = rng.standard_normal((n_classes, n_features)) * separation / np.sqrt(2 * n_features)
    # The stream is consumed in the same order whatever the size of the blocks, each of which needs
    # two temporaries of 8 bytes a number: the draws, and the draws moved to their centres.
    data = np.empty((n_samples, n_features), dtype=dtype)
    for part in gen_batches(n_samples, max(1, BLOCK_BYTES // (16 * n_features))):
        data[part] = rng.standard_normal(data[part].shape) + centers[target[part]]
    inclusion = np.full((n_classes, n_classes), (mean_candidates - 1) / (n_classes - 1))
    np.fill_diagonal(inclusion, 1.0)
    candidates = class_dependent_candidates(target, inclusion, random_state=rng)
    return Bunch(
        name="synthetic",
        data=data,
        candidates=candidates,
        target=target,
        target_names=np.arange(n_classes),
        feature_names=[f"feature{j}" for j in range(n_features)],
        centers=centers,
        DESCR=(
            f"{n_classes} Gaussian classes, separation {separation}, imbalance {imbalance}, "
            f"{mean_candidates} candidates per row expected."
        ),
    )


def _shared_out(total: int, weights: Floats) -> Places:
    """Split a number in proportion to weights, rounding up the largest remainders."""
    ideal = weights / weights.sum() * total
    sizes = np.floor(ideal).astype(np.intp)
    sizes[np.argsort(sizes - ideal, kind="stable")[: total - int(sizes.sum())]] += 1
    return sizes
