"""What a run leaves for later: its model, predictions by it, and its matching.

Neither file executes code when it is loaded. ``model.skops`` is in the format of skops, a zip of
JSON and arrays. Besides the types that skops itself trusts, which are those of scikit-learn, NumPy
and SciPy, only classes of this library are loaded. ``matching.npz`` holds plain arrays.
"""

import copy
import importlib
import json
import os
import platform
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from skops.io import dump, get_untrusted_types, load

from gmpll import __version__
from gmpll._progress import begin, counted
from gmpll._typing import Floats, Integers, Mask, Names
from gmpll.apps.decisions.store import Rows
from gmpll.apps.tables.errors import InputError, damage_told
from gmpll.apps.tables.features import FeatureEncoder, feature_table
from gmpll.apps.tables.guesses import EMBEDDING_FILES, Roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.resolving import (
    Matched,
    Resolution,
    Verdicts,
    codes_of,
    make_model,
    match_sets,
    verdicts,
)
from gmpll.apps.tables.steps import LOADING, PREDICTING
from gmpll.apps.tables.summary import PROBABLY, display_cells
from gmpll.apps.tables.tables import Table
from gmpll.base import BasePartialLabelClassifier
from gmpll.candidates import CandidateSets, VotedCandidates

#: Rows that are predicted at a time.
_PREDICTED_ROWS = 4096
#: Where the system does not tell how much memory there is.
_ASSUMED_BYTES = 2**35
MODEL_FILE = "model.skops"
MODEL_FORMAT = 1
#: Modules whose classes hold data and methods of learning, nothing that touches files.
TRUSTED_MODULES = (
    "gmpll.methods.",
    "gmpll.graph.",
    "gmpll.matching.",
    "gmpll.evidence.",
    "gmpll.apps.tables.features.",
)
TRUSTED_TYPES = {
    "gmpll.graph.views._unit_rows",  # a function of an array, a step of the views
    *("numpy.dtype", "numpy.float32", "numpy.float64", "numpy.int64"),
    *("numpy.random.mtrand.RandomState", "scipy.sparse._csr.csr_array"),
}
#: Said of methods that predict labels alone.
NO_PROBABILITIES = "the method gives no probabilities: confidence, margin and review stay empty"
MATCHING_FILE = "matching.npz"
MATCHING_FORMAT = 1


def _content(
    path: Path, damage: str, known: int, load: Callable[[Path], Mapping[str, Any]]
) -> dict[str, Any]:
    """Load what a file holds, unless that is too large, damaged, or in another format."""
    with damage_told(f"{path} {damage}: run gmpll disambiguate again."):
        # Archives that lie about sizes do no harm: no more is read of a member than it declares.
        with zipfile.ZipFile(path) as file:
            unpacked = sum(member.file_size for member in file.infolist())
        if unpacked > _memory_bytes():
            raise InputError(
                f"{path} unpacks to {unpacked >> 20} MiB, more than this machine has memory: "
                "it is not loaded."
            )
        content = dict(load(path))
    number = np.asarray(content.pop("format", None))  # a foreign file may give anything as its own
    if number.ndim != 0 or number.dtype.kind not in "iu" or int(number) != known:
        raise InputError(
            f"{path} is not in format {known}, the one that this version of gmpll reads: run gmpll "
            "disambiguate again, or use the version that wrote it."
        )
    return content


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return _ASSUMED_BYTES


@dataclass(frozen=True)
class SavedModel:
    """What prediction needs: how columns become features, and the fitted model.

    ``vectors`` are the columns that hold embeddings, ``n_files`` is the number of embedding files
    that go with an input; rows with a margin smaller than ``review_below`` are flagged. A file also
    tells when it was written, and with which versions.
    """

    encoder: FeatureEncoder
    model: Any
    vectors: tuple[str, ...]
    n_files: int
    review_below: float
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def save_model(saved: SavedModel, path: Path) -> None:
    """Write a model to a file; who voted how is not part of it, for prediction does not need it."""
    model = copy.copy(saved.model)
    vars(model).pop("annotators_", None)
    content = vars(saved) | {
        "format": MODEL_FORMAT,
        "vectors": list(saved.vectors),
        "model": model,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "gmpll": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scikit-learn")},
        },
    }
    dump(content, path, compression=zipfile.ZIP_DEFLATED, compresslevel=1)


def model_file(path: str | Path) -> Path:
    """Return where a model lies, of which the file or its folder is named."""
    path = Path(path)
    return path / MODEL_FILE if path.is_dir() else path


