"""Reading tables: CSV, TSV, Parquet, JSON Lines and JSON.

Delimited text is kept as it is written, cell by cell, beside its typed columns: what goes out
again must be what came in, ``007`` included.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmpll.apps.tables.cells import MISSING, as_text
from gmpll.apps.tables.errors import InputError, counted, quoted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["FORMATS", "Table", "read_json_records", "read_table", "table_from_frame"]

#: File name endings and the format they stand for.
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
#: The line by which a spreadsheet names the delimiter.
_SEP_LINE = re.compile(r'"?sep=(.)"?')
#: Delimiters that a guess chooses from, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
#: Lines that the delimiter is guessed from.
_SAMPLE_LINES = 50
_SAMPLE_BYTES = 2**18
_CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Table:
    """Rows that came from a file or a DataFrame.

    Attributes
    ----------
    frame : DataFrame
        Typed columns: numbers as float64, everything else as text or objects.
    path : Path or None
        Where they came from.
    format : str
        ``csv``, ``tsv``, ``parquet``, ``jsonl``, ``json`` or ``frame``.
    cells : pyarrow.Table or None
        The cells as they were written (CSV and TSV: all text; Parquet: typed).
    delimiter, encoding : str
        Of delimited text.
    notes : tuple of str
        What was guessed while reading.
    """

    frame: pd.DataFrame
    path: Path | None = None
    format: str = "frame"
    cells: pa.Table | None = None
    delimiter: str = ","
    encoding: str = "utf-8"
    notes: tuple[str, ...] = field(default=())

    def text(self, column: str) -> pd.Series:
        """Return a column as text, as it was written where that is known; absent cells are "" ."""
        if self.cells is not None and self.format in ("csv", "tsv"):
            return self.cells[column].to_pandas()
        return self.frame[column].astype(object).map(as_text)

    def raw(self, column: str) -> pd.Series:
        """Return a column as text, or as objects, which may be lists, where it holds such."""
        return self.frame[column] if self.frame[column].dtype == object else self.text(column)

    @property
    def name(self) -> str:
        """How to call the table in a sentence."""
        return str(self.path) if self.path is not None else "the DataFrame"


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Table:
    r"""Read a table.

    Parameters
    ----------
    path : path
        The file; the ending of its name tells the format.
    format : {"csv", "tsv", "parquet", "jsonl", "json"}, default=None
        Overrides the ending.
    delimiter : str, default=None
        Between the cells of delimited text; guessed by default.
    encoding : str, default=None
        Of text; UTF-8 by default.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the file cannot be read as a table of at least one row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gmpll.apps.tables.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_text("id;size\n007;1.5\n008;2\n")
    ...     table = read_table(file)
    >>> table.delimiter, table.frame["size"].tolist(), table.cells["id"].to_pylist()
    (';', [1.5, 2.0], ['007', '008'])
    """
    path = Path(path)
    _check_file(path)
    kind = format or FORMATS.get(path.suffix.lower())
    if kind is None and path.suffix.lower() in _SPREADSHEETS:
        raise InputError(f"{path} is a spreadsheet: save it as CSV, and name that file.")
    if kind is None:
        raise InputError(
            f"{path} does not end in {', '.join(FORMATS)}: say what it is with --format."
        )
    if kind not in set(FORMATS.values()):
        raise InputError(
            f"There is no format {quoted(kind)}: use csv, tsv, parquet, jsonl or json."
        )
    try:
        if kind == "parquet":
            table = _read_parquet(path)
        elif kind in ("csv", "tsv"):
            table = _read_delimited(path, kind, delimiter, encoding or "utf-8")
        else:
            table = _read_json(path, kind, encoding or "utf-8")
    except MemoryError:
        raise InputError(f"{path} does not fit into memory: split it.") from None
    if len(table.frame) == 0:
        raise InputError(f"{path} has no rows below its header: there is nothing to do.")
    return table


def table_from_frame(frame: pd.DataFrame) -> Table:
    """Take a DataFrame as it is; column names become text."""
    frame = frame.rename(columns=str)
    _check_names(list(frame.columns), "the DataFrame")
    if len(frame) == 0:
        raise InputError("The DataFrame has no rows: there is nothing to do.")
    for name in frame.columns:
        if frame[name].dtype == object:
            texts = [value for value in frame[name] if isinstance(value, str)]
            _check_characters(texts, f"the column {quoted(name)} of the DataFrame")
    return Table(frame.reset_index(drop=True))


def read_json_records(path: Path, kind: str, encoding: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file or of a JSON list."""
    with path.open(encoding=_checked_encoding(encoding)) as file:
        try:
            return list(_lines(file, path)) if kind == "jsonl" else _whole(file, path)
        except UnicodeError as error:
            raise _wrong_encoding(path, encoding, error) from error


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise InputError(f"There is no file {path}: check its name.")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if empty:
        raise InputError(f"{path} is empty: a header and some rows are needed.")


