"""From columns and embedding files to the features that the matching compares rows by."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from gmpll._typing import Floats, Names
from gmpll.apps.tables.cells import EXAMPLES, POINT, as_text, category_text, read_numbers
from gmpll.apps.tables.errors import InputError, counted, damage_told, listed, quoted
from gmpll.apps.tables.guesses import Roles
from gmpll.apps.tables.tables import Table, read_table

_ARRAY_NAMES = ("embeddings", "embedding", "features", "vectors", "X", "x", "arr_0")
_ID_NAMES = ("ids", "id")
#: Words of the vocabulary and dimensions that a text is reduced to.
MAX_WORDS = 50_000
TEXT_DIMENSIONS = 50
#: The matching gives every dimension the same weight: one per this many rows is about as many as
#: hold more than noise.
ROWS_PER_DIMENSION = 10
MAX_CATEGORIES = 50
#: Where this share of a column is missing, and so many cells of it, a feature tells where.
_MUCH_MISSING = 0.1
_MIN_GAPS = 5
#: Rows whose numbers are encoded at a time.
_BLOCK_ROWS = 20_000


def read_embeddings(path: Path, ids: Names) -> NDArray[np.float32]:
    """Read a file with one vector for every row, in their order unless it has ids."""
    if not path.is_file():
        raise InputError(f"There is no embeddings file {path}: check --features.")
    damage = f"The embeddings file {path} cannot be read (REASON): write it again with "
    with damage_told(f"{damage}numpy.save, numpy.savez or pandas.to_parquet."):
        vectors, own = _read(path)
    if own is not None and vectors.ndim == 2:
        if len(own) != len(vectors):
            raise InputError(f"{path} holds {len(own)} ids for {len(vectors)} vectors.")
        place = {identity: row for row, identity in enumerate(own)}
        missing = next((identity for identity in ids.tolist() if identity not in place), None)
        if missing is not None:
            raise InputError(f"{path} holds no embedding for the id {quoted(missing)}.")
        vectors = np.asarray(vectors)[[place[identity] for identity in ids.tolist()]]
    return checked_vectors(vectors, str(path), len(ids))


def embeddings_of_column(column: pd.Series, name: str) -> NDArray[np.float32]:
    """Stack a column of lists of numbers."""
    lengths = [len(value) if hasattr(value, "__len__") else 0 for value in column]
    wrong = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if wrong is not None:
        raise InputError(
            f"The vectors in the column {name} differ in length: row 1 has {lengths[0]} numbers, "
            f"row {wrong + 1} has {lengths[wrong]}."
        )
    try:
        stacked = np.stack([np.asarray(value, dtype=np.float32) for value in column])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"The column {name} must hold lists of numbers.") from error
    return checked_vectors(stacked, f"the column {name}", len(column))


def checked_vectors(vectors: Any, where: str, n_rows: int) -> NDArray[np.float32]:
    """Refuse vectors of the wrong shape, kind or number, and values that are not finite."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiub" or vectors.shape[1] == 0:
        raise InputError(
            f"The embeddings in {where} have the shape {vectors.shape} and type {vectors.dtype}: "
            "a table of numbers with one row per item is needed."
        )
    if len(vectors) != n_rows:
        raise InputError(
            f"The embeddings in {where} are for {len(vectors)} rows but the input has {n_rows}."
        )
    vectors = vectors.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise InputError(
            f"The embedding of row {bad[0] + 1} in {where} holds NaN or infinity: fix or remove it."
        )
    return vectors


def _read(path: Path) -> tuple[NDArray[Any], list[str] | None]:
    """Return the vectors in a file, and their ids if it has some."""
    if path.suffix.lower() == ".npy":
        return np.load(path, allow_pickle=False, mmap_mode="r"), None
    if path.suffix.lower() != ".npz":
        table = read_table(path, format="parquet")
        own = next((name for name in table.frame.columns if name.lower() in _ID_NAMES), "")
        parts = []
        for name, column in table.frame.drop(columns=own or []).items():
            if column.dtype.kind in "fiub":
                parts.append(column.to_numpy(dtype=np.float32)[:, None])
            elif column.dtype == object and isinstance(column.iloc[0], (np.ndarray, list)):
                parts.append(embeddings_of_column(column, str(name)))
        if not parts:
            raise InputError(f"{path} holds no column of numbers or of lists of numbers.")
        return np.hstack(parts), table.text(own).tolist() if own else None
    with np.load(path, allow_pickle=False) as file:
        names = [name for name in file.files if name not in _ID_NAMES]
        if len(names) > 1:
            names = [name for name in _ARRAY_NAMES if name in names][:1] or names
        if len(names) != 1:
            raise InputError(
                f"{path} holds the arrays {', '.join(file.files) or '(none)'}: call the one with "
                "the vectors 'embeddings'."
            )
        given = next((file[name] for name in _ID_NAMES if name in file.files), None)
        # What is no array in such a file comes as bytes.
        vectors = np.asarray(file[names[0]])
        return vectors, None if given is None else given.astype(str).ravel().tolist()