def load_model(path: str | Path) -> SavedModel:
    """Load the model in a file, or in an output folder of ``gmpll disambiguate``."""
    begin(LOADING)
    path = model_file(path)
    if not path.is_file():
        raise InputError(
            f"There is no model {path}: name the folder that gmpll disambiguate wrote."
        )
    damage = "is no model of gmpll or is damaged"

    def trusted(path: Path) -> Any:
        types = get_untrusted_types(file=path)
        strangers = [name for name in types if not _is_trusted(name)]
        if strangers:
            raise InputError(
                f"{path} holds {strangers[0]}, which is no part of a gmpll model: it is not loaded."
            )
        return load(path, trusted=types)

    content = _content(path, damage, MODEL_FORMAT, trusted)
    kinds: Any = (FeatureEncoder, BasePartialLabelClassifier, list, int, (int, float), str, dict)
    try:
        saved = SavedModel(**content)
        values = [getattr(saved, field.name) for field in fields(saved)]
        if all(map(isinstance, values, kinds)) and all(isinstance(n, str) for n in saved.vectors):
            return replace(saved, vectors=tuple(saved.vectors))
    except TypeError:
        pass
    raise InputError(f"{path} {damage}: run gmpll disambiguate again.")


def _is_trusted(name: str) -> bool:
    """Whether a type or function is ours, defined in the module named and not imported there."""
    if name in TRUSTED_TYPES or not name.startswith(TRUSTED_MODULES):
        return name in TRUSTED_TYPES
    module, _, type_name = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), type_name, None)
    except ImportError:
        return False
    return isinstance(found, (type, FunctionType)) and found.__module__ == module


def predictions(
    saved: SavedModel, table: Table, files: Sequence[Path] = (), id_column: str = ""
) -> tuple[Verdicts, Floats | None]:
    """Return how sure which labels are, with what is odd, and probabilities where there are any.

    The table has the columns of the model; ``id_column`` holds ids that embedding files may refer
    to. Without probabilities, confidences and margins are NaN.
    """
    if len(files) != saved.n_files:
        raise InputError(
            f"The model was made with {saved.n_files} embedding files but got {len(files)}: "
            "name them with --features."
        )
    encoder, model = saved.encoder, saved.model
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
    begin(PREDICTING)
    blocks = [features[start : start + _PREDICTED_ROWS] for start in range(0, n, _PREDICTED_ROWS)]
    told = counted(PREDICTING, blocks, len(blocks))
    nobody = np.full(n, -1, dtype=np.int64)
    if not hasattr(model, "predict_proba"):
        codes = codes_of(np.concatenate(list(map(model.predict, told))), model.classes_)
        nothing = np.full(n, np.nan)
        notes += (NO_PROBABILITIES,)
        return Verdicts(codes, nobody, nothing, nothing, np.zeros(n, dtype=bool), notes), None
    labels, parts = zip(*map(model.predict_both, told), strict=True)
    codes, shares = codes_of(np.concatenate(labels), model.classes_), np.concatenate(parts)
    possible = shares > 0
    possible[np.arange(n), codes] = True
    found = verdicts(Matched(codes, shares), possible, nobody, saved.review_below)
    return replace(found, notes=notes), shares


#: Makes what stands for an array of a shape, and a kind, that is not known.
_empty: Any = partial(partial, np.empty)


@dataclass(frozen=True)
class SavedMatching:
    """What a run found: n rows in the order of the input's, q labels, d features.

    Every array has its kind and its axes; those of the same letter are of the same length.
    """

    ids: Annotated[Names, "U", "n"]  # the id column, or the row number from 1 on as text
    classes: Annotated[Names, "U", "q"]
    mask: Annotated[Mask, "b", "nq"]  # the candidates
    gold: Annotated[Integers, "i", "n"]  # code of the known label or -1
    labels: Annotated[Integers, "i", "n"]  # code of the label found
    confidence: Annotated[NDArray[np.float32], "f", "nq"]  # of every candidate; rows sum to one
    features: Annotated[NDArray[np.float32], "f", "nd"]  # what the matching compared
    display: Annotated[Names, "U", "n"]  # JSON objects: cells worth showing to a person
    text_column: Annotated[str, "U", ""]  # which of their keys is text, "" if none
    image_column: Annotated[str, "U", ""]  # which names an image file beside the input
    source: Annotated[str, "U", ""]  # path of the input
    settings: Annotated[str, "U", ""]  # JSON: method, its parameters, the margin of flagged rows
    # How many votes each candidate got; row, annotator and label of every vote; who they are.
    weights: Annotated[NDArray[np.float32], "f", "nq"] = field(default_factory=_empty((0, 0)))
    votes: Annotated[Integers, "i", "v3"] = field(default_factory=_empty((0, 3), int))
    annotators: Annotated[Names, "U", "a"] = field(default_factory=_empty(0, str))
    # How probable it is that a set lacks the right label, and code of the best label of all.
    outside: Annotated[Floats, "f", "n"] = field(default_factory=_empty(0))
    suggested: Annotated[Integers, "i", "n"] = field(default_factory=_empty(0, int))

    @property
    def lacking(self) -> Mask:
        """Which sets probably lack the right label."""
        return self.outside > PROBABLY if self.outside.size else np.zeros(len(self.ids), dtype=bool)

    @property
    def rows(self) -> Rows:
        """What decisions of reviewers speak of."""
        n_new = json.loads(self.settings).get("new_labels", 0)
        return Rows(self.ids, self.classes, self.mask, self.display, n_new)


