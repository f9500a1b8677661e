"""Reading tables: CSV, TSV, Parquet, JSON Lines, JSON and Excel, and exports of annotation tools.

Delimited text is kept as it is written, cell by cell, beside its typed columns: what goes out
again must be what came in, ``007`` included.
"""

import codecs
import csv
import datetime
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import compute, parquet
from pyarrow import csv as arrow_csv

from gmpll.apps.tables.cells import MISSING, as_text
from gmpll.apps.tables.errors import InputError, counted, damage_told, listed, quoted
from gmpll.apps.tables.exports import Votes, flatten_export, records_in
from gmpll.candidates import is_missing

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
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
#: Endings of packed files, and what PyArrow calls the way they are packed.
_PACKED = {".gz": "gzip", ".zst": "zstd"}
#: A packed file may become so many times as large, or so large; more is no table but an attack.
_MAX_RATIO = 200
_MAX_SMALL = 2**26
#: The line by which a spreadsheet names the delimiter.
_SEP_LINE = re.compile(r'"?sep=(.)"?')
#: Delimiters that a guess chooses from, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
#: Lines that the delimiter is guessed from.
_SAMPLE_LINES = 50
_SAMPLE_BYTES = 2**18
_CHUNK_BYTES = 2**22
_AGAIN = "it may be cut short: write or copy it again"


@dataclass(frozen=True)
class Table:
    """Rows that came from a file or a DataFrame.

    ``frame`` has typed columns: numbers as float64, everything else as text or objects. ``cells``
    are as they were written (CSV and TSV: all text; Parquet: typed), ``delimiter`` and ``encoding``
    are those of delimited text, and ``notes`` tell what was guessed while reading. ``votes`` are
    those of named annotators in an export, and ``rows`` its items where they are not its records.
    """

    frame: pd.DataFrame
    path: Path | None = None
    format: str = "frame"
    cells: pa.Table | None = None
    delimiter: str = ","
    encoding: str = "utf-8"
    notes: tuple[str, ...] = ()
    votes: Votes | None = None
    rows: list[dict[str, Any]] | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of a JSON file as they were written, or those made of an export."""
        if self.rows is not None:
            return self.rows
        assert self.path is not None
        return read_json_records(self.path, self.format, self.encoding)

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

    def place(self, row: int, column: str) -> str:
        """Begin a sentence about a cell: where it is and what it holds."""
        cell = quoted(self.text(column).iloc[row])
        return f"Row {row + 1} of {self.name}, column {column} holds {cell}"


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table of at least one row, or say in an InputError why it cannot be read.

    The ending of the file's name tells the format, its first lines the delimiter; text is UTF-8
    unless another encoding is named.
    """
    path = Path(path)
    _check_file(path)
    unpacked = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    suffix = unpacked.suffix.lower()
    kind = format or FORMATS.get(suffix)
    if kind is None and suffix in _SPREADSHEETS:
        raise InputError(f"{path} is a spreadsheet: save it as .xlsx or CSV, and name that file.")
    if kind is None:
        raise InputError(
            f"{path} does not end in {', '.join(FORMATS)}, {' or '.join(_PACKED)}: rename it, "
            "or say what it is with --format."
        )
    if kind not in FORMATS.values():
        raise InputError(
            f"There is no format {quoted(kind)}: use csv, tsv, parquet, jsonl, json or excel."
        )
    encoding = encoding or "utf-8"
    try:
        if kind in ("csv", "tsv"):
            table = _read_delimited(path, kind, delimiter, encoding)
        elif kind in ("json", "jsonl"):
            table = _read_json(path, kind, encoding)
        else:
            table = (_read_excel if kind == "excel" else _read_parquet)(path)
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


def _content(path: Path) -> bytes:
    """Return what is in a file, unpacked where its name says that it is packed."""
    packed = _PACKED.get(path.suffix.lower())
    if packed is None:
        return path.read_bytes()
    most = max(_MAX_SMALL, _MAX_RATIO * path.stat().st_size)
    raw = bytearray()
    damage = f"{path} is no readable {packed} file, {_AGAIN}."
    with damage_told(damage, MemoryError), pa.input_stream(str(path), compression=packed) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            raw += chunk
            if len(raw) > most:
                raise InputError(
                    f"{path} unpacks to more than {_MAX_RATIO} times its size: unpack it "
                    "yourself if you trust it, and name that file."
                )
    if not raw:
        raise InputError(f"{path} is empty: a header and some rows are needed.")
    return bytes(raw)


def _check_characters(texts: list[str], where: str) -> None:
    """Refuse halves of surrogate pairs, which no file and no page can hold."""
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"There is the character {error.object[error.start]!a} in {where}, which is half of a "
            "pair: fix or remove it."
        ) from error


