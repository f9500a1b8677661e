import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.page import (
    MAX_DOUBTFUL,
    page_facts,
    render_page,
)
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.saved import saved_matching
from gmpll.apps.tables.tables import table_from_frame

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


@pytest.fixture
def ambiguous(pets):
    frame, _ = pets
    return frame.assign(
        tags=[f"{t}|{'cow' if i % 4 else 'cat|dog'}" for i, t in enumerate(frame["tags"])]
    )


def test_frequencies_count_before_and_after(ambiguous):
    facts, resolution = facts_of(ambiguous)
    sets = [set(tags.split("|")) for tags in ambiguous["tags"]]
    for frequency in facts["frequencies"].itertuples():
        mine = [s for s in sets if frequency.label in s]
        assert frequency.in_sets == len(mine)
        assert frequency.expected == pytest.approx(sum(1 / len(s) for s in mine))
    assert facts["frequencies"]["found"].sum() == len(ambiguous)
    assert facts["mean_candidates"] == pytest.approx(np.mean([len(s) for s in sets]))
    assert resolution.verdicts.review.sum() == facts["n_review"]


def test_pairs_count_what_rows_with_both_became(ambiguous):
    facts, resolution = facts_of(ambiguous)
    labels = resolution.prepared.sets.classes[resolution.verdicts.labels]
    sets = [set(tags.split("|")) for tags in ambiguous["tags"]]
    assert len(facts["pairs"]) == 3
    for pair in facts["pairs"].itertuples():
        both = [i for i, s in enumerate(sets) if {pair.first, pair.second} <= s]
        assert pair.together == len(both)
        assert pair.to_first == sum(labels[i] == pair.first for i in both)
        assert pair.to_second == sum(labels[i] == pair.second for i in both)
        assert pair.margin == pytest.approx(np.mean(resolution.verdicts.margin[both]))


def test_the_most_doubtful_come_first_with_reasons(ambiguous):
    facts, resolution = facts_of(ambiguous)
    margins = [row.margin for row in facts["doubtful"]]
    assert margins == sorted(margins)
    assert margins[0] == pytest.approx(resolution.verdicts.margin.min())
    assert all(row.reasons is not None and row.counterfactual for row in facts["doubtful"])
    assert all(
        sum(share for _, share in row.candidates) == pytest.approx(1) for row in facts["doubtful"]
    )


def test_a_large_run_has_a_small_page():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=800), "y": rng.normal(size=800)})
    frame["tags"] = ["a|b" if i % 2 else "ab"[i % 4 // 2] for i in range(800)]
    facts, _ = facts_of(frame)
    assert len(facts["doubtful"]) == MAX_DOUBTFUL
    assert len(render_page(facts)) < 500_000


def test_the_bars_of_the_confidences_show_a_few_doubtful_rows(ambiguous):
    facts, resolution = facts_of(ambiguous)
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
    assert "script" not in Elements(page).tags
    assert "alert(1)" in page
    assert "&lt;script&gt;" in page


def test_the_page_is_self_contained_and_whole(ambiguous):
    facts, _ = facts_of(ambiguous)
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
    facts, _ = facts_of(frame)
    told = [[*r.reasons.iterations, r.reasons.afterwards] for r in facts["doubtful"]]
    assert sum(steps[-1] is not None for steps in told) > 10
    for before, after in (pair for steps in told for pair in pairwise(filter(None, steps))):
        for label, confidence in after.confidences.items():
            change = after.changes[label]
            assert confidence - change == pytest.approx(before.confidences[label], abs=1e-6)
    page = render_page(facts)
    assert page.count(">afterwards<") == sum(steps[-1] is not None for steps in told)
