"""The model of a run as a file that does not execute code when it is loaded, and its predictions.

The file is in the format of skops: a zip of JSON and arrays. Besides the types that skops itself
trusts, which are those of scikit-learn, NumPy and SciPy, only classes of this library are loaded.
"""

from __future__ import annotations

import copy
import importlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import FeatureEncoder, feature_table
from gmpll.apps.tables.guesses import Roles
from gmpll.apps.tables.resolving import Verdicts, codes_of, verdicts
from gmpll.apps.tables.tables import Table
from gmpll.base import BasePartialLabelClassifier

#: Where the system does not tell how much memory there is.
_ASSUMED_BYTES = 2**35
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
TRUSTED_TYPES = {
    *("numpy.dtype", "numpy.float32", "numpy.float64", "numpy.int64"),
    *("numpy.random.mtrand.RandomState", "scipy.sparse._csr.csr_array"),
}


def check_format(path: Path, found: Any, known: int) -> None:
    """Refuse a file of another format; damaged and foreign files may give anything as theirs."""
    number = np.asarray(found)
    if number.ndim != 0 or number.dtype.kind not in "iu" or int(number) != known:
        raise InputError(
            f"{path} is not in format {known}, the one that this version of gmpll reads: run gmpll "
            "disambiguate again, or use the version that wrote it."
        )


def check_unpacked_size(path: Path) -> None:
    """Refuse a zip file that unpacks to more bytes than the machine has memory.

    Archives that lie about it do no harm: no more is read of a member than it declares.
    """
    with zipfile.ZipFile(path) as file:
        unpacked = sum(member.file_size for member in file.infolist())
    if unpacked > _memory_bytes():
        raise InputError(
            f"{path} unpacks to {unpacked >> 20} MiB, more than this machine has memory: "
            "it is not loaded."
        )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return _ASSUMED_BYTES


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
    """Whether a type is one of ours, defined in the module named and not imported there."""
    if name in TRUSTED_TYPES or not name.startswith(TRUSTED_MODULES):
        return name in TRUSTED_TYPES
    module, _, type_name = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), type_name, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module


def predict_table(
    saved: SavedModel, table: Table, files: Sequence[Path] = (), id_column: str = ""
) -> Verdicts:
    """Predict the label of every row of a table that has the columns of the model.

    ``id_column`` holds ids that embedding files may refer to. A method without probabilities
    leaves ``confidence`` and ``margin`` as NaN.
    """
    if len(files) != saved.n_files:
        raise InputError(
            f"The model was made with {saved.n_files} embedding files but got {len(files)}: "
            "name them with --features."
        )
    encoder = saved.encoder
    if id_column and id_column not in table.frame.columns:
        raise InputError(f"{table.name} has no column {id_column!r}, which --id names.")
    n = len(table.frame)
    cells = table.text(id_column).to_numpy() if id_column else np.arange(1, n + 1)
    roles = Roles(
        numeric=tuple(encoder.numeric),
        text=tuple(encoder.text),
        categorical=tuple(encoder.categorical),
        vectors=saved.vectors,
        files=tuple(files),
        id=id_column,
        styles=encoder.styles or {},
    )
    inputs = feature_table(table, roles, cells.astype(str), fixed=True)
    features = encoder.encode(inputs)
    notes = (*inputs.problems, *encoder.unseen(inputs))
    model = saved.model
    labels = codes_of(model.predict(features), model.classes_)
    nobody = np.full(n, -1, dtype=np.int64)
    if not hasattr(model, "predict_proba"):
        nothing = np.full(n, np.nan)
        notes += ("the method gives no probabilities: confidence, margin and review stay empty",)
        return Verdicts(labels, nobody, nothing, nothing, np.zeros(n, dtype=bool), notes)
    shares = model.predict_proba(features)
    possible = shares > 0
    possible[np.arange(n), labels] = True
    found = verdicts(shares, possible, labels, nobody, saved.review_below)
    return replace(found, notes=notes)
