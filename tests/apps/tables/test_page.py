import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.page import (
    MAX_CONFUSED,
    MAX_DOUBTFUL,
    MAX_EXPLAINED,
    page_facts,
    render_page,
)
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.saved import saved_matching
from gmpll.apps.tables.tables import read_table, table_from_frame

HOSTILE = "<script>alert(1)</script>\"'&"


def facts_of(frame, **options):
    options = Options(**options)
    table = table_from_frame(frame)
    resolution = resolve(prepare(table, guess_roles(table, options), options))
    return page_facts(resolution, saved_matching(resolution).display), resolution


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.links = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href") and v]


@pytest.fixture(scope="module")
def ambiguous(pets):
    frame, _ = pets
    return frame.assign(
        tags=[f"{t}|{'cow' if i % 4 else 'cat|dog'}" for i, t in enumerate(frame["tags"])]
    )


@pytest.fixture(scope="module")
def made(ambiguous):
    """The facts of a page on which every ambiguous row is worth a look."""
    return facts_of(ambiguous, review_below=1.0)


def test_frequencies_count_before_and_after(ambiguous, made):
    facts, resolution = made
    sets = [set(tags.split("|")) for tags in ambiguous["tags"]]
    for frequency in facts["frequencies"].itertuples():
        mine = [s for s in sets if frequency.label in s]
        assert frequency.in_sets == len(mine)
        assert frequency.expected == pytest.approx(sum(1 / len(s) for s in mine))
    assert facts["frequencies"]["found"].sum() == len(ambiguous)
    assert facts["mean_candidates"] == pytest.approx(np.mean([len(s) for s in sets]))
    assert resolution.verdicts.review.sum() == facts["n_review"]


def test_pairs_count_what_rows_with_both_became(ambiguous, made):
    facts, resolution = made
    labels = resolution.prepared.sets.classes[resolution.verdicts.labels]
    sets = [set(tags.split("|")) for tags in ambiguous["tags"]]
    assert len(facts["pairs"]) == 3
    for pair in facts["pairs"].itertuples():
        both = [i for i, s in enumerate(sets) if {pair.first, pair.second} <= s]
        assert pair.together == len(both)
        assert pair.to_first == sum(labels[i] == pair.first for i in both)
        assert pair.to_second == sum(labels[i] == pair.second for i in both)
        assert pair.margin == pytest.approx(np.mean(resolution.verdicts.margin[both]))


def test_the_most_doubtful_come_first_with_reasons(made):
    facts, resolution = made
    doubt = [min(row.margin, 1 - 2 * row.outside) for row in facts["doubtful"]]
    assert doubt == sorted(doubt)
    assert facts["doubtful"][0].margin == pytest.approx(resolution.verdicts.margin.min())
    explained = facts["doubtful"][:MAX_EXPLAINED]
    assert all(row.reasons is not None and row.counterfactual for row in explained)
    for row in facts["doubtful"]:
        assert sum(c.share for c in row.candidates) == pytest.approx(1, abs=1e-3)


def test_only_flagged_rows_are_shown(pets):
    facts, resolution = facts_of(pets[0], review_below=0.0, method="plknn")
    assert not resolution.verdicts.review.any()
    assert facts["doubtful"] == []
    assert "No row is flagged" in render_page(facts)


def test_the_expected_number_of_wrong_labels(made, pets):
    facts, resolution = made
    found = resolution.verdicts
    wrong = [1 - c * (1 - o) for c, o in zip(found.confidence, found.outside, strict=True)]
    assert facts["n_wrong"] == pytest.approx(sum(wrong))
    assert facts["n_wrong_flagged"] == pytest.approx(np.array(wrong)[found.review].sum())
    assert f"{facts['n_wrong']:.1f} of 60 labels are expected to be wrong" in render_page(facts)
    uncalibrated, _ = facts_of(pets[0], method="plknn")
    assert "expected to be wrong" not in render_page(uncalibrated)


def test_the_confusion_is_what_the_confidences_expect(made):
    """Literally: every row gives its label's line what its confidences say."""
    facts, resolution = made
    found, sets = resolution.verdicts, resolution.prepared.sets
    expected = np.zeros((3, 4))
    for row, label in enumerate(found.labels):
        o, best = found.outside[row], found.suggested[row]
        for other in range(3):
            share = resolution.confidences[row, other] if other != label else found.confidence[row]
            expected[label, other] += share * (1 - o)
        column = best if not sets.mask[row, best] else 3
        expected[label, column] += o
    names, confusion = facts["confusion"]
    assert names == sets.classes.tolist()
    np.testing.assert_allclose(confusion, expected, atol=1e-4)
    assert confusion.sum() - np.trace(confusion) == pytest.approx(facts["n_wrong"], abs=1e-3)
    assert "Which labels are confused" in render_page(facts)


def test_many_labels_have_a_small_matrix():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 20
    frame = pd.DataFrame(rng.normal(size=(60, 3)) + truth[:, None], columns=list("xyz"))
    frame["tags"] = [f"l{t}|l{(t + 1) % 20}" for t in truth]
    names, confusion = facts_of(frame, method="plknn")[0]["confusion"]
    assert len(names) == MAX_CONFUSED
    assert confusion.shape == (MAX_CONFUSED, MAX_CONFUSED + 1)


