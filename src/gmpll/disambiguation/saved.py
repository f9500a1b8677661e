"""The matching of a run as a file: ``matching.npz``, read without executing anything."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmpll.candidates import CandidateSets
from gmpll.disambiguation.errors import InputError

if TYPE_CHECKING:
    from gmpll.disambiguation.resolving import Resolution

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
        Share of the support of every candidate; rows sum to one.
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


def saved_matching(resolution: Resolution) -> SavedMatching:
    """Take from a run what is kept."""
    prepared = resolution.prepared
    roles = prepared.roles
    settings = {
        "method": prepared.options.method,
        "seed": prepared.options.seed,
        "review_below": prepared.options.review_below,
        "parameters": _plain(resolution.model.get_params()),
    }
    source = prepared.table.path
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
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged: run gmpll disambiguate again.") from error
    if int(arrays.pop("format", -1)) != FORMAT:
        raise InputError(
            f"{path} was written by another version of gmpll: run gmpll disambiguate again."
        )
    missing = {field.name for field in fields(SavedMatching)} - set(arrays)
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(sorted(missing))}: run gmpll disambiguate again."
        )
    values: dict[str, Any] = {
        name: str(value) if value.ndim == 0 else value for name, value in arrays.items()
    }
    return SavedMatching(**{field.name: values[field.name] for field in fields(SavedMatching)})


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
    from gmpll.disambiguation.resolving import codes_of, make_model, model_confidences

    mask, known = saved.mask.copy(), saved.gold.copy()
    for row, code in gold.items():
        if not 0 <= row < len(mask):
            raise InputError(f"There is no row {row}: the rows are 0 to {len(mask) - 1}.")
        if not 0 <= code < mask.shape[1]:
            raise InputError(f"There is no label {code}: the labels are 0 to {mask.shape[1] - 1}.")
        mask[row] = False
        mask[row, code] = True
        known[row] = code
    settings = json.loads(saved.settings)
    parameters = settings.get("parameters", {})
    model = make_model(settings["method"], settings["seed"]).set_params(**parameters)
    model.fit(saved.features, CandidateSets(mask, saved.classes))
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
