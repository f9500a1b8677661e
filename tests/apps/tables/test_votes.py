"""Votes of named annotators: every annotator is modelled, and what counted is said."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gmpll import PartialLabelClassifier, candidates_from_votes
from gmpll.apps.review.session import open_review
from gmpll.apps.tables import InputError, disambiguate, read_matching, rematch
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.page import page_facts, render_page
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.saved import load_model, saved_matching, write_matching
from gmpll.apps.tables.summary import annotator_table, sentences
from gmpll.apps.tables.tables import read_table, table_from_frame

NAMES = np.array(["cat", "cow", "dog"])
CARE = {"=ada": 0.95, "ben": 0.8, "<b>cleo": 0.6, "eve": 0.0}  # eve votes against the truth
ALONE = "The features add nothing to the votes: labels come from the votes alone."


def world(spread, n=150):
    """Animals with three votes each; features tell them apart unless they spread far."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    points = np.eye(3)[truth] * 3 + rng.normal(size=(n, 3)) * spread
    frame = pd.DataFrame(points.round(4), columns=["size", "weight", "age"])
    frame.insert(0, "id", [f"i{row}" for row in range(n)])
    votes = [
        (f"i{row}", NAMES[label if rng.random() < CARE[who] else (label + 1) % 3], who)
        for row, label in enumerate(truth)
        for who in rng.choice(list(CARE), 3, replace=False)
    ]
    return frame, pd.DataFrame(votes, columns=["item", "label", "annotator"]), NAMES[truth]


def resolution_of(frame, **options):
    options = Options(**options)
    table = table_from_frame(frame)
    return resolve(prepare(table, guess_roles(table, options), options))


def page_of(resolution):
    return render_page(page_facts(resolution, saved_matching(resolution).display))


@pytest.fixture(scope="module")
def clear():
    frame, votes, truth = world(0.4)
    return resolution_of(frame, votes=votes), frame, votes, truth


@pytest.fixture(scope="module")
def noisy():
    frame, votes, truth = world(50.0)
    return resolution_of(frame, votes=votes), frame, votes, truth


def test_it_is_the_model_of_annotators(clear):
    resolution, frame, votes, truth = clear
    sets = candidates_from_votes(votes["item"], votes["label"], votes["annotator"])
    model = PartialLabelClassifier(random_state=0).fit(resolution.features, sets)
    found = resolution.prepared.sets.classes[resolution.verdicts.labels]
    assert (sets.items == frame["id"]).all()
    assert (found == model.labels_).all()
    assert (found == truth).all(), "although every fourth vote is against the truth"
    counted = disambiguate(frame, votes=votes.drop(columns="annotator"))
    assert not (counted["label"] == truth).all()


def test_the_table_has_votes_and_the_annotators_a_table(clear):
    _, frame, votes, truth = clear
    resolved = disambiguate(frame, votes=votes)
    of_the_label = votes.assign(truth=votes["item"].map(dict(zip(frame["id"], truth, strict=True))))
    expected = (of_the_label["label"] == of_the_label["truth"]).groupby(votes["item"]).sum()
    assert resolved["votes"].tolist() == expected[frame["id"]].tolist()
    assert (resolved["votes"] == 0).any()
    assert (
        f"{(resolved['votes'] == 0).sum()} rows got a label that nobody voted for."
        in resolved.notes
    )
    table = resolved.annotators
    assert table["votes"].to_dict() == votes["annotator"].value_counts().to_dict()
    assert table["accuracy"].sort_values().index.tolist() == ["eve", "<b>cleo", "ben", "=ada"]
    assert table["agreement"].idxmin() == "eve"


def test_columns_make_sense_where_the_label_is_no_candidate(clear):
    resolution = clear[0]
    found, sets = resolution.verdicts, resolution.prepared.sets
    rows = np.flatnonzero(resolution.votes == 0)
    assert not sets.mask[rows, found.labels[rows]].any()
    assert (found.confidence[rows] > 0.5).all()
    assert (found.runners_up[rows] >= 0).all()
    second = resolution.confidences[rows, found.runners_up[rows]]
    np.testing.assert_allclose(found.margin[rows], found.confidence[rows] - second, atol=1e-6)
    assert (found.confidence[found.runners_up < 0] == 1.0).all()
    page = page_facts(resolution, saved_matching(resolution).display)
    assert all(
        {row.label, row.runner_up} <= {c.name for c in row.candidates} for row in page["doubtful"]
    )