#: Kind and shape of every array.
_LAYOUT: dict[str, tuple[str, str]] = {
    name: hint.__metadata__
    for name, hint in get_type_hints(SavedMatching, include_extras=True).items()
}


def saved_matching(
    resolution: Resolution, *, escape: bool = True, n_added: int = 0
) -> SavedMatching:
    """Take from a run what is kept; ``n_added`` columns stand behind those of the input."""
    prepared = resolution.prepared
    roles = prepared.roles
    sets, source = prepared.sets, prepared.table.path
    settings = {
        "method": prepared.options.method,
        "seed": prepared.options.seed,
        "review_below": prepared.review_below,
        "new_labels": sets.n_new,
        "added_columns": n_added,
        "input": input_settings(prepared.table, prepared.options, escape=escape),
        "parameters": {
            name: value
            for name, value in resolution.model.get_params().items()
            if value is None or isinstance(value, (bool, int, float, str))
        },
    }
    voted: dict[str, Any] = _outside(resolution.verdicts)
    if sets.votes is not None:
        voted["weights"] = sets.votes.weights.astype(np.float32)
    if sets.votes is not None and sets.votes.annotators is not None:
        assert sets.votes.votes is not None
        rows, columns = sets.votes.votes.nonzero()
        voted["votes"] = np.column_stack([rows, *divmod(columns, len(sets.classes))])
        voted["annotators"] = sets.votes.annotators
    return SavedMatching(
        ids=prepared.ids,
        classes=sets.classes,
        mask=sets.mask,
        gold=sets.gold,
        labels=resolution.verdicts.labels,
        confidence=resolution.confidences,
        features=resolution.features,
        display=display_cells(resolution),
        text_column=roles.text[0] if roles.text else "",
        image_column=roles.image,
        source="" if source is None else str(source.absolute()),
        settings=json.dumps(settings),
        **voted,
    )


def input_settings(table: Table, options: Options, *, escape: bool) -> dict[str, Any] | None:
    """Return what is needed to read the same input in the same way; None of data in memory."""
    if table.path is None or not isinstance(options.votes, (str, Path, type(None))):
        return None
    said = {name: _plain(value) for name, value in asdict(options).items()}
    if isinstance(options.rename, (list, tuple)):  # OLD=NEW, or a file
        said["rename"] = [pair if "=" in pair else _plain(Path(pair)) for pair in options.rename]
    reading = {"format": table.format, "encoding": table.encoding}
    if table.format in ("csv", "tsv"):
        reading["delimiter"] = table.delimiter
    return {"options": said, "reading": reading, "escape": escape}


