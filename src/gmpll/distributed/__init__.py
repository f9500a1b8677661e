"""The local-graph matching over Dask, for data beyond one machine's memory.

Rows of the features, of the graph and of the probabilities lie in partitions, and no task ever
holds more than a few of them. See :class:`DaskGMPLL` and ``docs/large.md``.
"""

try:
    import dask.array
    import dask.distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "gmpll.distributed needs Dask, which is not installed: pip install 'gmpll[dask]'."
    ) from error

from gmpll.distributed.estimator import DaskGMPLL

__all__ = ["DaskGMPLL"]