def test_labels_can_be_kept_among_the_votes(clear):
    _, frame, votes, _ = clear
    assert (disambiguate(frame, votes=votes, outside="never")["votes"] > 0).all()
    free = disambiguate(frame, votes=votes)
    outside = free["votes"] == 0
    never = frame.assign(never=free["label"].where(outside, ""))
    resolved = disambiguate(never, votes=votes, impossible="never")
    assert not (resolved["label"] == free["label"])[outside].any()
    with pytest.raises(InputError, match="outside= is 'yes'; it must be 'auto' or 'never'"):
        disambiguate(frame, votes=votes, outside="yes")
    with pytest.raises(InputError, match="goes with gmpll only"):
        disambiguate(frame, votes=votes, outside="never", method="plknn")


def test_known_labels_stand_against_all_votes(clear):
    _, frame, votes, truth = clear
    other = np.roll(NAMES, 1)[np.searchsorted(NAMES, truth)]
    gold = [name if row < 5 else "" for row, name in enumerate(other)]
    resolved = disambiguate(frame.assign(gold=gold), votes=votes)
    assert resolved["label"][:5].tolist() == gold[:5]
    assert not resolved["review"][:5].any()


def test_votes_without_names_and_with_trust_are_counted(clear):
    _, frame, votes, _ = clear
    unnamed = votes.assign(annotator="")
    for options in ({"votes": unnamed}, {"votes": votes, "trust": 1.0}):
        resolution = resolution_of(frame, **options)
        assert annotator_table(resolution) is None
        assert "votes" not in disambiguate(frame, **options)
        assert any("The votes count to the power of" in text for text in sentences(resolution))


def test_the_half_way_rule_finds_who_is_careless(clear):
    resolution, _, votes, _ = clear
    table = annotator_table(resolution)
    limit = (1 / 3 + table["accuracy"].median()) / 2
    assert table["careless"].to_dict() == (table["accuracy"] < limit).to_dict()
    assert table.index[table["careless"]].tolist() == ["eve"]
    assert any("1 annotator is careless" in t and "'eve'" in t for t in sentences(resolution))
    assert '<strong class="note">yes</strong>' in page_of(resolution)
    confusion = resolution.model.annotators_.confusion("eve")
    assert f"{NAMES[1]} for {NAMES[0]} {confusion[0, 1]:.0%}" in table.loc["eve", "confuses"]
    few = votes[(votes["annotator"] != "eve") | (votes["annotator"] == "eve").cumsum().lt(5)]
    assert not annotator_table(resolution_of(clear[1], votes=few)).loc["eve", "careless"]


def test_weak_features_are_said_so(clear, noisy):
    weak = sentences(noisy[0])[0]
    assert weak.startswith("The features add n")
    assert weak in page_of(noisy[0])
    told = sentences(clear[0])[0]
    assert told in page_of(clear[0])
    assert float(told.split(" times")[0].split()[-1]) > 1.5
    assert any("1 annotator is right less often than by chance" in t for t in sentences(clear[0]))


def told(**evidence):
    """What is said of a model that believed the evidence so far."""
    model = SimpleNamespace(
        evidence_=evidence, class_prior_=np.array([0.25, 0.75]), classes_=np.array(["a", "b"])
    )
    sets = SimpleNamespace(annotated=False)
    prepared = SimpleNamespace(sets=sets)
    return sentences(SimpleNamespace(model=model, prepared=prepared, n_lacking=0))


def test_features_count_by_what_they_gain():
    assert told(**{"features": 0.0, "gain by features": 0.01})[0] == ALONE
    assert told(**{"features": 3.0, "gain by features": 0.0})[0] == ALONE
    assert "next to nothing" in told(**{"features": 3.0, "gain by features": 0.01})[0]
    assert "2.72 times as probable" in told(**{"features": 3.0, "gain by features": 1.0})[0]