def _plain(value: Any) -> Any:
    """Return an option as JSON takes it; files are named so that they are found from anywhere."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Path) or (
        isinstance(value, str) and Path(value).suffix in EMBEDDING_FILES and Path(value).is_file()
    ):
        return str(Path(value).absolute())
    return value


def write_matching(saved: SavedMatching, path: Path) -> None:
    """Write a matching to a file."""
    arrays: dict[str, Any] = {name: np.asarray(getattr(saved, name)) for name in _LAYOUT}
    with path.open("wb") as file:
        np.savez_compressed(file, format=np.asarray(MATCHING_FORMAT), **arrays)


def read_matching(directory: str | Path) -> SavedMatching:
    """Read the matching in an output folder of ``gmpll disambiguate``.

    There being none, a damaged one or one of another version of gmpll is an InputError.
    """
    path = Path(directory) / MATCHING_FILE
    if not path.is_file():
        raise InputError(
            f"{directory} holds no {MATCHING_FILE}: name a folder that gmpll disambiguate wrote."
        )

    def arrays_in(path: Path) -> dict[str, Any]:
        with np.load(path, allow_pickle=False) as file:
            # What is no array in such a file comes as bytes.
            return {name: np.asarray(file[name]) for name in file.files}

    arrays = _content(path, "is damaged", MATCHING_FORMAT, arrays_in)
    needed = {part.name for part in fields(SavedMatching) if part.default_factory is MISSING}
    missing = needed - arrays.keys()
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(sorted(missing))}: run gmpll disambiguate again."
        )
    saved = SavedMatching(**{name: arrays[name] for name in _LAYOUT if name in arrays})
    if _has_its_shapes(saved):
        texts: Any = {n: str(arrays[n]) for n, (_, shape) in _LAYOUT.items() if not shape}
        saved = replace(saved, **texts)
        if _is_consistent(saved):
            return saved
    raise InputError(f"{path} is damaged: run gmpll disambiguate again.")


def _has_its_shapes(saved: SavedMatching) -> bool:
    """Whether every array has the kind and shape that the others call for."""
    sizes = {"3": 3}
    for name, (kind, shape) in _LAYOUT.items():
        array = np.asarray(getattr(saved, name))
        if array.dtype.kind != kind or array.ndim != len(shape):
            return False
        if kind == "U" and not _holds_characters(array):
            return False
        if not array.size and name in ("weights", "outside", "suggested"):  # nothing is known
            continue
        for axis, size in zip(shape, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                return False
    return sizes["n"] > 0


def _is_consistent(saved: SavedMatching) -> bool:
    """Whether codes name labels, numbers are finite and the settings can be read."""
    q = len(saved.classes)
    numbers = (len(saved.ids), len(saved.annotators), q)
    try:
        settings = json.loads(saved.settings)
        readable = isinstance(settings, dict) and 0 <= settings.get("review_below", 0.0) <= 1
        readable = readable and settings.get("new_labels", 0) in range(q)
    except (TypeError, ValueError, RecursionError):
        return False
    return bool(
        readable
        and saved.mask.any(axis=1).all()
        and ((saved.labels >= 0) & (saved.labels < q)).all()
        and ((saved.gold >= -1) & (saved.gold < q)).all()
        and all(
            np.isfinite(part).all() for part in (saved.confidence, saved.features, saved.weights)
        )
        and (saved.weights >= 0).all()
        and ((saved.votes >= 0) & (saved.votes < numbers)).all()
        and ((saved.outside >= 0) & (saved.outside <= 1)).all()
        and ((saved.suggested >= 0) & (saved.suggested < q)).all()
        and saved.outside.shape == saved.suggested.shape
        and (saved.weights.size or not saved.votes.size)
    )


def _holds_characters(texts: Names) -> bool:
    """Whether all numbers in an array of texts stand for characters; Python does not look."""
    kind = np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder)
    codes = np.frombuffer(texts.tobytes(), dtype=kind)
    is_half_pair = (codes >= 0xD800) & (codes <= 0xDFFF)
    return bool(((codes <= sys.maxunicode) & ~is_half_pair).all())


def rematch(saved: SavedMatching, gold: Mapping[int, int]) -> SavedMatching:
    """Match again; for some rows the codes of known labels become their only candidates."""
    mask, known = saved.mask.copy(), saved.gold.copy()
    for row, code in gold.items():
        if not 0 <= row < len(mask):
            raise InputError(f"There is no row {row}: the rows are 0 to {len(mask) - 1}.")
        if not 0 <= code < mask.shape[1]:
            raise InputError(f"There is no label {code}: the labels are 0 to {mask.shape[1] - 1}.")
        mask[row] = False
        mask[row, code] = True
        known[row] = code
    try:
        settings = json.loads(saved.settings)
        parameters = settings.get("parameters", {})
        model = make_model(settings["method"], settings["seed"]).set_params(**parameters)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "The settings of the matching cannot be used: run gmpll disambiguate again."
        ) from error
    sets = CandidateSets(mask, saved.classes)
    matched = match_sets(model, saved.features, sets, known, _votes(saved))
    return replace(
        saved,
        mask=mask,
        gold=known,
        labels=matched.labels,
        confidence=matched.confidences,
        **_outside(matched),
    )


def _outside(found: Matched | Verdicts) -> dict[str, Any]:
    if found.outside is None or found.suggested is None:
        return {"outside": np.empty(0), "suggested": np.empty(0, np.int64)}
    return {"outside": found.outside.clip(0, 1), "suggested": found.suggested}


def _votes(saved: SavedMatching) -> VotedCandidates | None:
    if not saved.weights.size:
        return None
    voted = saved.weights > 0
    sets = CandidateSets(voted | ~voted.any(axis=1, keepdims=True), saved.classes)
    weights = saved.weights.astype(np.float64)
    if not saved.votes.size:
        return VotedCandidates(sets, saved.ids, weights)
    rows, who, labels = saved.votes.T
    n, q = weights.shape
    cells = (np.ones(len(rows)), (rows, who * q + labels))
    votes = sp.csr_array(cells, shape=(n, len(saved.annotators) * q))
    return VotedCandidates(sets, saved.ids, weights, votes, saved.annotators)
