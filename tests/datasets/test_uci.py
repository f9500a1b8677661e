"""Small tables in the repository's columns; and a miniature OpenML on the loopback address."""

import hashlib
import json
import sys

import numpy as np
import pytest

from gmpll.datasets import DatasetFormatError, DatasetUnavailableError, list_datasets, load_uci

UCI = [info for info in list_datasets() if info.kind == "uci"]


@pytest.fixture
def write_csv(tmp_path):
    def write(name, lines):
        path = tmp_path / "uci" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines))
        return path

    return write


@pytest.mark.parametrize("info", UCI, ids=lambda info: info.name)
def test_layouts_give_the_catalogues_number_of_features(info):
    layout = info.layout
    words = sum(len(words) - 1 for words in layout.categories.values())
    assert len(layout.feature_columns) == len(layout.feature_names)
    assert len(layout.feature_names) + words == info.n_features
    assert layout.class_column not in layout.feature_columns
    assert max(*layout.feature_columns, layout.class_column) == layout.n_columns - 1


def test_glass_drops_the_id_and_orders_the_labels(tmp_path, write_csv):
    write_csv("glass", ["1,1.5,13,4,1,71,0.06,8,0,0,7", "2,1.6,14,5,2,72,0.07,9,1,2,10",
                        "3,1.7,15,6,3,73,0.08,10,2,3,7"])  # fmt: skip
    bunch = load_uci("glass", tmp_path)
    np.testing.assert_array_equal(bunch.data[1], [1.6, 14, 5, 2, 72, 0.07, 9, 1, 2])
    assert bunch.feature_names[0] == "RI"
    assert bunch.target_names.tolist() == [7, 10]  # as numbers, not as words
    assert bunch.target.tolist() == [0, 1, 0]
    assert bunch.candidates is None
    assert not bunch.verified


def test_ecoli_drops_the_name(tmp_path, write_csv):
    write_csv("ecoli", ["AAT,1,2,3,4,5,6,7,pp", "ACE,2,3,4,5,6,7,8,cp"])
    bunch = load_uci("ecoli", tmp_path)
    np.testing.assert_array_equal(bunch.data, [[1, 2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 8]])
    assert bunch.target_names[bunch.target].tolist() == ["pp", "cp"]


def test_rings_are_ordered_unless_they_are_words(tmp_path, write_csv):
    write_csv("abalone", [f"M,1,2,3,4,5,6,7,{rings}" for rings in (9, 10, 29)])
    bunch = load_uci("abalone", tmp_path)
    assert bunch.ordered
    assert bunch.target_names[bunch.target].tolist() == [9, 10, 29]
    write_csv("abalone", [f"M,1,2,3,4,5,6,7,{rings}" for rings in ("few", "many")])
    assert not load_uci("abalone", tmp_path).ordered


def test_unknown_ages_become_the_median(tmp_path, write_csv):
    row = ",".join(["1"] * 33)
    write_csv("dermatology", [f"{row},{age},2" for age in ("20", "?", "30", "70", "?")])
    assert load_uci("dermatology", tmp_path).data[:, 33].tolist() == [20, 30, 30, 70, 30]


def test_sex_becomes_three_indicators(tmp_path, write_csv):
    write_csv("abalone", [f"{sex},1,2,3,4,5,6,7,9" for sex in "FIM"])
    bunch = load_uci("abalone", tmp_path)
    np.testing.assert_array_equal(bunch.data[:, :3], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(bunch.data[0, 3:], np.arange(1, 8))
    assert bunch.feature_names[:4] == ["sex=M", "sex=F", "sex=I", "length"]


def test_letter_takes_the_first_5000_unless_all_are_wanted(tmp_path, write_csv):
    rows = [f"{'AB'[i >= 5000]}," + ",".join([str(i)] * 16) for i in range(5002)]
    write_csv("letter", rows)
    some, every = load_uci("letter", tmp_path), load_uci("letter", tmp_path, all_rows=True)
    assert some.data.shape == (5000, 16)
    assert some.target_names.tolist() == ["A"]
    assert every.data[-1, 0] == 5001
    assert every.target_names.tolist() == ["A", "B"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "rows and columns, not 9 columns"),
        (["a,1,2,3,4,5,6,7"], "rows and columns, not 9 columns"),
        (["a,1,2,3,4,5,6,7,cp", "b,1,2"], "not a table of 9 columns"),
        (["name,mcg,gvh,lip,chg,aac,alm1,alm2,class"], "column 1 is not numeric"),
        (["a,1,2,3,4,5,6,?,cp"], "column 7 of line 1 is missing"),
        (["a,1,2,3,4,5,6,7,cp", "b,1,2,3,inf,5,6,7,cp"], "column 4 of line 2 is not finite"),
    ],
)
def test_refuses_what_is_malformed(tmp_path, write_csv, lines, message):
    path = write_csv("ecoli", lines)
    with pytest.raises(DatasetFormatError, match=message) as caught:
        load_uci("ecoli", tmp_path)
    assert str(path) in str(caught.value)


def test_refuses_another_sex_and_binary_junk(tmp_path, write_csv):
    path = write_csv("abalone", ["M,1,2,3,4,5,6,7,9", "X,1,2,3,4,5,6,7,9"])
    with pytest.raises(DatasetFormatError, match="column 0 of line 2 is none of M, F, I"):
        load_uci("abalone", tmp_path)
    path.write_bytes(b"\xff\xfe\x00" * 50)
    with pytest.raises(DatasetFormatError, match=r"abalone\.csv cannot be read"):
        load_uci("abalone", tmp_path)