def test_what_was_chosen_when_and_by_what_is_said(made):
    facts, resolution = made
    assert "auto" not in map(str, facts["settings"].values())
    assert facts["settings"]["tau"] == resolution.model.selected_["tau"]
    assert facts["settings"]["outside"] == "labels are candidates"
    display = saved_matching(resolution).display
    page = render_page(page_facts(resolution, display, command="gmpll disambiguate 'a <b>.csv'"))
    assert "gmpll disambiguate &#39;a &lt;b&gt;.csv&#39;" in page
    assert "scikit-learn" in page
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d", page)


def test_texts_and_pictures_of_doubtful_rows(pets, tmp_path):
    frame = pets[0].assign(note=[f"a note of several words about {i}" for i in range(60)])
    frame["photo"] = [f"{i}.png" for i in range(60)]
    (tmp_path / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"1" * 100)
    (tmp_path / "2.png").write_bytes(b"<svg onload='x'>")
    (tmp_path / "4.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"4" * 600_000)
    frame.to_csv(tmp_path / "in.csv", index=False)
    options = Options(method="plknn", review_below=1.0, image="photo", text=("note",))
    table = read_table(tmp_path / "in.csv")
    resolution = resolve(prepare(table, guess_roles(table, options), options))
    rows = {r.id: r for r in page_facts(resolution, saved_matching(resolution).display)["doubtful"]}
    assert rows["001"].text == "a note of several words about 1"
    assert rows["001"].picture.startswith("data:image/png;base64,")
    assert rows["002"].picture == "", "it is no picture"
    assert rows["004"].picture == "", "it is too large"
    assert rows["005"].picture == "", "there is none"


def test_a_large_run_has_a_small_page():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=800), "y": rng.normal(size=800)})
    frame["tags"] = ["a|b" if i % 2 else "ab"[i % 4 // 2] for i in range(800)]
    facts, _ = facts_of(frame, review_below=1.0)
    assert len(facts["doubtful"]) == MAX_DOUBTFUL
    assert sum(row.reasons is not None for row in facts["doubtful"]) == MAX_EXPLAINED
    assert len(render_page(facts)) < 500_000


def test_the_bars_of_the_confidences_show_a_few_doubtful_rows(made):
    facts, resolution = made
    sure = resolution.verdicts.confidence[resolution.is_open]
    for low, high, rows, length in facts["confidences"]:
        inside = (sure >= low) & ((sure < high) | (high == 1))
        assert rows == inside.sum()
        assert (length > 0.1) == (rows > 0)


def test_names_cannot_do_harm(pets):
    frame, _ = pets
    frame = frame.assign(note=HOSTILE).rename(columns={"note": HOSTILE})
    frame["tags"] = [tags.replace("cat", HOSTILE) for tags in frame["tags"]]
    frame["id"] = [f"{i}{HOSTILE}" for i in range(60)]
    facts, _ = facts_of(frame, id="id", candidates=("tags",), separator="|")
    page = render_page(facts)
    assert Elements(page).tags.count("script") == 1, "its own"
    assert "alert(1)" in page
    assert "&lt;script&gt;" in page


def test_no_other_script_may_run(made):
    page = render_page(made[0])
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html.unescape(page)
    assert "unsafe-inline'; script" in html.unescape(page), "of styles only"


def test_the_page_is_self_contained_and_whole(made):
    facts, _ = made
    page = render_page(facts)
    elements = Elements(page)
    assert len(elements.ids) == len(set(elements.ids))
    outside = [link for link in elements.links if not link.startswith(("#", "data:"))]
    assert outside == []
    assert {link[1:] for link in elements.links if link.startswith("#")} <= set(elements.ids)
    assert elements.tags.count("h1") == 1
    assert re.search(r"default-src 'none'", page)
    assert "prefers-color-scheme: dark" in page


def test_one_feature_and_another_method(pets):
    frame, _ = pets
    facts, _ = facts_of(frame[["size", "tags"]], method="plknn")
    assert all(row.reasons is None for row in facts["doubtful"])
    assert "What would have changed it" not in render_page(facts)


def test_the_iterations_add_up():
    """Every line of the iterations goes on from the one before it, the last one too."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    frame = pd.DataFrame(rng.normal(size=(150, 4)) + np.eye(3, 4)[truth], columns=list("abcd"))
    frame["tags"] = [f"{'abc'[t]}|{'abc'[(t + 1) % 3]}" for t in truth]
    facts, _ = facts_of(frame, review_below=1.0)
    reasons = [r.reasons for r in facts["doubtful"] if r.reasons]
    told = [[*each.iterations, each.afterwards] for each in reasons]
    assert sum(steps[-1] is not None for steps in told) > 10
    for before, after in (pair for steps in told for pair in pairwise(filter(None, steps))):
        for label, confidence in after.confidences.items():
            change = after.changes[label]
            assert confidence - change == pytest.approx(before.confidences[label], abs=5e-3)
    page = render_page(facts)
    assert page.count(">afterwards<") == sum(steps[-1] is not None for steps in told)
