"""From probabilities in partitions to labels, confidences and scores of unseen rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from numpy.typing import NDArray

from gmpll.distributed.graph import row_scales, self_tuning_weights
from gmpll.graph.neighbors import Neighbors
from gmpll.rounding import best_labels, confidences_within

__all__ = ["best_of_block", "chosen", "dense", "joined", "scores_of_block", "support_shares"]


def best_of_block(
    probabilities: sp.csr_array, candidates: sp.csr_array, seed: int
) -> NDArray[np.intp]:
    """Return the column of the best candidate of every row; ties are drawn."""
    inside = candidates.toarray() > 0
    scores = np.where(inside, probabilities.toarray(), -np.inf)
    return best_labels(scores, rng=np.random.RandomState(seed))


def support_shares(support: sp.csr_array, candidates: sp.csr_array) -> sp.csr_array:
    """Return the share of the support that each candidate of a row has."""
    return sp.csr_array(confidences_within(support.toarray(), candidates.toarray() > 0))


def scores_of_block(
    near: Neighbors,
    scales: Sequence[NDArray[np.floating]],
    labels: Sequence[NDArray[np.intp]],
    correction: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the labels' shares of the weight that leads from unseen rows to training rows.

    Parameters
    ----------
    near : Neighbors
        The training rows nearest to the unseen ones.
    scales, labels : sequence of ndarray
        Scale and label found of the training rows, by partition.
    correction : ndarray of shape (n_classes,)
        Factor of every label that keeps frequent ones from winning by their number.
    """
    n, k = near.indices.shape
    spread = row_scales(near)[:, None] * np.concatenate(scales)[near.indices]
    # The smallest positive number keeps the nearest labels in play where all weights vanish.
    weights = np.maximum(self_tuning_weights(near.distances, spread), np.finfo(np.float64).tiny)
    voted = np.concatenate(labels)[near.indices]
    owners = np.repeat(np.arange(n), k)
    votes = sp.coo_array((weights.ravel(), (owners, voted.ravel())), shape=(n, len(correction)))
    scores = votes.toarray() * correction
    return confidences_within(scores, np.broadcast_to(correction > 0, scores.shape))


def chosen(
    scores: NDArray[np.float64], priority: NDArray[np.intp], classes: NDArray[Any]
) -> NDArray[Any]:
    """Return the best label of every unseen row; ties go to the label of higher priority."""
    return classes[best_labels(scores, priority=priority)]


def dense(block: sp.csr_array) -> NDArray[np.float64]:
    """Return a sparse block as an array."""
    return block.toarray()


def joined(blocks: Sequence[Delayed], shapes: Sequence[tuple[int, ...]], dtype: Any) -> da.Array:
    """Return one Dask array of arrays that tasks make."""
    return da.concatenate(
        [
            da.from_delayed(block, shape, dtype=dtype)
            for block, shape in zip(blocks, shapes, strict=True)
        ]
    )
