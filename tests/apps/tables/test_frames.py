import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from gmpll.apps.tables import InputError, disambiguate, resolving
from gmpll.datasets import random_candidates

METHODS_FOR_DOUBT = ["gmpll", "plknn", "ipal"]


def test_verdicts():
    shares = np.array([[0.7, 0.3], [0.0, 1.0], [0.4, 0.6]])
    mask = np.array([[True, True], [False, True], [True, True]])
    nobody = np.full(3, -1)
    found = resolving.verdicts(resolving.Matched(np.array([0, 1, 0]), shares), mask, nobody, 0.5)
    assert found.runners_up.tolist() == [1, -1, 1]
    np.testing.assert_allclose(found.margin, [0.4, 1.0, -0.2])
    assert found.review.tolist() == [True, False, True]


def test_three_lines(pets):
    frame, truth = pets
    resolved = disambiguate(frame).frame
    assert (resolved["label"] == truth).all()
    assert resolved.columns.tolist() == [
        *frame.columns,
        "label",
        "confidence",
        "runner_up",
        "margin",
        "review",
        "suggested",
        "outside",
    ]
    pd.testing.assert_frame_equal(resolved[frame.columns.tolist()], frame)


def test_what_the_columns_say(pets):
    frame, _ = pets
    resolved = disambiguate(frame, review_below=1.0).frame
    single = ~frame["tags"].str.contains("|", regex=False)
    assert (resolved["confidence"][single] == 1).all()
    assert (resolved["runner_up"][single] == "").all()
    assert not resolved["review"][single].any()
    both = resolved[~single]
    assert set(both["label"] + "|" + both["runner_up"]) <= {"cat|dog", "dog|cat"}
    np.testing.assert_allclose(both["confidence"] * 2 - 1, both["margin"], atol=1e-6)
    assert (both["review"] == (both["margin"] < 1)).all()


def doubtful_digits():
    """Return digits with a wrong label in most sets, as a frame, and their true labels."""
    digits = load_digits()
    X, y = digits.data[:600], digits.target[:600]
    sets = random_candidates(y, p=0.8, r=2, random_state=0)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    frame["tags"] = ["|".join(np.flatnonzero(row).astype(str)) for row in sets]
    return frame, y.astype(str)


def test_confidences_estimate_how_often_labels_are_right():
    frame, truth = doubtful_digits()
    resolved = disambiguate(frame)
    ambiguous = frame["tags"].str.contains("|", regex=False)
    right = (resolved["label"] == truth)[ambiguous]
    assert abs(resolved["confidence"][ambiguous].mean() - right.mean()) < 0.05
    assert (resolved["margin"] >= 0).all()
    doubtful = (resolved["margin"] < 0.5) | (resolved["outside"] > 0.5)
    assert (resolved["review"] == doubtful).all()


@pytest.mark.parametrize("method", ["plknn", "gm-pll"])
def test_where_confidences_are_not_calibrated_fewer_rows_are_flagged(method):
    frame, _ = doubtful_digits()
    resolved = disambiguate(frame, method=method)
    ambiguous = frame["tags"].str.contains("|", regex=False)
    assert (resolved["review"] == (ambiguous & (resolved["margin"] < 0.25))).all()


def test_the_index_and_taken_names_survive(pets):
    frame, truth = pets
    frame = frame.assign(label="mine").set_index(np.arange(60) * 2)
    resolved = disambiguate(frame).frame
    assert (resolved["label"] == "mine").all()
    assert (resolved["resolved_label"] == truth).all()
    assert resolved.index.tolist() == frame.index.tolist()


def test_labels_that_are_numbers_stay_numbers(pets):
    frame, truth = pets
    number = {"cat": 3, "dog": 7}
    frame = frame.assign(tags=[[number[t] for t in tags.split("|")] for tags in frame["tags"]])
    assert disambiguate(frame)["label"].tolist() == [number[t] for t in truth]


def test_votes_and_embeddings(pets):
    frame, truth = pets
    votes = pd.DataFrame(
        [
            (i, t)
            for i, tags in zip(frame["id"], frame["tags"], strict=True)
            for t in tags.split("|")
        ],
        columns=["item", "label"],
    )
    vectors = list(frame[["size", "weight", "age"]].to_numpy())
    bare = pd.DataFrame({"id": frame["id"], "vector": vectors})
    assert (disambiguate(bare, votes=votes)["label"] == truth).all()