@dataclass(frozen=True)
class FeatureTable:
    """Columns to encode, vectors that are features already, and what is odd about them."""

    frame: pd.DataFrame
    vectors: tuple[NDArray[np.float32], ...]
    problems: tuple[str, ...] = ()


def feature_table(table: Table, roles: Roles, ids: Names, *, fixed: bool = False) -> FeatureTable:
    """Collect what the features are made of, and refuse what cannot be encoded.

    Texts and categories stay as they are written, which does not depend on the other rows. Where a
    model has fixed the columns, other rows may be all that is wrong.
    """
    for name in (*roles.numeric, *roles.text, *roles.categorical, *roles.vectors):
        if name not in table.frame.columns:
            raise InputError(f"{table.name} has no column {name!r}, which the model needs.")
    problems: list[str] = []
    columns: dict[str, Any] = {
        name: _numbers(table, name, roles.styles.get(name, POINT), fixed, problems)
        for name in roles.numeric
    }
    for style, example in () if fixed else EXAMPLES.items():
        names = [name for name, used in roles.styles.items() if used == style]
        if names:
            problems.append(
                f"numbers like {example} are read in {listed(names)}: leave out with --exclude "
                "what is no number"
            )
    missing = sum(int(np.isnan(column).sum()) for column in columns.values())
    if missing:
        what = counted(missing, "number", "is")
        gaps = [] if fixed else often_missing(columns)
        told = f", and a feature tells where of {listed(gaps)}" if gaps else ""
        remedy = "" if fixed else "; fill them, or leave columns out with --exclude"
        problems.append(f"{what} missing: the median of the column stands in{told}{remedy}")
    columns |= {name: table.text(name) for name in (*roles.text, *roles.categorical)}
    for name in () if fixed else roles.text:
        if table.frame[name].dtype.kind in "fiub":
            raise InputError(
                f"The column {name} holds numbers and no text: name it with --features instead of "
                "--text."
            )
        if not columns[name].str.strip().any():
            raise InputError(f"The text column {name} is empty: name another with --text.")
    vectors = [embeddings_of_column(table.frame[name], name) for name in roles.vectors]
    vectors += [read_embeddings(path, ids) for path in roles.files]
    frame = pd.DataFrame(columns, index=range(len(table.frame)), copy=False)
    return FeatureTable(frame, tuple(vectors), tuple(problems))


def often_missing(columns: dict[str, Floats]) -> list[str]:
    """Return the columns of numbers in which so many are missing that it may mean something."""
    gaps = {name: np.isnan(column) for name, column in columns.items()}
    n_least = {name: max(_MIN_GAPS, _MUCH_MISSING * len(gap)) for name, gap in gaps.items()}
    return [n for n, gap in gaps.items() if n_least[n] <= gap.sum() and not gap.all()]


def _numbers(table: Table, name: str, style: str, fixed: bool, problems: list[str]) -> Floats:
    values, strangers = read_numbers(table, name, style)
    if strangers and fixed:
        raise InputError(
            f"{table.place(strangers[0], name)} where a number like {EXAMPLES[style]} is needed: "
            "fix the cell, or empty it to have the median of the column in its place."
        )
    if strangers:
        cells = table.text(name)
        shown = [f"row {row + 1} holds {quoted(cells[row])}" for row in strangers]
        problems.append(
            f"{int((~np.isnan(values)).sum())} of {len(cells)} cells of {name} are numbers; "
            f"{listed(shown, 3)}: treated as missing unless you correct them"
        )
    bad = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if bad.size:
        what = "empty the cell" if fixed else "leave the column out with --exclude"
        kind = "an infinite number" if np.isinf(values[bad[0]]) else "too large a number"
        raise InputError(f"{table.place(bad[0], name)}, {kind}: fix it, or {what}.")
    return values


