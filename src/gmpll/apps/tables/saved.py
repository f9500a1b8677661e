"""The matching of a run as a file: ``matching.npz``, read without executing anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.unpacking import check_unpacked_size
from gmpll.apps.tables.versions import check_format
from gmpll.candidates import CandidateSets

if TYPE_CHECKING:
    from gmpll.apps.tables.resolving import Resolution

__all__ = ["FILE_NAME", "FORMAT", "SavedMatching", "read_matching", "rematch", "saved_matching"]

FILE_NAME = "matching.npz"
FORMAT = 1
#: Cells shown to a person are cut to this many characters.
LONGEST_CELL = 2000
#: NumPy keeps every text as long as the longest: all of them together take no more than this.
MAX_DISPLAY_CHARACTERS = 25_000_000
_SHORTEST_CELL = 20
#: More columns, or more columns of numbers, tell a person nothing.
_MOST_COLUMNS = 20
_MOST_NUMBERS = 8
#: What kind of values the arrays of a matching hold.
_ARRAY_KINDS = {
    "ids": "U",
    "classes": "U",
    "mask": "b",
    "gold": "i",
    "labels": "i",
    "confidence": "f",
    "features": "f",
    "display": "U",
    "weights": "f",
}


def _no_votes() -> NDArray[np.float32]:
    return np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class SavedMatching:
    """What a run found, in the order of the input's rows.

    Attributes
    ----------
    ids : ndarray of shape (n,), str
        The id column, or the row number (counted from 1) as text.
    classes : ndarray of shape (q,), str
        Label names.
    mask : ndarray of shape (n, q), bool
        Candidates.
    gold : ndarray of shape (n,), int
        Code of the known label or -1.
    labels : ndarray of shape (n,), int
        Code of the label found.
    confidence : ndarray of shape (n, q), float32
        How sure every candidate is; rows sum to one.
    features : ndarray of shape (n, d), float32
        What the matching compared.
    display : ndarray of shape (n,), str
        JSON objects: cells worth showing to a person.
    text_column, image_column : str
        Which of their keys is text, which names an image file; "" if none. Relative file names
        are relative to the input's folder.
    source : str
        Path of the input.
    settings : str
        JSON: method, its parameters, and the margin below which a row is flagged.
    weights : ndarray of shape (n, q), float32
        How many votes each candidate got; of shape (0, 0) without votes.
    """

    ids: NDArray[np.str_]
    classes: NDArray[np.str_]
    mask: NDArray[np.bool_]
    gold: NDArray[np.int64]
    labels: NDArray[np.int64]
    confidence: NDArray[np.float32]
    features: NDArray[np.float32]
    display: NDArray[np.str_]
    text_column: str
    image_column: str
    source: str
    settings: str
    weights: NDArray[np.float32] = field(default_factory=_no_votes)


def saved_matching(resolution: Resolution) -> SavedMatching:
    """Take from a run what is kept."""
    prepared = resolution.prepared
    roles = prepared.roles
    settings = {
        "method": prepared.options.method,
        "seed": prepared.options.seed,
        "review_below": prepared.review_below,
        "parameters": _plain(resolution.model.get_params()),
    }
    source = prepared.table.path
    weights = prepared.sets.weights
    return SavedMatching(
        ids=prepared.ids,
        classes=prepared.sets.classes,
        mask=prepared.sets.mask,
        gold=prepared.sets.gold,
        labels=resolution.verdicts.labels,
        confidence=resolution.confidences,
        features=resolution.features,
        display=_display(resolution),
        text_column=roles.text[0] if roles.text else "",
        image_column=roles.image,
        source="" if source is None else str(source.absolute()),
        settings=json.dumps(settings),
        weights=_no_votes() if weights is None else weights.astype(np.float32),
    )


def write_matching(saved: SavedMatching, path: Path) -> None:
    """Write a matching to a file."""
    arrays: dict[str, Any] = {
        field.name: np.asarray(getattr(saved, field.name)) for field in fields(saved)
    }
    with path.open("wb") as file:
        np.savez_compressed(file, format=np.asarray(FORMAT), **arrays)


def read_matching(directory: str | Path) -> SavedMatching:
    """Read the matching in an output folder of ``gmpll disambiguate``.

    Parameters
    ----------
    directory : path

    Returns
    -------
    SavedMatching

    Raises
    ------
    InputError
        If there is none, it is damaged, or another version of gmpll wrote it.
    """
    path = Path(directory) / FILE_NAME
    if not path.is_file():
        raise InputError(
            f"{directory} holds no {FILE_NAME}: name a folder that gmpll disambiguate wrote."
        )
    damaged = InputError(f"{path} is damaged: run gmpll disambiguate again.")
    try:
        check_unpacked_size(path)
        with np.load(path, allow_pickle=False) as file:
            # What is no array in such a file comes as bytes.
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except InputError:
        raise
    except Exception as error:  # a damaged file shows in a dozen kinds of exception
        raise damaged from error
    check_format(path, arrays.pop("format", None), FORMAT)
    arrays.setdefault("weights", _no_votes())  # folders from before the votes were kept
    missing = {field.name for field in fields(SavedMatching)} - set(arrays)
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(sorted(missing))}: run gmpll disambiguate again."
        )
    single = {name: value for name, value in arrays.items() if value.ndim == 0}
    if not all(value.dtype.kind == "U" and _holds_characters(value) for value in single.values()):
        raise damaged
    values: dict[str, Any] = arrays | {name: str(value) for name, value in single.items()}
    saved = SavedMatching(**{field.name: values[field.name] for field in fields(SavedMatching)})
    if not (_has_its_shapes(saved) and _is_consistent(saved)):
        raise damaged
    return saved


def _has_its_shapes(saved: SavedMatching) -> bool:
    """Whether every array has the kind and shape that the others call for."""
    if not all(isinstance(getattr(saved, name), np.ndarray) for name in _ARRAY_KINDS):
        return False
    kinds = all(getattr(saved, name).dtype.kind == kind for name, kind in _ARRAY_KINDS.items())
    n, q = saved.ids.shape[0], saved.classes.shape[0]
    vectors = (saved.ids, saved.gold, saved.labels, saved.display)
    return (
        kinds
        and n > 0
        and saved.classes.shape == (q,)
        and all(array.shape == (n,) for array in vectors)
        and saved.mask.shape == saved.confidence.shape == (n, q)
        and saved.weights.shape in ((n, q), (0, 0))
        and saved.features.ndim == 2
        and len(saved.features) == n
    )


def _is_consistent(saved: SavedMatching) -> bool:
    """Whether codes name labels, numbers are finite and the settings can be read."""
    q = len(saved.classes)
    texts = (saved.text_column, saved.image_column, saved.source, saved.settings)
    try:
        settings = json.loads(saved.settings)
        readable = isinstance(settings, dict) and 0 <= settings.get("review_below", 0.0) <= 1
    except (TypeError, ValueError, RecursionError):
        return False
    return bool(
        readable
        and all(isinstance(text, str) for text in texts)
        and all(_holds_characters(array) for array in (saved.ids, saved.classes, saved.display))
        and saved.mask.any(axis=1).all()
        and ((saved.labels >= 0) & (saved.labels < q)).all()
        and ((saved.gold >= -1) & (saved.gold < q)).all()
        and np.isfinite(saved.confidence).all()
        and np.isfinite(saved.features).all()
        and np.isfinite(saved.weights).all()
        and (saved.weights >= 0).all()
    )


def _holds_characters(texts: NDArray[np.str_]) -> bool:
    """Whether all numbers in an array of texts stand for characters; Python does not look."""
    kind = np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder)
    codes = np.frombuffer(texts.tobytes(), dtype=kind)
    is_half_pair = (codes >= 0xD800) & (codes <= 0xDFFF)
    return bool(((codes <= sys.maxunicode) & ~is_half_pair).all())


def rematch(saved: SavedMatching, gold: Mapping[int, int]) -> SavedMatching:
    """Match again, with known labels for some rows.

    Parameters
    ----------
    saved : SavedMatching
    gold : mapping of int to int
        Row -> code of its label, which becomes its only candidate.

    Returns
    -------
    SavedMatching
        With the new ``mask``, ``gold``, ``labels`` and ``confidence``.
    """
    from gmpll.apps.tables.resolving import codes_of, fit_sets, make_model, model_confidences

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
    weights = saved.weights if saved.weights.size else None
    fit_sets(model, saved.features, CandidateSets(mask, saved.classes), weights)
    return replace(
        saved,
        mask=mask,
        gold=known,
        labels=codes_of(model.labels_, saved.classes),
        confidence=model_confidences(model).astype(np.float32),
    )


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in parameters.items()
        if value is None or isinstance(value, (bool, int, float, str))
    }


def _display(resolution: Resolution) -> NDArray[np.str_]:
    """Return the cells of every row that are worth showing, as JSON objects."""
    prepared = resolution.prepared
    roles, table = prepared.roles, prepared.table
    flags = roles.candidates if len(roles.candidates) > 1 else ()
    hidden = {*roles.vectors, *roles.numeric[_MOST_NUMBERS:], *flags}
    names = [name for name in table.frame.columns if name not in hidden]
    first = [n for n in (roles.id, *roles.text, roles.image, *roles.candidates) if n in names]
    shown = list(dict.fromkeys([*first, *names]))[:_MOST_COLUMNS]
    room = MAX_DISPLAY_CHARACTERS // (len(table.frame) * max(len(shown), 1))
    longest = max(_SHORTEST_CELL, min(LONGEST_CELL, room))
    columns = [[text[:longest] for text in table.text(name).tolist()] for name in shown]
    rows = [
        json.dumps(dict(zip(shown, cells, strict=True)), ensure_ascii=False)
        for cells in zip(*columns, strict=True)
    ]
    return np.array(rows, dtype=str)
