"""Local graphs of NumPy rows to which rows are added, without a search among those they have.

The neighbours of a row that is there already can only change where an added row is nearer than the
farthest of them. So the neighbours of the added rows are searched, among all rows, and for the
others those among the added rows: O(n (m + n) d) time for n rows added to m of d features, where a
new graph takes O((m + n)^2 d).
"""

import copy
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmpll._typing import AnyFloats, RandomSource
from gmpll.engines import Neighbors, engine_of
from gmpll.engines.numpy import nearest_of_both
from gmpll.graph.local import LocalGraph, LocalGraphs, row_scales, self_tuning_weights
from gmpll.graph.neighbors import nearest_neighbors


def grown_graphs(
    graphs: LocalGraphs, views: Sequence[AnyFloats], *, random_state: RandomSource = 0
) -> LocalGraphs:
    """Return the graphs of their rows and of added ones, given in each view, after them.

    The neighbours of the added rows are searched exactly. The graphs stay as they are; where they
    have not grown before, the neighbours of their rows are searched as they were first, with
    ``random_state`` as the seed of an approximate search.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.growing import grown_graphs
    >>> from gmpll.graph.local import LocalGraphs
    >>> graphs = LocalGraphs([np.array([[0.0], [2.0]])], 1)
    >>> grown_graphs(graphs, [np.array([[1.5]])]).graphs[0].near.indices.ravel()
    array([2, 2, 1])
    """
    grown = copy.copy(graphs)
    pairs = zip(graphs.graphs, views, strict=True)
    grown.graphs = [_grown(graph, rows, random_state) for graph, rows in pairs]
    grown.combine()
    return grown


def _grown(graph: LocalGraph, added: AnyFloats, random_state: RandomSource) -> LocalGraph:
    _check_on_host(graph.rows)
    k, n_jobs = graph.n_neighbors, graph.n_jobs
    near = graph.near
    if near is None:
        near = engine_of(graph.rows).nearest_neighbors(
            graph.rows, k, search=graph.search, random_state=random_state, n_jobs=n_jobs
        )
    among_added = nearest_neighbors(added, k, graph.rows, n_jobs=n_jobs)
    of_rows = nearest_of_both(near, _moved(among_added, len(graph.rows)), k)
    of_added = _neighbors_of_new(graph, added)
    grown = copy.copy(graph)
    grown.given = np.vstack([graph.rows, added])
    grown.near = Neighbors(*map(np.vstack, zip(of_rows, of_added, strict=True)))
    grown.relate(grown.near)
    return grown


class NewEdges(NamedTuple):
    """Weights of the edges of new rows to the rows of a graph, and among each other."""

    to_graph: sp.csr_array  # (n_new, n_samples)
    among: sp.csr_array  # (n_new, n_new), symmetric


def edges_of_new_rows(graphs: LocalGraphs, views: Sequence[AnyFloats]) -> NewEdges:
    """Relate new rows, given in each view, to their neighbours in the graphs and among themselves.

    The graphs stay as they are: a row of theirs does not become aware of its new neighbours.

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
    parts = [_edges_in_view(graph, rows) for graph, rows in zip(graphs.graphs, views, strict=True)]
    return NewEdges(*(reduce(add, edges) for edges in zip(*parts, strict=True)))


def _neighbors_of_new(graph: LocalGraph, rows: AnyFloats) -> Neighbors:
    """Search the neighbours of new rows in the graph and among themselves, numbered after it."""
    k = graph.n_neighbors
    in_graph = nearest_neighbors(graph.rows, k, rows, n_jobs=graph.n_jobs)
    among = nearest_neighbors(rows, k, n_jobs=graph.n_jobs)
    return nearest_of_both(in_graph, _moved(among, len(graph.rows)), k)


def _edges_in_view(graph: LocalGraph, rows: Any) -> NewEdges:
    _check_on_host(rows)
    near = _neighbors_of_new(graph, rows)
    scales = np.concatenate([graph.scales, row_scales(near.distances)])
    values = self_tuning_weights(scales[near.indices], near.distances)
    m = len(graph.rows)
    edges: Any = engine_of(rows).query_weights(near.indices, values, m + len(rows))
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