def _check_characters(texts: list[str], where: str) -> None:
    """Refuse halves of surrogate pairs, which no file and no page can hold."""
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"There is the character {error.object[error.start]!a} in {where}, which is half of a "
            "pair: mend or remove it."
        ) from error


def _check_names(names: list[str], where: str) -> None:
    _check_characters(names, f"the column names of {where}")
    seen: set[str] = set()
    for name in names:
        if name.endswith("\0"):  # pandas would look for another name
            raise InputError(f"{where} has a column {quoted(name)}: rename it without the NUL.")
        if name in seen:
            raise InputError(f"{where} has two columns named {quoted(name)}: rename one of them.")
        seen.add(name)


# Delimited text ------------------------------------------------------------------------------


def _read_delimited(path: Path, kind: str, delimiter: str | None, encoding: str) -> Table:
    from pyarrow import csv as arrow_csv
    from pyarrow.lib import ArrowException

    sample = _sample(path, _checked_encoding(encoding))
    said = _SEP_LINE.fullmatch(sample[0]) if sample else None
    skipped = int(said is not None)
    sample = sample[skipped:]
    if said is not None and delimiter is None:
        delimiter = said.group(1)
    guessed = delimiter is None
    if delimiter is None:
        delimiter = "\t" if kind == "tsv" else _guess_delimiter(sample)
    elif len(delimiter) != 1:
        raise InputError(f"The delimiter {quoted(delimiter)} is not one character.")
    names = _header(sample, delimiter, path)
    try:
        cells = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows=1 + skipped, encoding=encoding
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=_all_text(names),
        )
    except UnicodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    except (ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, names, delimiter, str(error), encoding, skipped) from error
    _check_quotes(path, delimiter, encoding)
    if _has_mark(path) and _checked_encoding(encoding) == "utf-8-sig":
        encoding = "utf-8-sig"  # spreadsheets know UTF-8 by its mark: the results get it, too
    frame = _typed(cells)
    notes = (f"delimiter {_printed(delimiter)}",) if guessed and kind == "csv" else ()
    return Table(frame, path, kind, cells, delimiter, encoding, notes)


def _all_text(names: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )


def _checked_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(encoding)  # some codecs are no encodings of text
    except (LookupError, ValueError):
        raise InputError(
            f"There is no encoding {quoted(encoding)}: try utf-8 or latin-1."
        ) from None
    return "utf-8-sig" if name == "utf-8" else encoding


