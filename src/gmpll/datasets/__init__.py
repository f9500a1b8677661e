"""Data sets of the field: readers, controlled corruption of labels, synthetic problems."""

from gmpll.datasets.catalogue import (
    PAPER_DIFFERENCES,
    DatasetInfo,
    PaperStatistics,
    dataset_info,
    list_datasets,
)
from gmpll.datasets.corruption import (
    class_dependent_candidates,
    cooccurring_candidates,
    instance_dependent_candidates,
    random_candidates,
)
from gmpll.datasets.errors import DatasetFormatError, DatasetUnavailableError
from gmpll.datasets.loaders import load_dataset, load_embedded
from gmpll.datasets.prepared import load_crowd, load_prepared
from gmpll.datasets.realworld import load_real_world
from gmpll.datasets.storage import get_data_home, is_available
from gmpll.datasets.synthetic import make_partial_label_problem
from gmpll.datasets.uci import load_uci

__all__ = [
    "PAPER_DIFFERENCES",
    "DatasetFormatError",
    "DatasetInfo",
    "DatasetUnavailableError",
    "PaperStatistics",
    "class_dependent_candidates",
    "cooccurring_candidates",
    "dataset_info",
    "get_data_home",
    "instance_dependent_candidates",
    "is_available",
    "list_datasets",
    "load_crowd",
    "load_dataset",
    "load_embedded",
    "load_prepared",
    "load_real_world",
    "load_uci",
    "make_partial_label_problem",
    "random_candidates",
]
