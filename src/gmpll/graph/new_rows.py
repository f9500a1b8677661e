"""New rows beside a local graph of NumPy rows: their edges to its rows and among themselves."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmpll._typing import AnyFloats
from gmpll.engines import Neighbors, engine_of
from gmpll.engines.numpy import nearest_of_both
from gmpll.graph.local import LocalGraph, LocalGraphs, row_scales, self_tuning_weights
from gmpll.graph.neighbors import nearest_neighbors


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
    >>> from gmpll.graph.local import LocalGraphs
    >>> from gmpll.graph.new_rows import edges_of_new_rows
    >>> graphs = LocalGraphs([np.array([[0.0], [1.0]])], 1)
    >>> edges = edges_of_new_rows(graphs, [np.array([[2.0], [2.5]])])
    >>> edges.to_graph.nnz, edges.among.toarray().round(2).tolist()
    (0, [[0.0, 0.37], [0.37, 0.0]])
    """
    parts = [_edges_in_view(graph, rows) for graph, rows in zip(graphs.graphs, views, strict=True)]
    return NewEdges(*(reduce(add, edges) for edges in zip(*parts, strict=True)))


def _edges_in_view(graph: LocalGraph, rows: AnyFloats) -> NewEdges:
    k, m = graph.n_neighbors, len(graph.rows)
    in_graph = nearest_neighbors(graph.rows, k, rows, n_jobs=graph.n_jobs)
    among = nearest_neighbors(rows, k, n_jobs=graph.n_jobs)
    near = nearest_of_both(in_graph, Neighbors(among.distances, among.indices + m), k)
    scales = np.concatenate([graph.scales, row_scales(near.distances)])
    values = self_tuning_weights(scales[near.indices], near.distances)
    edges: Any = engine_of(rows).query_weights(near.indices, values, m + len(rows))
    among_new = edges[:, m:]
    return NewEdges(edges[:, :m], sp.csr_array(among_new.maximum(among_new.T)))
