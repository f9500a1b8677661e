"""Readers of what a user wants resolved: tables, exports, votes, cells with sets of labels."""

from __future__ import annotations

import io
import json

import pandas as pd
import pyarrow as pa
from fuzz.mutators import (
    Mutator,
    after_the_first_byte,
    bytes_changed,
    csv_changed,
    json_changed,
    json_lines_changed,
    parquet_changed,
    xml_changed,
    zip_changed,
)
from fuzz.target import Target, scratch, written

from gmpll.apps.tables.candidate_sets import label_sets, row_ids
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_table
from gmpll.apps.tables.resolving import prepare
from gmpll.apps.tables.tables import Table, read_table, table_from_frame

#: How delimited text is read, chosen by the first byte: format, delimiter, encoding.
WAYS = (
    ("csv", None, None),
    ("csv", None, None),
    ("tsv", None, None),
    ("csv", ";", "utf-8"),
    ("csv", None, "latin-1"),
    ("csv", ",", "utf-16"),
    ("tsv", None, "cp1252"),
)
LINES = [
    "id,size,text,tags",
    "a1,1.5,the first of them,cat|dog",
    "a2,2,another one of them,dog",
    "a3,,a third one is here,cat|dog",
    '"a,4",-3e2,"quoted, ""text""\nof two lines",cat',
]
RECORDS = [
    {"id": 1, "size": 1.5, "text": "the first of them", "tags": ["cat", "dog"]},
    {"id": 2, "size": 2, "text": "another one of them", "tags": ["dog"]},
    {"id": 3, "size": None, "text": "a third one is here", "tags": ["cat", "dog"]},
]
LABEL_STUDIO = [
    {
        "id": number,
        "data": {"text": f"text number {number}", "size": number},
        "annotations": [
            {
                "completed_by": {"id": place},
                "result": [{"type": "choices", "value": {"choices": [name]}}],
                "was_cancelled": False,
            }
            for place, name in enumerate(names)
        ],
        "predictions": [],
    }
    for number, names in enumerate((["cat", "dog"], ["dog"], ["cat"]), start=1)
]
ARGILLA = [
    {
        "id": str(number),
        "fields": {"text": f"text number {number}"},
        "metadata": {"size": number},
        "vectors": {"v": [0.5, float(number)]},
        "responses": {"kind": [{"value": name, "user_id": "u"} for name in names]},
        "suggestions": {"kind": {"value": names[0], "score": 0.5}},
    }
    for number, names in enumerate((["cat", "dog"], ["dog"], ["cat"]), start=1)
]


def _understood(table: Table, options: Options | None = None) -> None:
    """Go on to where the matching would begin, and write the rows out again."""
    options = options or Options()
    prepare(table, guess_roles(table, options), options)
    answers = {"added": ["é"] * len(table.frame)}
    if table.encoding in ("utf-8", "utf-16"):
        write_table(table, answers, scratch("output") / "table")


def _read_delimited(data: bytes) -> None:
    format, delimiter, encoding = WAYS[(data[0] if data else 0) % len(WAYS)]
    path = written("delimited", "table", data[1:])
    _understood(read_table(path, format=format, delimiter=delimiter, encoding=encoding))


def _delimited_seeds() -> list[bytes]:
    seeds = []
    for place, (format, delimiter, encoding) in enumerate(WAYS):
        mark = delimiter or ("\t" if format == "tsv" else ",")
        text = "\n".join(line.replace(",", mark) for line in LINES)
        seeds.append(bytes([place]) + text.encode(encoding or "utf-8"))
    flags = "id,x,label_cat,label_dog\na,1,1,0\nb,2,1,1\nc,3.5,0,1\n"
    return [*seeds, b"\0" + flags.encode(), b'\0id,x,tags\n1,2,"[""a"", ""b""]"\n2,3,"[""a""]"\n']


def _read_json(data: bytes) -> None:
    _understood(read_table(written("json", "table.json", data)))


def _read_json_lines(data: bytes) -> None:
    _understood(read_table(written("jsonl", "table.jsonl", data)))


def _json_seeds() -> list[bytes]:
    return [json.dumps(records).encode() for records in (RECORDS, LABEL_STUDIO, ARGILLA)]


def _json_lines_seeds() -> list[bytes]:
    return [
        "\n".join(map(json.dumps, records)).encode() for records in (RECORDS, LABEL_STUDIO, ARGILLA)
    ]


def _read_parquet(data: bytes) -> None:
    _understood(read_table(written("parquet", "table.parquet", data)))


