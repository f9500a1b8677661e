"""Candidate sets that lack the right label: columns, flags, notes, what a review needs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables import InputError, read_matching, rematch
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.page import page_facts, render_page
from gmpll.apps.tables.resolving import prepare, resolve, result_columns
from gmpll.apps.tables.saved import saved_matching, write_matching
from gmpll.apps.tables.summary import sentences
from gmpll.apps.tables.tables import table_from_frame

NAMES = np.array(["cat", "cow", "dog"])
LACKING = [3, 30, 45, 77]
ALONE = 30  # its one candidate is wrong


@pytest.fixture(scope="module")
def world():
    """Three clouds of points with two candidates each, of which some lack the right one."""
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    frame = pd.DataFrame((np.eye(3)[truth] * 5 + rng.normal(size=(90, 3)) * 0.4).round(3))
    wrong = (truth + rng.integers(1, 3, 90)) % 3
    sets = [{t, w} if i % 3 else {t} for i, (t, w) in enumerate(zip(truth, wrong, strict=True))]
    for row in LACKING:
        sets[row] = {(truth[row] + 1) % 3, (truth[row] + 2) % 3}
    sets[ALONE] = {(truth[ALONE] + 1) % 3}
    return frame.assign(tags=["|".join(NAMES[sorted(s)]) for s in sets]), NAMES[truth]


def resolution_of(frame, **options):
    options = Options(**options)
    table = table_from_frame(frame)
    return resolve(prepare(table, guess_roles(table, options), options))


@pytest.fixture(scope="module")
def found(world):
    return resolution_of(world[0])


def columns_of(resolution):
    sets = resolution.prepared.sets
    return pd.DataFrame(result_columns(resolution.verdicts, sets.classes, set()))


def test_the_results_have_the_suggestion_and_how_probable_it_is(found, world):
    results, truth = columns_of(found), world[1]
    assert results.columns.tolist()[-2:] == ["suggested", "outside"]
    lacks = np.isin(np.arange(90), LACKING)
    assert (results["suggested"] == truth).all()
    assert (results["label"] != truth)[lacks].all(), "labels stay within the sets"
    assert (results["outside"][lacks] > 0.5).all()
    assert (results["outside"][~lacks] < 0.5).all()
    np.testing.assert_allclose(results["outside"], found.model.outside_probability_, atol=1e-4)


def test_they_go_to_review_even_with_one_candidate(found):
    results = columns_of(found)
    assert results["review"][LACKING].all()
    assert results["runner_up"][ALONE] == ""
    assert not results["review"].drop(LACKING).any()


def test_the_summary_says_how_many(found):
    assert any(
        "4 rows probably lack the right label" in text and "--outside never" in text
        for text in sentences(found)
    )


def test_the_report_shows_what_is_suggested(found, world):
    facts = page_facts(found, saved_matching(found).display)
    assert facts["n_lacking"] == 4
    rows = {row.id: row for row in facts["doubtful"]}
    row = rows[str(ALONE + 1)]
    assert row.suggested == row.candidates[0].name == world[1][ALONE]
    assert row.candidates[0].share == pytest.approx(row.outside)
    page = " ".join(render_page(facts).split())
    assert f"probably <b>{row.suggested}</b>" in page
    assert "4 rows probably lack the right label among the candidates" in page


def test_sets_that_are_complete_are_believed(world):
    never = resolution_of(world[0], outside="never")
    assert "outside" not in columns_of(never)
    assert not never.verdicts.review[ALONE]
    assert never.n_lacking == 0
    assert "outside" not in columns_of(resolution_of(world[0], method="plknn"))


def test_nothing_impossible_is_suggested(world):
    frame, truth = world
    frame = frame.assign(never=["" if i != ALONE else truth[ALONE] for i in range(90)])
    assert "suggested" not in columns_of(resolution_of(frame, impossible="never"))


def test_a_known_label_is_not_in_doubt(world):
    frame, truth = world
    wrong = NAMES[(np.searchsorted(NAMES, truth[ALONE]) + 1) % 3]
    frame = frame.assign(gold=[wrong if i == ALONE else "" for i in range(90)])
    results = columns_of(resolution_of(frame))
    assert (results["label"][ALONE], results["suggested"][ALONE]) == (wrong, wrong)
    assert results["outside"][ALONE] == 0
    assert not results["review"][ALONE]


def test_the_matching_keeps_them(found, tmp_path):
    write_matching(saved_matching(found), tmp_path / "matching.npz")
    saved = read_matching(tmp_path)
    assert np.flatnonzero(saved.lacking).tolist() == LACKING
    assert (saved.suggested == found.verdicts.suggested).all()
    again = rematch(saved, {ALONE: int(saved.suggested[ALONE])})
    assert np.flatnonzero(again.lacking).tolist() == [row for row in LACKING if row != ALONE]


@pytest.mark.parametrize(
    ("name", "value"), [("outside", 1.5), ("outside", np.nan), ("suggested", 3)]
)
def test_damaged_suggestions_are_refused(found, name, value, tmp_path):
    saved = saved_matching(found)
    array = np.array(getattr(saved, name))
    array[4] = value
    write_matching(replace(saved, **{name: array}), tmp_path / "matching.npz")
    with pytest.raises(InputError, match="damaged"):
        read_matching(tmp_path)
