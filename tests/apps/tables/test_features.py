import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import (
    FeatureEncoder,
    FeatureTable,
    embeddings_of_column,
    feature_table,
    read_embeddings,
)
from gmpll.apps.tables.guesses import Roles
from gmpll.apps.tables.tables import read_table, table_from_frame

IDS = np.array(["a", "b", "c"])
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_a_mix_of_everything():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 8.0],
            "note": ["red fox runs", "red fox sleeps", "blue whale swims", None],
            "kind": ["x", "y", "x", None],
        }
    )
    encoder = FeatureEncoder(("size",), ("note",), ("kind",))
    table = FeatureTable(frame, (np.ones((4, 2), np.float32),))
    features = encoder.fit(table).encode(table)
    assert features.dtype == np.float32
    assert features[:, 0].tolist() == [1, 3, 3, 8]  # the median of 1, 3 and 8
    assert features[:, -2:].tolist() == [[1, 1]] * 4
    assert sorted(map(tuple, features[:, -5:-2])) == sorted(
        [(0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
    )
    texts = features[:, 1:-5]
    assert texts[0] @ texts[1] > texts[0] @ texts[2] + 0.2
    unseen = FeatureTable(frame.assign(kind="never seen"), table.vectors)
    assert encoder.encode(unseen)[:, -5:-2].tolist() == [[0, 0, 0]] * 4


def test_numbers_and_categories_in_order():
    frame = pd.DataFrame({"size": [1.0, None, 3.0], "kind": ["a", "b", "a"]})
    encoder = FeatureEncoder(numeric=("size",), categorical=("kind",))
    features = encoder.fit(FeatureTable(frame, ())).encode(FeatureTable(frame, ()))
    assert features.tolist() == [[1, 1, 0], [2, 0, 1], [3, 1, 0]]


def test_blocks_do_not_change_the_result(monkeypatch):
    frame = pd.DataFrame({"size": np.arange(10.0), "kind": list("ab" * 5)})
    table = FeatureTable(frame, ())
    encoder = FeatureEncoder(("size",), (), ("kind",)).fit(table)
    whole = encoder.encode(table)
    monkeypatch.setattr("gmpll.apps.tables.features._BLOCK_ROWS", 3)
    np.testing.assert_array_equal(encoder.encode(table), whole)


def test_missing_columns_and_other_embeddings_are_refused():
    frame = pd.DataFrame({"size": [1.0, 2.0]})
    encoder = FeatureEncoder(("size",)).fit(FeatureTable(frame, (VECTORS[:2],)))
    with pytest.raises(InputError, match="no column 'size'"):
        feature_table(
            table_from_frame(frame.rename(columns=str.upper)), Roles(numeric=("size",)), IDS[:2]
        )
    with pytest.raises(InputError, match=r"2.* dimensions but got \[1\]"):
        encoder.encode(FeatureTable(frame, (VECTORS[:2, :1],)))


def test_missing_numbers_are_counted():
    frame = pd.DataFrame({"size": [1.0, np.nan, np.nan]})
    table = feature_table(table_from_frame(frame), Roles(numeric=("size",)), IDS)
    assert "2 numbers are missing" in table.problems[0]


def encoded(encoder, path, text):
    path.write_text(text)
    table = read_table(path)
    roles = Roles(numeric=encoder.numeric, text=encoder.text, categorical=encoder.categorical)
    return encoder.encode(feature_table(table, roles, np.arange(len(table.frame)), fixed=True))


def test_a_category_does_not_depend_on_the_other_rows(tmp_path):
    frame = pd.DataFrame({"code": ["1", "2", "x"]})
    encoder = FeatureEncoder(categorical=("code",)).fit(FeatureTable(frame, ()))
    expected = np.eye(3)[:2]
    path = tmp_path / "a.csv"
    for text in ("id,code\na,1\nb,2\n", "id,code\na,1.0\nb,2.0\n"):
        np.testing.assert_array_equal(encoded(encoder, path, text), expected)
    np.testing.assert_array_equal(encoded(encoder, path, "id,code\na,1\nb,2\nc,\n")[:2], expected)
    lines = tmp_path / "a.jsonl"
    for text in ('{"code": 1}\n{"code": 2}\n', '{"code": "1"}\n{"code": 2.0}\n'):
        np.testing.assert_array_equal(encoded(encoder, lines, text), expected)
    np.testing.assert_array_equal(
        encoder.encode(FeatureTable(pd.DataFrame({"code": [1, 2]}), ())), expected
    )


def test_truth_values_are_one_category_however_they_are_written(tmp_path):
    frame = pd.DataFrame({"flag": ["true", "false", "true"]})
    encoder = FeatureEncoder(categorical=("flag",)).fit(FeatureTable(frame, ()))
    expected = np.array([[0.0, 1.0], [1.0, 0.0]])
    for yes, no in (("true", "false"), ("TRUE", "FALSE"), ("1", "0"), ("1.0", "0.0")):
        text = f"id,flag\na,{yes}\nb,{no}\n"
        np.testing.assert_array_equal(encoded(encoder, tmp_path / "a.csv", text), expected)
    text = '{"flag": true}\n{"flag": false}\n'
    np.testing.assert_array_equal(encoded(encoder, tmp_path / "a.jsonl", text), expected)


def test_numbers_in_a_text_column_are_words(tmp_path):
    frame = pd.DataFrame({"note": ["12 34", "12", "34 or 56", "56"]})
    encoder = FeatureEncoder(text=("note",)).fit(FeatureTable(frame, ()))
    alone = encoded(encoder, tmp_path / "a.csv", "id,note\na,12\n")
    np.testing.assert_allclose(alone, encoder.encode(FeatureTable(frame[1:2], ())), atol=1e-6)


def test_embedding_files(tmp_path):
    np.save(tmp_path / "a.npy", VECTORS)
    np.savez(tmp_path / "b.npz", ids=IDS[::-1], embeddings=VECTORS[::-1], other=np.ones(2))
    frame = pd.DataFrame({"id": IDS[::-1], "x": VECTORS[::-1, 0], "y": VECTORS[::-1, 1]})
    frame.to_parquet(tmp_path / "c.parquet")
    pd.DataFrame({"vector": list(VECTORS)}).to_parquet(tmp_path / "d.parquet")
    for name in ("a.npy", "b.npz", "c.parquet", "d.parquet"):
        np.testing.assert_array_equal(read_embeddings(tmp_path / name, IDS), VECTORS)


def test_embedding_files_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "two.npz", p=VECTORS, q=VECTORS)
    np.savez(tmp_path / "ids.npz", ids=np.array(["a", "b", "x"]), X=VECTORS)
    np.save(tmp_path / "flat.npy", np.ones(3))
    pd.DataFrame({"s": ["x"]}).to_parquet(tmp_path / "s.parquet")
    for name, words in {
        "two.npz": "the arrays p, q",
        "ids.npz": "no embedding for the id 'c'",
        "flat.npy": "the shape",
        "s.parquet": "no column of numbers",
    }.items():
        with pytest.raises(InputError, match=words):
            read_embeddings(tmp_path / name, IDS)


def test_columns_of_vectors():
    np.testing.assert_array_equal(embeddings_of_column(pd.Series(list(VECTORS)), "v"), VECTORS)
    with pytest.raises(InputError, match="row 1 has 2 numbers, row 2 has 3"):
        embeddings_of_column(pd.Series([[1.0, 2.0], [1.0, 2.0, 3.0]]), "v")
    with pytest.raises(InputError, match="lists of numbers"):
        embeddings_of_column(pd.Series([[1.0, "x"], [1.0, 2.0]]), "v")


def test_a_feature_tells_where_much_is_missing(tmp_path):
    half = np.where(np.arange(40) % 2, np.nan, 1.0 + np.arange(40))
    few = np.where(np.arange(40) == 7, np.nan, np.arange(40) / 3)
    frame = pd.DataFrame({"half": half, "few": few})
    table = feature_table(
        table_from_frame(frame), Roles(numeric=("half", "few")), np.arange(40).astype(str)
    )
    assert table.problems == (
        "21 numbers are missing: the median of the column stands in, and a feature tells where of "
        "half; fill them, or leave columns out with --exclude",
    )
    encoder = FeatureEncoder(("half", "few")).fit(table)
    features = encoder.encode(table)
    assert features.shape == (40, 3)
    np.testing.assert_array_equal(features[:, 2], np.isnan(half))
    one = FeatureTable(frame[1:2].reset_index(drop=True), ())
    np.testing.assert_array_equal(encoder.encode(one)[0], features[1])