def test_evidence_of_candidate_sets_is_said():
    strong = {"graph": 0.8, "regression": 1.25, "class prior": 0.5, "something new": 3.0}
    assert told(**strong) == (
        "Beside the candidate sets count (0: not at all): similar rows 0.80, the regression on the "
        "features 1.25, label frequencies 0.50.",
        "Labels by the frequency found: 'b' 75%, 'a' 25%.",
    )
    weak = told(**{"graph": 0.01, "regression": 0.0, "class prior": 0.5})
    assert weak[0].startswith("The features say nothing about the labels")
    assert "was not estimated" in told()[0]


def test_a_method_that_does_not_tell_is_not_spoken_for(pets):
    assert sentences(resolution_of(pets[0], method="plknn")) == ()


def test_the_page_shows_annotators_and_who_voted(noisy):
    resolution, _, votes, _ = noisy
    page = page_of(resolution)
    assert "<h2>Annotators</h2>" in page
    assert "&lt;b&gt;cleo" in page
    assert "<b>cleo" not in page
    row = page_facts(resolution, saved_matching(resolution).display)["doubtful"][0]
    mine = votes[votes["item"] == row.id]
    counts = mine["label"].value_counts().to_dict()
    assert {c.name: c.n_votes for c in row.candidates if c.n_votes} == counts
    for candidate in row.candidates:
        assert sorted(candidate.voters) == sorted(
            mine["annotator"][mine["label"] == candidate.name]
        )
    assert page.count("Confusion of =ada") == 1
    assert sorted(row.votes) == sorted(zip(mine["annotator"], mine["label"], strict=True))
    assert f"Who voted about {row.id}" in page
    assert "What would have changed it" not in page


def test_the_page_of_candidate_sets_has_no_annotators(pets):
    assert "Annotators" not in page_of(resolution_of(pets[0]))


def test_the_command_prints_and_writes_them(command, tmp_path, noisy):
    _, frame, votes, _ = noisy
    frame.to_csv(tmp_path / "in.csv", index=False)
    votes.to_csv(tmp_path / "votes.csv", index=False)
    code, told, errors = command(
        "disambiguate", tmp_path / "in.csv", "--votes", tmp_path / "votes.csv"
    )
    assert (code, errors) == (0, "")
    assert sentences(noisy[0])[0] in " ".join(told.split())
    assert "estimated accuracy" in told
    out = tmp_path / "in-resolved"
    written = pd.read_csv(out / "annotators.csv", index_col="annotator")
    assert set(written.index) == {"'=ada", "ben", "<b>cleo", "eve"}, "no cell is a formula"
    assert written.columns.tolist() == ["votes", "accuracy", "agreement", "careless", "confuses"]
    assert "votes" in read_table(out / "resolved.csv").frame
    assert not hasattr(load_model(out).model, "annotators_"), "the model names nobody"
    votes.drop(columns="annotator").to_csv(tmp_path / "votes.csv", index=False)
    arguments = ("disambiguate", tmp_path / "in.csv", "--votes", tmp_path / "votes.csv", "--force")
    assert command(*arguments)[0] == 0
    assert not (out / "annotators.csv").exists(), "it is of an earlier run"


def test_results_of_an_earlier_run_are_not_features(clear):
    _, frame, votes, _ = clear
    resolved = disambiguate(frame, votes=votes)
    roles = guess_roles(table_from_frame(resolved.frame), Options(votes=votes))
    assert "earlier run" in roles.left_out["votes"]


# Matching again, and the review --------------------------------------------------------------


@pytest.fixture(name="folder")
def _folder(clear, tmp_path):
    write_matching(saved_matching(clear[0]), tmp_path / "matching.npz")
    return tmp_path


def test_matching_again_uses_the_annotators(folder, clear):
    saved = read_matching(folder)
    again = rematch(saved, {})
    assert (again.labels == saved.labels).all()
    np.testing.assert_allclose(again.confidence, saved.confidence, atol=1e-6)
    wrong = {row: int((saved.labels[row] + 1) % 3) for row in range(3)}
    assert rematch(saved, wrong).labels[:3].tolist() == list(wrong.values())


@pytest.mark.parametrize("vote", [(150, 0, 0), (0, 4, 0), (0, 0, 3), (0, -1, 0)])
def test_damaged_votes_are_refused(folder, vote):
    saved = read_matching(folder)
    write_matching(replace(saved, votes=np.vstack([saved.votes, [vote]])), folder / "matching.npz")
    with pytest.raises(InputError, match="damaged"):
        read_matching(folder)


