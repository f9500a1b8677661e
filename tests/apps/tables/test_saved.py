import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gmpll import PartialLabelClassifier
from gmpll.apps.tables import InputError, read_matching, rematch
from gmpll.apps.tables.saved import load_model, save_model


@pytest.fixture(name="folder")
def _folder(finished_run):
    return finished_run


def test_everything_comes_back(folder, pets):
    frame, truth = pets
    saved = read_matching(folder)
    assert saved.ids.tolist() == frame["id"].tolist()
    assert saved.classes.tolist() == ["cat", "dog"]
    assert (saved.classes[saved.labels] == truth).all()
    assert [saved.classes[row].tolist() for row in saved.mask] == frame["tags"].str.split(
        "|"
    ).tolist()
    assert (saved.gold == -1).all()
    np.testing.assert_allclose(saved.confidence.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(saved.features, frame[["size", "weight", "age"]], atol=1e-6)
    assert json.loads(str(saved.display[3]))["id"] == "003"
    assert saved.source == str(folder.parent / "in.csv")
    assert json.loads(saved.settings)["method"] == "gmpll"
    assert (saved.text_column, saved.image_column) == ("", "")


def test_the_file_has_the_agreed_layout(folder):
    with np.load(folder / "matching.npz", allow_pickle=False) as file:
        assert int(file["format"]) == 1
        assert file["confidence"].dtype == file["features"].dtype == np.float32
        assert file["mask"].dtype == bool
        assert file["ids"].dtype.kind == file["display"].dtype.kind == "U"


def test_matching_again_without_news_changes_nothing(folder):
    saved = read_matching(folder)
    again = rematch(saved, {})
    assert (again.labels == saved.labels).all()
    np.testing.assert_allclose(again.confidence, saved.confidence, atol=1e-6)


def test_matching_again_obeys_and_spreads_decisions(folder):
    saved = read_matching(folder)
    rows = np.flatnonzero(saved.classes[saved.labels] == "cat")
    turned = rematch(saved, {int(row): 1 for row in rows[:-1]})
    assert (turned.labels[rows[:-1]] == 1).all()
    assert (turned.gold[rows[:-1]] == 1).all()
    assert turned.mask[rows[:-1]].sum(axis=1).tolist() == [1] * (len(rows) - 1)
    assert (saved.gold == -1).all(), "what was saved stays as it was"


@pytest.mark.parametrize("gold", [{-1: 0}, {60: 0}, {0: 2}, {0: -1}])
def test_decisions_outside_are_refused(folder, gold):
    with pytest.raises(InputError, match="There is no"):
        rematch(read_matching(folder), gold)


def test_a_damaged_or_foreign_file_is_a_sentence(finished_run, tmp_path):
    with pytest.raises(InputError, match=r"holds no matching\.npz"):
        read_matching(tmp_path)
    folder, path = tmp_path, tmp_path / "matching.npz"
    content = (finished_run / "matching.npz").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="damaged"):
        read_matching(folder)
    np.savez(path, format=np.asarray(99))
    with pytest.raises(InputError, match="is not in format 1"):
        read_matching(folder)
    np.savez(path, format=np.asarray(1))
    with pytest.raises(InputError, match="lacks"):
        read_matching(folder)


def test_the_model_predicts_as_before(folder):
    saved, model = read_matching(folder), load_model(folder)
    assert (model.model.predict(saved.features) == saved.classes[saved.labels]).all()


def test_a_forest_and_a_readout_come_back(folder, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = PartialLabelClassifier(
        hyperparameters={"forest": 0.5, "stacking": 1.0}, random_state=0
    ).fit(X[::2], y[::2])
    save_model(replace(load_model(folder), model=model), tmp_path / "model.skops")
    again = load_model(tmp_path).model
    assert again.selected_["forest"] == 0.5
    assert again.selected_["stacking"] == 1.0
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_model_with_foreign_types_is_not_loaded(tmp_path):
    from pathlib import PurePath

    from skops.io import dump

    dump({"format": 1, "model": PurePath}, tmp_path / "model.skops")
    with pytest.raises(InputError, match="no part of a gmpll model"):
        load_model(tmp_path)
    dump({"format": 2}, tmp_path / "model.skops")
    with pytest.raises(InputError, match="is not in format 1"):
        load_model(tmp_path)
    (tmp_path / "model.skops").write_bytes(b"junk")
    with pytest.raises(InputError, match="damaged"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="There is no model"):
        load_model(tmp_path / "nowhere")
