"""The model of a run as a file that does not execute code when it is loaded.

The file is in the format of skops: a zip of JSON and arrays. Besides the types that skops itself
trusts, which are those of scikit-learn, NumPy and SciPy, only classes of this library are loaded.
"""

from __future__ import annotations

import copy
import importlib
import zipfile
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gmpll.apps.tables.checks import check_format, check_unpacked_size
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import FeatureEncoder
from gmpll.base import BasePartialLabelClassifier

__all__ = ["FILE_NAME", "SavedModel", "load_model", "save_model"]

FILE_NAME = "model.skops"
FORMAT = 1
#: Modules whose classes hold data and methods of learning, nothing that touches files.
TRUSTED_MODULES = (
    "gmpll.methods.",
    "gmpll.graph.",
    "gmpll.matching.",
    "gmpll.evidence.",
    "gmpll.apps.tables.features.",
)
TRUSTED_TYPES = frozenset(
    {
        "scipy.sparse._csr.csr_array",
        "numpy.dtype",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.random.mtrand.RandomState",
    }
)


@dataclass(frozen=True)
class SavedModel:
    """What prediction needs: how columns become features, and the fitted model.

    ``vectors`` are the columns that hold embeddings, ``n_files`` is the number of embedding files
    that go with an input; rows with a margin smaller than ``review_below`` are flagged.
    """

    encoder: FeatureEncoder
    model: Any
    vectors: tuple[str, ...]
    n_files: int
    review_below: float


def save_model(saved: SavedModel, path: Path) -> None:
    """Write a model to a file; who voted how is not part of it, for prediction does not need it."""
    from skops.io import dump

    model = copy.copy(saved.model)
    vars(model).pop("annotators_", None)
    content = {field.name: getattr(saved, field.name) for field in fields(saved)}
    content |= {"format": FORMAT, "vectors": list(saved.vectors), "model": model}
    dump(content, path, compression=zipfile.ZIP_DEFLATED, compresslevel=1)


def load_model(path: str | Path) -> SavedModel:
    """Load the model in a file, or in an output folder of ``gmpll disambiguate``."""
    from skops.io import get_untrusted_types, load

    path = Path(path)
    if path.is_dir():
        path = path / FILE_NAME
    if not path.is_file():
        raise InputError(
            f"There is no model {path}: name the folder that gmpll disambiguate wrote."
        )
    try:
        check_unpacked_size(path)
        types = get_untrusted_types(file=path)
        strangers = [name for name in types if not _is_trusted(name)]
        if strangers:
            raise InputError(
                f"{path} holds {strangers[0]}, which is no part of a gmpll model: it is not loaded."
            )
        content = load(path, trusted=types)
    except InputError:
        raise
    except Exception as error:  # whatever a damaged or foreign file makes the loader stumble over
        raise InputError(
            f"{path} is no model of gmpll or is damaged: run gmpll disambiguate again."
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is no model of gmpll: run gmpll disambiguate again.")
    check_format(path, content.pop("format", None), FORMAT)
    try:
        saved = SavedModel(**content)
        fits = (
            isinstance(saved.encoder, FeatureEncoder)
            and isinstance(saved.model, BasePartialLabelClassifier)
            and all(isinstance(name, str) for name in saved.vectors)
            and isinstance(saved.n_files, int)
            and isinstance(saved.review_below, (int, float))
        )
    except TypeError:
        fits = False
    if not fits:
        raise InputError(f"{path} is damaged: run gmpll disambiguate again.")
    return replace(saved, vectors=tuple(saved.vectors))


def _is_trusted(name: str) -> bool:
    return name in TRUSTED_TYPES or (name.startswith(TRUSTED_MODULES) and _is_class_of_ours(name))


def _is_class_of_ours(name: str) -> bool:
    """Whether a class is defined in the module named; others, which it imports, are not meant."""
    module, _, type_name = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), type_name, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module