def test_the_review_offers_the_label_found(folder, clear):
    row = int(np.flatnonzero(clear[0].votes == 0)[0])
    session = open_review(folder)
    found = [entry["name"] for entry in session.item(row)["candidates"] if entry["found"]]
    assert found == [clear[3][row]]
    session.store.close()


def test_the_review_asks_about_doubtful_rows_with_one_vote(folder):
    saved = read_matching(folder)
    row = int(np.flatnonzero(saved.mask.sum(axis=1) == 1)[0])
    confidence = saved.confidence.copy()
    confidence[row] = [0.4, 0.3, 0.3]
    saved = replace(saved, confidence=confidence, outside=np.zeros_like(saved.outside))
    write_matching(saved, folder / "matching.npz")
    session = open_review(folder)
    assert session.next_item("tab")["row"] == row
    session.store.close()


# Odd votes -----------------------------------------------------------------------------------


def test_votes_for_unknown_items_are_noted(clear):
    _, frame, votes, _ = clear
    strange = pd.DataFrame({"item": ["?", "??"], "label": ["emu", "cat"], "annotator": "zoe"})
    resolution = resolution_of(frame, votes=pd.concat([votes, strange]))
    assert "2 votes are for items that are not in the input" in resolution.prepared.problems[0]
    assert resolution.prepared.sets.classes.tolist() == NAMES.tolist()
    assert "zoe" not in annotator_table(resolution).index


def test_one_vote_makes_an_average_annotator(clear):
    resolution, frame, votes, _ = clear
    alone = pd.DataFrame({"item": ["i0"], "label": ["cow"], "annotator": "zoe"})
    table = annotator_table(resolution_of(frame, votes=pd.concat([votes, alone])))
    assert table.loc["zoe", "votes"] == 1
    accuracy = annotator_table(resolution)["accuracy"]
    assert accuracy.min() < table.loc["zoe", "accuracy"] < accuracy.max()


def test_an_annotator_alone_with_the_items_has_no_agreement(clear):
    _, frame, votes, _ = clear
    first = votes.drop_duplicates("item").assign(annotator="zoe")
    resolution = resolution_of(frame, votes=first)
    assert np.isnan(annotator_table(resolution).loc["zoe", "agreement"])
    assert "<td>\N{EN DASH}</td>" in page_of(resolution)


def test_contradictory_votes_are_noted_and_share_a_vote(clear):
    _, frame, votes, _ = clear
    mine = votes[votes["item"] == "i0"].iloc[[0]]
    others = [label for label in NAMES if label != mine["label"].item()]
    both = pd.concat([votes, mine.assign(label=others[0]), mine])  # the repetition says nothing
    (note,) = resolution_of(frame, votes=both).prepared.problems
    assert note == (
        "1 time an annotator gave an item several labels: each of them has a share of the vote; "
        "keep the one that was meant"
    )


def test_all_hostile_annotators_agree_on_the_result(clear):
    """Nothing shows that all err alike: the result is what they agree on, as documented."""
    _, frame, votes, truth = clear
    wrong = NAMES[(np.searchsorted(NAMES, truth) + 1) % 3]
    of_item = dict(zip(frame["id"], wrong, strict=True))
    resolved = disambiguate(frame, votes=votes.assign(label=votes["item"].map(of_item)))
    assert (resolved["label"] == wrong).all()


def test_votes_by_chance_are_said_so(clear):
    _, frame, votes, _ = clear
    guessed = votes.assign(label=np.random.default_rng(1).choice(NAMES, len(votes)))
    told = sentences(resolution_of(frame, votes=guessed))
    assert any("agree no more often than by chance" in text for text in told)
    assert not any("agree no more often than by chance" in text for text in sentences(clear[0]))


def test_a_vote_of_nobody_among_named_ones_is_refused(clear):
    _, frame, votes, _ = clear
    votes = votes.copy()
    votes.loc[4, "annotator"] = ""
    with pytest.raises(InputError, match="Row 5 of the DataFrame does not say who voted") as told:
        disambiguate(frame, votes=votes)
    assert "vote_columns= item,label" in str(told.value)
    assert len(disambiguate(frame, votes=votes, vote_columns=("item", "label"))) == len(frame)