def _sample(path: Path, encoding: str) -> list[str]:
    """Return the first lines; the last of a long file may be cut and is left out."""
    with path.open("rb") as file:
        raw = file.read(_SAMPLE_BYTES)
    if b"\0" in raw and "16" not in encoding and "32" not in encoding:
        hint = (
            "it looks like UTF-16, so use --encoding utf-16"
            if raw[:2] in (b"\xff\xfe", b"\xfe\xff")
            else "check its name, or say what it is with --format"
        )
        raise InputError(f"{path} is not text but binary data: {hint}.")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end < len(raw) - 4 or len(raw) < _SAMPLE_BYTES:
            raise _wrong_encoding(path, encoding, error) from error
        text = raw[: error.start].decode(encoding)
    except UnicodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    lines = text.splitlines()
    return lines[:-1] if len(raw) == _SAMPLE_BYTES and len(lines) > 1 else lines


def _wrong_encoding(path: Path, encoding: str, error: UnicodeError) -> InputError:
    name = encoding.removesuffix("-sig").upper()
    where = "it does not begin with the mark of the byte order"
    if isinstance(error, UnicodeDecodeError):
        where = f"byte 0x{error.object[error.start]:02x} at place {error.start}"
    return InputError(
        f"{path} is not {name} ({where}): name its encoding, for instance --encoding latin-1."
    )


def _guess_delimiter(lines: list[str]) -> str:
    """Take the delimiter that splits the first lines into the same number of cells, the most."""
    best, most = ",", 1
    for delimiter in DELIMITERS:
        try:
            rows = [row for row in csv.reader(lines[:_SAMPLE_LINES], delimiter=delimiter) if row]
        except csv.Error:  # a cell without end: this is not how the text is divided
            continue
        # The last record may go on beyond the sample.
        widths = [len(row) for row in rows[: max(1, len(rows) - 1)]]
        regular = sum(width == widths[0] for width in widths) >= 0.9 * len(widths) if widths else 0
        # The labels in one cell are often divided by "|": it must beat the others clearly.
        if regular and widths[0] > most and (delimiter != "|" or most == 1):
            best, most = delimiter, widths[0]
    return best


