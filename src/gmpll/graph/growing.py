"""Local graphs of NumPy rows to which rows are added, without a search among those they have.

The neighbours of a row that is there already can only change where an added row is nearer than the
farthest of them. So the neighbours of the added rows are searched, among all rows, and for the
others those among the added rows: O(n (m + n) d) time for n rows added to m of d features, where a
new graph takes O((m + n)^2 d).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.engines import Neighbors, engine_of
from gmpll.engines.numpy import nearest_of_both
from gmpll.graph.local import LocalGraph, LocalGraphs, row_scales, self_tuning_weights
from gmpll.graph.neighbors import nearest_neighbors

__all__ = ["GrowingGraph", "GrowingGraphs", "NewEdges", "edges_of_new_rows"]


class GrowingGraph(LocalGraph):
    """A local graph that keeps the neighbours of its rows, so that rows can be added.

    Parameters
    ----------
    rows, n_neighbors, neighbor_search, random_state, n_jobs
        As in :class:`gmpll.graph.local.LocalGraph`; rows are a NumPy array.

    Attributes
    ----------
    near : Neighbors
        The neighbours of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.growing import GrowingGraph
    >>> graph = GrowingGraph(np.array([[0.0], [2.0]]), 1)
    >>> graph.with_rows(np.array([[1.5]])).near.indices.ravel()
    array([2, 2, 1])
    """

    near: Neighbors

    def __init__(self, rows: NDArray[np.floating], n_neighbors: int, **options: Any) -> None:
        _check_on_host(rows)
        super().__init__(rows, n_neighbors, **options)

    def relate(self, near: Neighbors) -> None:
        """Set scales and weights by the neighbours of all rows, and keep these."""
        self.near = near
        super().relate(near)

    def with_rows(self, added: NDArray[np.floating]) -> GrowingGraph:
        """Return the graph of these rows and of added ones after them; this one stays as it is.

        The neighbours of the added rows, (n_added, n_features), are searched exactly.
        """
        k, m = self.n_neighbors, len(self.rows)
        among_added = nearest_neighbors(added, k, self.rows, n_jobs=self.n_jobs)
        of_rows = nearest_of_both(self.near, _moved(among_added, m), k)
        of_added = _neighbors_of_new(self, added)
        grown = copy.copy(self)
        grown.rows = np.vstack([self.rows, added])
        grown.relate(Neighbors(*map(np.vstack, zip(of_rows, of_added, strict=True))))
        return grown


class GrowingGraphs(LocalGraphs):
    """One growing graph per view of the same rows, their weights added up.

    Parameters
    ----------
    graphs : sequence of GrowingGraph
        The graph of every view.
    """

    graphs: list[GrowingGraph]  # type: ignore[assignment]

    def __init__(self, graphs: Sequence[GrowingGraph]) -> None:
        self.graphs = list(graphs)
        self.combine()

    @classmethod
    def of(cls, graphs: LocalGraphs, *, random_state: int | np.random.RandomState) -> GrowingGraphs:
        """Search the neighbours of the rows of other graphs, which did not keep them.

        The random state seeds an approximate search. Graphs that can grow are returned themselves.
        """
        if isinstance(graphs, cls):
            return graphs
        grown = []
        for graph in graphs.graphs:
            options = {"neighbor_search": graph.search, "n_jobs": graph.n_jobs}
            k = graph.n_neighbors
            grown.append(GrowingGraph(graph.rows, k, random_state=random_state, **options))
        return cls(grown)

    def with_rows(self, views: Sequence[NDArray[np.floating]]) -> GrowingGraphs:
        """Return the graphs of these rows and of added ones, given in each view."""
        pairs = zip(self.graphs, views, strict=True)
        return GrowingGraphs([graph.with_rows(rows) for graph, rows in pairs])


class NewEdges(NamedTuple):
    """Weights of the edges of new rows.

    Attributes
    ----------
    to_graph : csr_array of shape (n_new, n_samples)
        To the rows of a graph.
    among : csr_array of shape (n_new, n_new)
        Among each other; symmetric.
    """

    to_graph: sp.csr_array
    among: sp.csr_array


def edges_of_new_rows(graphs: LocalGraphs, views: Sequence[NDArray[np.floating]]) -> NewEdges:
    """Relate new rows to their neighbours, in the graphs and among themselves.

    The graphs stay as they are: a row of theirs does not become aware of its new neighbours.

    Parameters
    ----------
    graphs : LocalGraphs
        One graph per view.
    views : sequence of ndarray of shape (n_new, n_features_v)
        The new rows in each view.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.growing import edges_of_new_rows
    >>> from gmpll.graph.local import LocalGraphs
    >>> graphs = LocalGraphs([np.array([[0.0], [1.0]])], 1)
    >>> edges = edges_of_new_rows(graphs, [np.array([[2.0], [2.5]])])
    >>> edges.to_graph.nnz, edges.among.toarray().round(2).tolist()
    (0, [[0.0, 0.37], [0.37, 0.0]])
    """
    for rows in views:
        _check_on_host(rows)
    parts = [_edges_in_view(graph, rows) for graph, rows in zip(graphs.graphs, views, strict=True)]
    return NewEdges(*(reduce(add, edges) for edges in zip(*parts, strict=True)))


def _neighbors_of_new(graph: LocalGraph, rows: NDArray[np.floating]) -> Neighbors:
    """Search the neighbours of new rows in the graph and among themselves, numbered after it."""
    k = graph.n_neighbors
    in_graph = nearest_neighbors(graph.rows, k, rows, n_jobs=graph.n_jobs)
    among = nearest_neighbors(rows, k, n_jobs=graph.n_jobs)
    return nearest_of_both(in_graph, _moved(among, len(graph.rows)), k)


def _edges_in_view(graph: LocalGraph, rows: NDArray[np.floating]) -> NewEdges:
    near = _neighbors_of_new(graph, rows)
    scales = np.concatenate([graph.scales, row_scales(near.distances)])
    values = self_tuning_weights(scales[near.indices], near.distances)
    (n, k), m = near.indices.shape, len(graph.rows)
    edges = sp.csr_array(
        (values.ravel(), near.indices.ravel(), np.arange(n + 1) * k), shape=(n, m + n)
    )
    among = edges[:, m:]
    return NewEdges(edges[:, :m], sp.csr_array(among.maximum(among.T)))


def _moved(near: Neighbors, offset: int) -> Neighbors:
    return Neighbors(near.distances, near.indices + offset)


def _check_on_host(rows: Any) -> None:
    if engine_of(rows).name != "numpy":
        raise ValueError(
            "Rows can only be added to the graph of NumPy arrays: fit a model on NumPy arrays for "
            "resolve and partial_fit, or fit it again with all rows."
        )