def _check_names(names: list[str], where: str) -> None:
    _check_characters(names, f"the column names of {where}")
    for name, times in Counter(names).items():
        if name.endswith("\0"):  # pandas would look for another name
            raise InputError(f"{where} has a column {quoted(name)}: rename it without the NUL.")
        if times > 1:
            raise InputError(f"{where} has two columns named {quoted(name)}: rename one of them.")


def _read_delimited(path: Path, kind: str, delimiter: str | None, encoding: str) -> Table:
    codec = _codec(encoding)
    raw = _content(path)
    sample = _first_lines(raw, codec, path)
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    said = _SEP_LINE.fullmatch(sample[0]) if sample else None
    skipped = int(said is not None)
    notes: tuple[str, ...] = ()
    if delimiter is None and said is not None:
        delimiter = said.group(1)
    elif delimiter is None and kind == "tsv":
        delimiter = "\t"
    elif delimiter is None:
        delimiter = _guess_delimiter(sample)
        notes = (f"delimiter {_printed(delimiter)}",)
    elif len(delimiter) != 1:
        raise InputError(f"The delimiter {quoted(delimiter)} is not one character.")
    names = _header(sample[skipped:], delimiter, path)
    try:
        cells = arrow_csv.read_csv(
            pa.BufferReader(raw),
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows=1 + skipped, encoding=encoding
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except UnicodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        _check_lines(raw, path, delimiter, codec, n_cells=len(names), skipped=skipped)
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read as delimited text: {reason}") from error
    if raw.count(b'"') % 2:  # one that is never closed would swallow the rest of the file
        _check_lines(raw, path, delimiter, codec)
    if raw.startswith(codecs.BOM_UTF8) and codec == "utf-8-sig":
        encoding = codec  # spreadsheets know UTF-8 by its mark: the results get it, too
    return Table(_typed(cells), path, kind, cells, delimiter, encoding, notes)


def _codec(encoding: str) -> str:
    """Return the codec that an encoding is read by; UTF-8 may have a mark."""
    try:
        codecs.getincrementaldecoder(encoding)
        "".encode(encoding)  # some codecs are no encodings of text
    except (LookupError, ValueError):
        raise InputError(
            f"There is no encoding {quoted(encoding)}: try utf-8 or latin-1."
        ) from None
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _first_lines(raw: bytes, codec: str, path: Path) -> list[str]:
    """Return the first lines; the last of a long file may be cut and is left out."""
    start = raw[:_SAMPLE_BYTES]
    is_long = len(start) < len(raw)
    if b"\0" in start and "16" not in codec and "32" not in codec:
        hint = (
            "it looks like UTF-16, so use --encoding utf-16"
            if raw[:2] in (b"\xff\xfe", b"\xfe\xff")
            else "check its name, or say what it is with --format"
        )
        raise InputError(f"{path} is not text but binary data: {hint}.")
    try:
        text = codecs.getincrementaldecoder(codec)().decode(start, final=not is_long)
    except UnicodeError as error:
        raise _wrong_encoding(path, codec, error) from error
    lines = text.splitlines()
    return lines[:-1] if is_long and len(lines) > 1 else lines


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
            f"The first line of {path} does not name columns ({error}): fix it."
        ) from error
    if not header:
        raise InputError(f"{path} has no header: its first line must name the columns.")
    names = _column_names(header, path)
    if len(names) == 1 and any(mark in names[0] for mark in DELIMITERS):
        raise InputError(
            f"{path} has the one column {quoted(names[0])}: name the right delimiter with "
            f"--delimiter (now {_printed(delimiter)})."
        )
    return names


def _column_names(header: Sequence[str], path: Path) -> list[str]:
    names = [name.strip() or f"column_{place}" for place, name in enumerate(header, start=1)]
    _check_names(names, str(path))
    return names