def _header(lines: list[str], delimiter: str, path: Path) -> list[str]:
    try:
        header = next(csv.reader(lines, delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(
            f"The first line of {path} does not name columns ({error}): mend it."
        ) from error
    names = [name.strip() or f"column_{place}" for place, name in enumerate(header, start=1)]
    if not names:
        raise InputError(f"{path} has no header: its first line must name the columns.")
    _check_names(names, str(path))
    if len(names) == 1 and any(mark in names[0] for mark in DELIMITERS):
        raise InputError(
            f"{path} has the one column {quoted(names[0])}: name the right delimiter with "
            f"--delimiter (now {_printed(delimiter)})."
        )
    return names


def _unreadable(
    path: Path, names: list[str], delimiter: str, reason: str, encoding: str, skipped: int
) -> InputError:
    """Find the first line with the wrong number of cells; the parser does not always say it."""
    try:
        with path.open(encoding=_checked_encoding(encoding), newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            line = 1
            for row in reader:
                line = reader.line_num + 1
                if row and len(row) != len(names) and reader.line_num > skipped:
                    return InputError(
                        f"Line {reader.line_num} of {path} has {counted(len(row), 'cell')} but "
                        f"the header has {len(names)}: mend the line, or name the delimiter with "
                        f"--delimiter (now {_printed(delimiter)})."
                    )
    except UnicodeError as error:
        return _wrong_encoding(path, encoding, error)
    except csv.Error:
        return _bad_quote(path, line)
    return InputError(f"{path} cannot be read as delimited text: {' '.join(reason.split())[:200]}")


def _bad_quote(path: Path, line: int) -> InputError:
    return InputError(
        f"The record that begins in line {line} of {path} has a quote that is never closed or "
        "stands in the wrong place: mend it."
    )


def _has_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == codecs.BOM_UTF8


def _check_quotes(path: Path, delimiter: str, encoding: str) -> None:
    """Refuse a quote that is never closed: it would swallow the rest of the file."""
    with path.open("rb") as file:
        n_quotes = sum(chunk.count(b'"') for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""))
    if n_quotes % 2 == 0:
        return
    with path.open(encoding=_checked_encoding(encoding), newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        line = 1
        try:
            for _ in reader:
                line = reader.line_num + 1
        except csv.Error as error:
            raise _bad_quote(path, line) from error
        except UnicodeError as error:
            raise _wrong_encoding(path, encoding, error) from error


def _printed(delimiter: str) -> str:
    return {"\t": "tab", " ": "space"}.get(delimiter, f"'{delimiter}'")


def _typed(cells: pa.Table) -> pd.DataFrame:
    import pandas as pd

    columns = {name: _typed_column(cells[name]) for name in cells.column_names}
    return pd.DataFrame(columns, copy=False)


def _typed_column(column: pa.ChunkedArray) -> Any:
    """Return a column of numbers as float64 with NaN for missing ones; any other as text."""
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(column)
    blank = compute.is_in(compute.utf8_lower(trimmed), value_set=pa.array(MISSING))
    filled = compute.if_else(blank, pa.scalar(None, pa.string()), trimmed)
    if filled.null_count < len(filled):
        try:
            return filled.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            pass
    return column.to_pandas()


# Parquet and JSON ----------------------------------------------------------------------------


def _read_parquet(path: Path) -> Table:
    from pyarrow import parquet

    try:
        cells = parquet.read_table(path)
        cells.validate(full=True)  # texts are decoded when they are looked at, much later
        frame = cells.to_pandas()
    except MemoryError:
        raise
    except Exception as error:  # a damaged file shows in a dozen kinds of exception
        raise InputError(
            f"{path} is no readable Parquet file, it may be cut short: write or copy it again."
        ) from error
    _check_names(cells.column_names, str(path))
    frame = frame.reset_index(drop=True).rename(columns=str)
    return Table(frame, path, "parquet", cells)


def _read_json(path: Path, kind: str, encoding: str) -> Table:
    from gmpll.apps.tables.exports import flatten_export

    records = read_json_records(path, kind, encoding)
    if not records:
        raise InputError(f"{path} holds no rows: there is nothing to do.")
    flat, notes = flatten_export(records)
    return Table(_records_frame(flat, path), path, kind, encoding=encoding, notes=notes)


def _records_frame(records: list[dict[str, Any]], path: Path) -> pd.DataFrame:
    import pandas as pd

    names = dict.fromkeys(name for record in records for name in record)
    columns = {}
    for name in names:
        column = pd.Series([record.get(name) for record in records], dtype=object)
        plain = [value for value in column if value is not None]
        if plain and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in plain):
            try:
                column = column.astype(float)
            except OverflowError as error:
                raise InputError(
                    f"The column {quoted(name)} of {path} holds an integer that is too large for "
                    "a number: write it as text."
                ) from error
        columns[str(name)] = column
    return pd.DataFrame(columns)


def _lines(file: Iterator[str], path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"Line {number} of {path} is not valid JSON ({error}): every line is one object."
            ) from error
        except RecursionError:
            raise InputError(f"Line {number} of {path} is nested too deeply to be a row.") from None
        if not isinstance(record, dict):
            raise InputError(f"Line {number} of {path} is no JSON object: write one in every line.")
        _check_escapes(line, record, f"line {number} of {path}")
        yield record


def _check_escapes(text: str, content: Any, where: str) -> None:
    """Refuse characters that only an escape can smuggle into text."""
    if "\\ud" in text.lower():
        _check_characters([json.dumps(content, ensure_ascii=False)], where)


def _whole(file: Any, path: Path) -> list[dict[str, Any]]:
    try:
        text = file.read()
        content = json.loads(text)
    except ValueError as error:
        if isinstance(error, UnicodeError):
            raise
        raise InputError(f"{path} is not valid JSON: {error}.") from error
    except RecursionError:
        raise InputError(f"{path} is nested too deeply to be a table.") from None
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise InputError(f"{path} must hold a list of JSON objects, one for every row.")
    _check_escapes(text, content, str(path))
    return content
