"""Data sets of your own: NumPy archives that a run keeps beside its results, and tables.

An archive holds ``X`` (n x d), the candidate sets ``S`` (n x q, 0 and 1), the true labels ``y``
(numbers of columns, -1 where one is not known) and the ``names`` of the labels, and where they are
known the ``votes`` (n x annotators, -1 where there is none). ``S`` or ``y`` may be missing:
candidates are then drawn from the labels, and predictions are compared with the candidate sets of
held-out rows. A table becomes an archive.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from gmpll._typing import Integers
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.candidates import VotedCandidates
from gmpll.datasets import DatasetFormatError, DatasetInfo, list_datasets
from gmpll.datasets.prepared import read_npz

SUFFIX = ".npz"
#: What can be said about the columns of a table: its true labels, and what ``gmpll disambiguate``
#: takes.
TABLE_KEYS = (
    *("truth", "candidates", "annotators", "separator"),
    *("text", "features", "exclude", "id"),
)
_PACKED = (".gz", ".zst")


def is_archive(dataset: str) -> bool:
    """Whether a data set is named by its archive."""
    return dataset.lower().endswith(SUFFIX)


def names_a_file(dataset: str) -> bool:
    """Whether a declaration means a file and not a data set of the catalogue."""
    return Path(dataset).suffix != ""


def name_of(file: Path | str) -> str:
    """Return the name of a data set of one's own: that of its file, in small letters."""
    path = Path(file)
    name = (path.with_suffix("") if path.suffix.lower() in _PACKED else path).stem.strip().lower()
    if name in {info.name for info in list_datasets()}:
        raise ExperimentError(
            f"{file} has the name of a data set that gmpll knows: give the file another name."
        )
    return name


def read_own(file: Path) -> Bunch:
    """Read an archive, with what the loaders of the catalogue return."""
    if not file.is_file():
        raise ExperimentError(f"There is no data file {file}.")
    try:
        found = read_npz(file, labelled=False)
    except OSError as error:
        raise ExperimentError(f"The data file {file} cannot be read: {error.strerror}.") from error
    except DatasetFormatError as error:
        raise ExperimentError(str(error)) from error
    if found["candidates"] is None and (found["target"] < 0).any():
        raise ExperimentError(
            f"{file} has rows with neither candidates (S) nor a true label (y): add one of them."
        )
    return Bunch(**found, ordered=False)


def archive_of(
    X: Any, classes: Any, mask: Any = None, truth: ArrayLike | None = None, votes: Any = None
) -> bytes:
    """Return an archive; true labels that are in no set become labels of their own."""
    codes = None
    if truth is not None:
        labels = np.asarray(truth)
        if labels.shape != (len(X),):
            raise ExperimentError(
                f"truth has the shape {labels.shape}, but there are {len(X)} rows: give one true "
                "label a row."
            )
        given = labels.tolist()
        known = [label for label in given if label is not None and label == label and label != ""]
        classes = list(dict.fromkeys([*np.asarray(classes).tolist(), *known]))
        place = {label: code for code, label in enumerate(classes)}
        codes = np.array([place.get(label, -1) for label in given], dtype=np.int64)
        if mask is not None:
            mask = np.pad(mask, ((0, 0), (0, len(classes) - mask.shape[1])))
    names = np.asarray(classes, dtype=np.str_)
    arrays = {"X": X, "names": names, "S": mask, "y": codes, "votes": votes}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: a for name, a in arrays.items() if a is not None})
    return buffer.getvalue()


def archive_of_table(data: Any, columns: Mapping[str, Any], *, draws: bool) -> bytes:
    """Encode a file or a DataFrame as ``gmpll disambiguate`` does, its true labels left out.

    ``columns`` has some of :data:`TABLE_KEYS`. Where candidates are to be drawn, a table needs none
    of its own.
    """
    from gmpll.apps.tables.candidate_sets import label_sets, row_ids
    from gmpll.apps.tables.features import feature_table, fitted_encoder
    from gmpll.apps.tables.guesses import guess_roles
    from gmpll.apps.tables.labels import NONE, options_of, several
    from gmpll.apps.tables.tables import read_table, table_from_frame

    truth = columns.get("truth")
    is_plain = draws and truth is not None and not {"candidates", "annotators"} & columns.keys()
    table = read_table(data) if isinstance(data, Path) else table_from_frame(data)
    if truth is not None and truth not in table.frame.columns:
        raise ExperimentError(
            f"{table.name} has no column {truth!r} for the true labels; it has "
            f"{', '.join(map(str, table.frame.columns))}."
        )
    given = {**columns, "gold": NONE}
    if is_plain:
        given["candidates"] = truth
    else:
        given["exclude"] = (*several(columns.get("exclude")), *several(truth))
    options = options_of(given)
    roles = guess_roles(table, options)
    ids = row_ids(table, roles)
    inputs = feature_table(table, roles, ids)
    X = fitted_encoder(inputs, roles).encode(inputs).astype(np.float64)
    labels = None if truth is None else table.text(truth).str.strip().to_numpy(dtype=object)
    if is_plain:
        return archive_of(X, np.unique(np.asarray(labels, dtype=np.str_)), truth=labels)
    sets = label_sets(table, roles, options, ids)
    votes = _by_annotator(sets.votes) if sets.annotated else None
    return archive_of(X, sets.classes, sets.mask, labels, votes)


def _by_annotator(voted: VotedCandidates | None) -> Integers | None:
    """Return the vote of every annotator on every row; None where one of them gave several."""
    assert voted is not None
    assert voted.votes is not None
    assert voted.annotators is not None
    rows, places = voted.votes.nonzero()
    who, label = np.divmod(places, len(voted.candidates.classes))
    votes = np.full((len(voted.items), len(voted.annotators)), -1, dtype=np.int64)
    votes[rows, who] = label
    return votes if np.count_nonzero(votes >= 0) == len(rows) else None


def own_infos(folder: Path) -> list[DatasetInfo]:
    """Describe the archives of a folder as the catalogue describes its data sets."""
    infos = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        bunch = read_own(file)
        sizes = None if bunch.candidates is None else float(bunch.candidates.sum(axis=1).mean())
        n_samples, n_features = bunch.data.shape
        size = n_samples, n_features, len(bunch.target_names)
        infos.append(DatasetInfo(file.stem, file.stem, "own", *size, sizes, "", "", ""))
    return infos