# --- OpenML --------------------------------------------------------------------------------------


@pytest.fixture
def openml(server, monkeypatch):
    """Serve one ARFF file in the manner of OpenML's interface, to scikit-learn's own client."""
    import sklearn.datasets._openml as client

    monkeypatch.setattr(client, "_DATA_INFO", server.address + "info/{}")
    monkeypatch.setattr(client, "_DATA_FEATURES", server.address + "features/{}")
    monkeypatch.setattr(client, "_DATA_QUALITIES", server.address + "qualities/{}")
    if hasattr(client, "_OPENML_PREFIX"):  # scikit-learn 1.6 puts it before every path
        monkeypatch.setattr(client, "_OPENML_PREFIX", "")
        monkeypatch.setattr(client, "_DATA_FILE", server.address + "x.arff?{}")

    def serve(data_id, attributes, rows):
        """Attributes: (name, list of words or None for numbers); the last one is the class."""
        head = [
            f"@ATTRIBUTE {name} " + ("REAL" if words is None else "{" + ",".join(words) + "}")
            for name, words in attributes
        ]
        arff = "\n".join(["@RELATION x", *head, "@DATA", *rows]).encode()
        features = [
            {
                "index": str(index),
                "name": name,
                "data_type": "numeric" if words is None else "nominal",
                "is_target": "true" if index == len(attributes) - 1 else "false",
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for index, (name, words) in enumerate(attributes)
        ]
        info = {
            "id": str(data_id),
            "name": "x",
            "version": "1",
            "description": "x",
            "format": "ARFF",
            "status": "active",
            "url": server.address + "x.arff",
            "file_id": "1",
            "md5_checksum": hashlib.md5(arff, usedforsecurity=False).hexdigest(),
        }
        quality = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
        replies = {
            f"/info/{data_id}": {"data_set_description": info},
            f"/features/{data_id}": {"data_features": {"feature": features}},
            f"/qualities/{data_id}": {"data_qualities": {"quality": quality}},
        }
        for path, reply in replies.items():
            server.serve(path, json.dumps(reply).encode())
        server.serve("/x.arff", arff)

    serve.server = server
    return serve


def test_openml_words_and_numbers_arrive_unchanged(tmp_path, openml, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # it is not needed
    attributes = [("Sex", ["F", "I", "M"]), *[(f"a{i}", None) for i in range(7)]]
    attributes.append(("rings", ["9", "10"]))
    openml(183, attributes, ["M,0.455,0.1,3,4,5,6,1e-17,9", "I,1,2,3,4,5,6,7,10"])
    bunch = load_uci("abalone", tmp_path)
    np.testing.assert_array_equal(bunch.data[0], [1, 0, 0, 0.455, 0.1, 3, 4, 5, 6, 1e-17])
    np.testing.assert_array_equal(bunch.data[1], [0, 0, 1, 1, 2, 3, 4, 5, 6, 7])
    assert bunch.target_names[bunch.target].tolist() == [9, 10]
    assert bunch.filename == str(tmp_path / "openml" / "abalone.csv")
    seen = openml.server.requests.total()
    again = load_uci("abalone", tmp_path)
    np.testing.assert_array_equal(again.data, bunch.data)
    assert openml.server.requests.total() == seen  # the kept file is used


def test_openml_unknown_values_and_dropped_columns(tmp_path, openml):
    attributes = [(f"a{i}", ["0", "1", "2"]) for i in range(33)] + [("age", None)]
    attributes.append(("class", ["1", "2"]))
    row = ",".join(["2"] * 33)
    openml(35, attributes, [f"{row},20,1", f"{row},?,2", f"{row},40,1"])
    bunch = load_uci("dermatology", tmp_path)
    assert (bunch.data[:, :33] == 2).all()
    assert bunch.data[:, 33].tolist() == [20, 30, 40]


def test_openml_glass_has_no_id_and_satimage_dotted_labels(tmp_path, openml):
    attributes = [(f"a{i}", None) for i in range(9)] + [("type", ["'build wind'", "tableware"])]
    openml(41, attributes, ["1,2,3,4,5,6,7,8,9,tableware", "2,3,4,5,6,7,8,9,10,'build wind'"])
    glass = load_uci("glass", tmp_path)
    np.testing.assert_array_equal(glass.data[0], np.arange(1, 10))
    assert glass.target_names[glass.target].tolist() == ["tableware", "build wind"]

    attributes = [(f"a{i}", None) for i in range(36)] + [("class", ["1.", "7."])]
    row = ",".join(["5"] * 36)
    openml(182, attributes, [f"{row},7.", f"{row},1."])
    satimage = load_uci("satimage", tmp_path)
    assert satimage.target_names[satimage.target].tolist() == [7, 1]


@pytest.mark.filterwarnings("ignore:A network error occurred", "ignore:Downloaded file")
def test_openml_away_or_wrong_says_which_file_to_put_where(tmp_path, openml, monkeypatch):
    import sklearn.datasets._openml as client

    monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
    with pytest.raises(DatasetUnavailableError) as caught:
        load_uci("glass", tmp_path)
    assert f"put glass.csv into {tmp_path / 'uci'}" in str(caught.value)
    openml(41, [("a", None), ("class", ["x"])], ["1,x"])
    with pytest.raises(DatasetUnavailableError, match=r"OpenML's set 41 .* it has 1 features"):
        load_uci("glass", tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_without_download_nothing_is_asked(tmp_path, server):
    with pytest.raises(DatasetUnavailableError, match=r"put vehicle\.csv into"):
        load_uci("vehicle", tmp_path, download_if_missing=False)
    assert not server.requests