@pytest.mark.parametrize("method", METHODS_FOR_DOUBT)
def test_other_methods(pets, method):
    frame, truth = pets
    assert (disambiguate(frame, method=method)["label"] == truth).mean() > 0.9


def test_known_labels_are_kept_even_if_unlikely(pets):
    frame, truth = pets
    wrong = np.where(truth == "cat", "dog", "cat")
    frame = frame.assign(gold=[w if i == 1 else "" for i, w in enumerate(wrong)])
    resolved = disambiguate(frame)
    assert resolved["label"][1] == wrong[1]
    assert (resolved["label"][2:] == truth[2:]).all()


def test_truth_does_not_leak(pets):
    """A column of the answer's name is not looked at."""
    frame, truth = pets
    noise = np.random.default_rng(1).normal(size=60)
    blind = pd.DataFrame({"noise": noise, "tags": frame["tags"]})
    told = blind.assign(truth=truth, target=(truth == "cat").astype(int))
    assert disambiguate(told)["label"].tolist() == disambiguate(blind)["label"].tolist()


def test_the_same_twice(pets):
    frame, _ = pets
    pd.testing.assert_frame_equal(disambiguate(frame).frame, disambiguate(frame).frame)


def test_an_error_is_a_value_error(pets):
    frame, _ = pets
    assert issubclass(InputError, ValueError)
    with pytest.raises(ValueError, match="has no column 'nothing'"):
        disambiguate(frame, "nothing")


def test_what_comes_back(pets, tmp_path):
    frame, _ = pets
    frame = frame.drop(columns="id").set_index(pd.Index([f"pet-{i}" for i in range(60)]))
    frame.loc["pet-7", "size"] = np.nan
    result = disambiguate(frame, method="plknn", review_below=1.0)
    assert result.frame.index.tolist() == frame.index.tolist()
    assert result["label"].equals(result.frame["label"])
    assert len(result) == 60
    assert "label" in result
    assert list(result) == result.frame.columns.tolist()
    assert "1 number is missing" in result.notes[0]
    assert result.model.labels_.tolist() == result["label"].tolist()
    assert result.annotators is None
    page = result.report(tmp_path / "report.html")
    assert page == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<span class="rowid">pet-1</span>' in page, "rows are named by their index"
    assert "1 number is missing" in page
    assert "1 number is missing" in result._repr_html_()


def test_rows_are_named_by_their_index_where_it_tells_them_apart(pets):
    frame, truth = pets
    frame = frame.drop(columns="id").set_index(pd.Index([f"pet-{i}" for i in range(60)]))
    with pytest.raises(InputError, match=r"Row 4 \(id 'pet-3'\) has no candidate"):
        disambiguate(frame.assign(tags=frame["tags"].where(frame.index != "pet-3", "")))
    votes = pd.DataFrame({"item": frame.index, "label": truth})
    votes = pd.concat([votes, votes[:3].assign(label="cow")])
    found = disambiguate(frame.drop(columns="tags"), votes=votes, method="plknn")
    assert (found["label"][3:] == truth[3:]).all(), "items are the index"
    twice = disambiguate(frame.set_index(pd.Index(["x"] * 60)), method="plknn")
    assert '<span class="rowid">2</span>' in twice.report(), "else by their number"


@pytest.mark.parametrize("data", [[1, 2], {"size": [1.0], "tags": ["a"]}, None])
def test_anything_but_a_frame_is_a_type_error(data):
    with pytest.raises(TypeError, match="must be a pandas DataFrame"):
        disambiguate(data)


def test_sentences_name_parameters():
    frame = pd.DataFrame({"size": [1.0, 2, 3], "tags": ["a|b", "", "b"]})
    with pytest.raises(InputError, match="use empty='all' to let it"):
        disambiguate(frame)
    with pytest.raises(
        InputError, match="name the columns of annotators with annotators=, or give votes="
    ):
        disambiguate(frame[["size"]])