def _parquet_seeds() -> list[bytes]:
    frame = pd.DataFrame(RECORDS)
    seeds = []
    for columns, compression in ((["id", "size", "tags"], None), (list(frame), "snappy")):
        file = io.BytesIO()
        frame[columns].to_parquet(file, compression=compression, index=False)
        seeds.append(file.getvalue())
    return seeds


_ITEMS = table_from_frame(pd.DataFrame({"id": ["a1", "a2", "a3"], "size": [1.0, 2.0, 4.0]}))


def _read_votes(data: bytes) -> None:
    options = Options(votes=written("votes", "votes.csv", data), min_share=0.2)
    roles = guess_roles(_ITEMS, options)
    sets = label_sets(_ITEMS, roles, options, row_ids(_ITEMS, roles))
    assert sets.mask.any(axis=1).all()


def _votes_seeds() -> list[bytes]:
    return [
        b"item,label,annotator\na1,cat,x\na1,dog,y\na2,dog,x\na3,cat,z\na3,cat,z\n",
        b"id;vote\na1;cat\na1;dog\na2;dog\na3;cat\nb9;cat\n",
    ]


#: How cells are divided, chosen by the first byte; None is guessed.
SEPARATORS = (None, "|", ";", ",", "/", "json")


def _read_cells(data: bytes) -> None:
    separator = SEPARATORS[(data[0] if data else 0) % len(SEPARATORS)]
    cells = data[1:].decode("utf-8", "surrogateescape" if data[:1] > b"\x80" else "replace")
    frame = pd.DataFrame({"sets": pd.Series(cells.split("\n"), dtype=object)})
    frame["size"] = range(len(frame))
    options = Options(candidates=("sets",), separator=separator, empty="all")
    table = table_from_frame(frame)
    sets = prepare(table, guess_roles(table, options), options).sets
    assert sets.mask.any(axis=1).all()
    assert len(set(sets.classes.tolist())) == len(sets.classes)


def _cells_seeds() -> list[bytes]:
    return [
        b"\0cat|dog\ndog\ncat",
        b"\0cat;dog\ndog\n",
        b'\5["cat", "dog"]\n["dog"]\n[1, 2.5, null, true]',
        b"\3cat, dog\n dog\ncat,",
    ]


#: Endings of packed tables; the first byte chooses one, and whether the input is packed here.
PACKED = ((".csv.gz", "gzip"), (".csv.zst", "zstd"), (".jsonl.gz", "gzip"))


def _packed(raw: bytes, compression: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as stream:
        stream.write(raw)
    return sink.getvalue().to_pybytes()


def _read_packed(data: bytes) -> None:
    first = data[0] if data else 0
    ending, compression = PACKED[first % len(PACKED)]
    raw = _packed(data[1:], compression) if first % 2 else data[1:]
    _understood(read_table(written("packed", f"table{ending}", raw)))


def _packed_seeds() -> list[bytes]:
    text = "\n".join(LINES).encode()
    records = "\n".join(map(json.dumps, RECORDS)).encode()
    ready = [b"\0" + _packed(text, "gzip"), b"\4" + _packed(text, "zstd")]
    return [*ready, b"\3" + text, b"\1" + text, b"\5" + records]


def _read_excel(data: bytes) -> None:
    _understood(read_table(written("excel", "table.xlsx", data)))


def _excel_seeds() -> list[bytes]:
    seeds = []
    for columns in (["id", "size"], ["id", "size", "text"]):
        file = io.BytesIO()
        frame = pd.DataFrame(RECORDS)[columns]
        frame.assign(tags=["cat|dog", "dog", "cat|dog"], open=[True, False, None]).to_excel(
            file, index=False
        )
        seeds.append(file.getvalue())
    return seeds


def _inside(name: str) -> Mutator:
    return xml_changed if name.endswith((".xml", ".rels")) else bytes_changed


PRODIGY = [
    {
        "text": f"text number {number} is here",
        "meta": {"size": number},
        "options": [{"id": "cat", "text": "Cat"}],
        "accept": [name],
        "answer": "accept",
        "_input_hash": number,
        "_annotator_id": who,
    }
    for number, name, who in ((1, "cat", "a"), (1, "dog", "b"), (2, "dog", "a"), (3, "cat", "b"))
]
DOCCANO = [
    {"id": 1, "text": "the first of them", "label": ["cat", "dog"], "Comments": []},
    {"id": 2, "text": "another one of them", "label": ["dog"], "Comments": []},
    {"id": 3, "text": "a third one is here", "label": [[0, 1, "cat"]], "size": 2},
]
DOCCANO_USERS = [
    {"id": n, "text": f"text number {n} is here", "annotations": [{"label": k, "user": u}]}
    for n, k, u in ((1, 1, 1), (1, 2, 2), (2, 2, 1), (3, 1, 2))
]
CVAT = [
    {"version": "1.1"},
    {"name": "a.jpg", "width": 640, "tags": [{"label": "cat"}, {"label": "dog"}]},
    {"name": "b.jpg", "width": 320, "assignee": "ada", "shapes": [{"label": "dog"}]},
    {"name": "c.jpg", "width": 330, "tags": [{"label": {"name": "cat"}}]},
]
CVAT_FRAMES = {
    "version": 0,
    "tags": [{"frame": n, "label_id": n % 2} for n in range(3)],
    "shapes": [{"type": "mask", "frame": 0, "label_id": 1}],
}
DATUMARO = {
    "categories": {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}},
    "items": [
        {"id": str(n), "attr": {"size": n}, "annotations": [{"label_id": n % 2}, {"label_id": 1}]}
        for n in range(3)
    ],
}