@dataclass(eq=False)
class FeatureEncoder(BaseEstimator):
    """Numbers, texts and categories as one table of numbers; embeddings are put beside them.

    Missing numbers become the median of their column, and where many are missing a feature tells
    which; a text becomes TF-IDF of its words and pairs of words, reduced by a truncated SVD; a
    category becomes one column for each of its values. The styles tell how the numbers of a column
    are written in files, unless with a point.
    """

    numeric: Any = ()
    text: Any = ()
    categorical: Any = ()
    random_state: int = 0
    styles: dict[str, str] | None = None

    def fit(self, table: FeatureTable) -> Self:
        """Learn medians, vocabularies and categories."""
        self.truth_values_: list[str] = []
        frame = self._cleaned(table.frame)
        self.truth_values_ = [n for n in self.categorical if set(frame[n]) <= {"true", "false", ""}]
        parts: list[tuple[str, Any, Any]] = []
        if self.numeric:
            parts.append(("numbers", SimpleImputer(strategy="median"), list(self.numeric)))
        gaps = often_missing({name: frame[name].to_numpy() for name in self.numeric})
        if gaps:
            parts.append(("gaps", MissingIndicator(features="all"), gaps))
        for name in self.text:
            parts.append((f"text {name}", self._text_steps(frame[name]), name))
        if self.categorical:
            one_hot = OneHotEncoder(
                handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False
            )
            parts.append(("categories", one_hot, list(self.categorical)))
        self.columns_ = ColumnTransformer(parts, sparse_threshold=0.0)
        self.dimensions_ = tuple(vector.shape[1] for vector in table.vectors)
        if parts:
            self.columns_.fit(frame)
        return self

    def encode(self, table: FeatureTable) -> NDArray[np.float32]:
        """Return the features of rows."""
        dimensions = tuple(vector.shape[1] for vector in table.vectors)
        if dimensions != self.dimensions_:
            raise InputError(
                f"The model was made with embeddings of {list(self.dimensions_)} dimensions but "
                f"got {list(dimensions)}: give the same kind of embeddings with --features."
            )
        blocks = []
        for start in range(0, len(table.frame), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            parts = [vector[rows] for vector in table.vectors]
            if self.columns_.transformers:
                frame = self._cleaned(table.frame.iloc[rows])
                parts.insert(0, self.columns_.transform(frame).astype(np.float32))
            blocks.append(np.hstack(parts))
        return np.vstack(blocks)

    def unseen(self, table: FeatureTable) -> list[str]:
        """Say which categories of rows the encoder does not know."""
        notes: list[str] = []
        if not self.categorical:
            return notes
        known = self.columns_.named_transformers_["categories"].categories_
        for name, names in zip(self.categorical, known, strict=True):
            cells = pd.Series(self._categories(table.frame[name], name), dtype=object)
            strange = cells[~cells.isin(names)]
            if len(strange):
                notes.append(
                    f"{len(strange)} of {len(cells)} cells of {name} hold a category that the "
                    f"model does not know, such as {quoted(strange.iloc[0])} in row "
                    f"{strange.index[0] + 1}: they tell nothing about the label"
                )
        return notes

    def _cleaned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns needed, with absent texts and categories as ""."""
        numbers = {n: frame[n].to_numpy(np.float64, na_value=np.nan) for n in self.numeric}
        texts = {name: list(map(as_text, frame[name])) for name in self.text}
        categories = {name: self._categories(frame[name], name) for name in self.categorical}
        return pd.DataFrame(numbers | texts | categories, index=range(len(frame)))

    def _categories(self, column: pd.Series, name: str) -> list[str]:
        cells = [category_text(as_text(value)) for value in column]
        if name not in self.truth_values_:
            return cells
        return [{"1": "true", "0": "false"}.get(cell, cell) for cell in cells]

    def _text_steps(self, texts: pd.Series) -> Any:
        # A word of one row relates no rows: it counts only where there are no others.
        words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), max_features=MAX_WORDS)
        for min_df in (2, 1):
            with suppress(ValueError):  # scikit-learn refuses an empty vocabulary
                n_words = len(words.set_params(min_df=min_df).fit(texts).vocabulary_)
                break
        else:
            raise InputError(
                f"The text column {texts.name} holds no words of two letters or more: name "
                "another with --text."
            )
        most = min(TEXT_DIMENSIONS, max(2, len(texts) // ROWS_PER_DIMENSION))
        n_dimensions = min(most, n_words - 1, len(texts) - 1)
        if n_dimensions < 1:
            return words
        svd = TruncatedSVD(n_dimensions, random_state=self.random_state)
        return make_pipeline(words, svd, Normalizer(copy=False))


def fitted_encoder(inputs: FeatureTable, roles: Roles, seed: int = 0) -> FeatureEncoder:
    """Return an encoder of the columns that have these roles."""
    columns = {"numeric": roles.numeric, "text": roles.text, "categorical": roles.categorical}
    return FeatureEncoder(**columns, random_state=seed, styles=roles.styles).fit(inputs)