def _check_lines(
    raw: bytes,
    path: Path,
    delimiter: str,
    codec: str,
    *,
    n_cells: int | None = None,
    skipped: int = 0,
) -> None:
    """Name the first line with a wrong quote or number of cells; the parser does not always."""
    lines = io.TextIOWrapper(io.BytesIO(raw), encoding=codec, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            line = reader.line_num + 1
            if n_cells and row and len(row) != n_cells and reader.line_num > skipped:
                raise InputError(
                    f"Line {reader.line_num} of {path} has {counted(len(row), 'cell')} but the "
                    f"header has {n_cells}: fix the line, or name the delimiter with --delimiter "
                    f"(now {_printed(delimiter)})."
                )
    except UnicodeError as error:
        raise _wrong_encoding(path, codec, error) from error
    except csv.Error as error:
        raise InputError(
            f"The record that begins in line {line} of {path} has a quote that is never closed or "
            "stands in the wrong place: fix it."
        ) from error


def _printed(delimiter: str) -> str:
    return {"\t": "tab", " ": "space"}.get(delimiter, f"'{delimiter}'")


def _typed(cells: pa.Table) -> pd.DataFrame:
    """Return columns of numbers as float64 with NaN for missing ones; any others as text."""
    columns = {}
    for name, column in zip(cells.column_names, cells.columns, strict=True):
        trimmed = compute.utf8_trim_whitespace(column)
        blank = compute.is_in(compute.utf8_lower(trimmed), value_set=pa.array(MISSING))
        filled = compute.if_else(blank, pa.scalar(None, pa.string()), trimmed)
        with suppress(pa.ArrowInvalid):
            if filled.null_count < len(filled):
                columns[name] = filled.cast(pa.float64()).to_numpy()
        if name not in columns:
            columns[name] = column.to_pandas()
    return pd.DataFrame(columns, copy=False)


def _read_excel(path: Path) -> Table:
    """Read the first sheet with a cell in it; the results are written as CSV."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise InputError(
            f"{path} is an Excel file, which needs openpyxl: install it with pip install "
            "'gmpll[excel]', or save the file as CSV."
        ) from error
    damage = f"{path} is no readable Excel file, it may be cut short: save it again, or as CSV."
    with damage_told(damage, MemoryError):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max(_MAX_SMALL, _MAX_RATIO * path.stat().st_size):
            raise InputError(
                f"{path} unpacks to more than {_MAX_RATIO} times its size: save it as CSV."
            )
        book = load_workbook(path, read_only=True, data_only=True)
        name, lines, others = "", [], book.sheetnames
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a file may claim to have millions of cells
            rows = sheet.iter_rows(values_only=True)
            lines = [row for row in rows if any(value not in (None, "") for value in row)]
            if lines:
                name, others = sheet.title, [n for n in book.sheetnames if n != sheet.title]
                break
    if not lines:
        raise InputError(f"{path} is empty: a header and some rows are needed.")
    cells = [[_cell_text(value) for value in line] for line in lines]
    columns = [column for column in zip_longest(*cells, fillvalue="") if any(column)]
    names = _column_names([column[0] for column in columns], path)
    _check_characters([cell for column in columns for cell in column], str(path))
    arrow = pa.table([pa.array(column[1:], pa.string()) for column in columns], names=names)
    notes = (f"sheet {quoted(name)}, not {listed(map(quoted, others), 3)}",) if others else ()
    return Table(_typed(arrow), path, "csv", arrow, encoding="utf-8-sig", notes=notes)


def _cell_text(value: Any) -> str:
    """Return a cell of a spreadsheet as it would be written in CSV."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat().removesuffix("T00:00:00")
    return as_text(value)


def _read_parquet(path: Path) -> Table:
    with damage_told(f"{path} is no readable Parquet file, {_AGAIN}.", MemoryError):
        cells = parquet.read_table(path)
        cells.validate(full=True)  # texts are decoded when they are looked at, much later
        frame = cells.to_pandas()
    _check_names(cells.column_names, str(path))
    frame = frame.reset_index(drop=True).rename(columns=str)
    return Table(frame, path, "parquet", cells)


def _read_json(path: Path, kind: str, encoding: str) -> Table:
    records = read_json_records(path, kind, encoding)
    if not records:
        raise InputError(f"{path} holds no rows: there is nothing to do.")
    export = flatten_export(records)
    rows = export.rows
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {n: pd.Series([row.get(n) for row in rows], dtype=object) for n in names}
    for name, column in columns.items():
        present = [value for value in column if not is_missing(value)]
        if present and all(type(value) in (int, float) for value in present):
            try:
                columns[name] = column.astype(float)
            except OverflowError as error:
                raise InputError(
                    f"The column {quoted(name)} of {path} holds an integer that is too large for "
                    "a number: write it as text."
                ) from error
    return Table(
        pd.DataFrame(columns, index=range(len(rows))),
        path,
        kind,
        encoding=encoding,
        notes=export.notes,
        votes=export.votes,
        rows=rows if export.regrouped else None,
    )


def read_json_records(path: Path, kind: str, encoding: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file or of a JSON list."""
    text = _text_in(path, encoding)
    if kind == "json":
        found = records_in(_loaded(text, str(path), "it must hold a list of objects"))
        if found is None:
            raise InputError(f"{path} must hold a list of JSON objects, one for every row.")
        return found
    records: list[dict[str, Any]] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if line.strip():
            where = f"Line {number} of {path}"
            records.append(_loaded(line, where, "every line is one object"))
            if not isinstance(records[-1], dict):
                raise InputError(f"{where} is no JSON object: write one in every line.")
    return records


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    return _loaded(_text_in(path, "utf-8"), str(path), "fix it")


def _text_in(path: Path, encoding: str) -> str:
    try:
        return _content(path).decode(_codec(encoding))
    except UnicodeError as error:
        raise _wrong_encoding(path, encoding, error) from error


def _loaded(text: str, where: str, hint: str) -> Any:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error}): {hint}.") from error
    except RecursionError:
        raise InputError(f"{where} is nested too deeply to be a table.") from None
    if "\\ud" in text.lower():  # only an escape can smuggle such characters into text
        _check_characters([json.dumps(content, ensure_ascii=False)], where)
    return content