def _read_exports(data: bytes) -> None:
    _understood(read_table(written("exports", "table.json", data)))


def _exports_seeds() -> list[bytes]:
    exports = (PRODIGY, DOCCANO, DOCCANO_USERS, CVAT, CVAT_FRAMES, DATUMARO)
    return [json.dumps(export).encode() for export in exports]


_LABELLED = table_from_frame(
    pd.DataFrame({"size": [1.0, 2.0, 4.0], "tags": ["cat|Dog", "dog", "CAT|d\u00f6g"]})
)


def _read_renames(data: bytes) -> None:
    ending = (".csv", ".json")[(data[0] if data else 0) % 2]
    path = written("renames", f"names{ending}", data[1:])
    options = Options(rename=[str(path)], merge_labels=bool(data and data[0] & 2), empty="all")
    sets = prepare(_LABELLED, guess_roles(_LABELLED, options), options).sets
    assert sets.mask.any(axis=1).all()


def _renames_seeds() -> list[bytes]:
    return [
        b"\0old,new\nDog,dog\nCAT,cat\n",
        b"\2old,new\nDOG,hound\n",
        b'\1{"Dog": "dog", "cat": "kitty"}',
        b'\3[{"old": "Dog", "new": "dog"}]',
    ]


def _read_annotators(data: bytes) -> None:
    table = read_table(written("annotators", "table.csv", data))
    named = tuple(name for name in table.frame.columns if name not in ("size", "id"))
    chosen = named if len(data) % 2 else ()
    _understood(table, Options(annotators=chosen, merge_labels=len(data) % 3 == 0, empty="all"))


def _annotators_seeds() -> list[bytes]:
    rows = "".join(
        f"{n},{'cat' if n % 2 else 'dog'},{'Cat' if n % 3 else 'dog'}\n" for n in range(9)
    )
    return [
        ("size,anna,ben\n" + rows).encode(),
        ("size,anna,ben\n" + rows + "9,,NA\n").encode(),
        ("size,rater_1,rater_2\n" + rows.replace("cat", "1").replace("dog", "2")).encode(),
    ]


_INPUT = (InputError,)
TARGETS = (
    Target(
        "delimited", _read_delimited, _delimited_seeds, _INPUT, after_the_first_byte(csv_changed)
    ),
    Target("json", _read_json, _json_seeds, _INPUT, json_changed),
    Target("jsonl", _read_json_lines, _json_lines_seeds, _INPUT, json_lines_changed),
    Target("parquet", _read_parquet, _parquet_seeds, _INPUT, parquet_changed),
    Target("votes", _read_votes, _votes_seeds, _INPUT, csv_changed),
    Target("cells", _read_cells, _cells_seeds, _INPUT, after_the_first_byte(csv_changed)),
    Target("packed", _read_packed, _packed_seeds, _INPUT, after_the_first_byte(csv_changed)),
    Target("excel", _read_excel, _excel_seeds, _INPUT, zip_changed(_inside)),
    Target("exports", _read_exports, _exports_seeds, _INPUT, json_changed),
    Target("renames", _read_renames, _renames_seeds, _INPUT, after_the_first_byte(csv_changed)),
    Target("annotators", _read_annotators, _annotators_seeds, _INPUT, csv_changed),
)
