"""The product in one call: any table is resolved or refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from generic import examples, refused
from hypothesis import given
from hypothesis import strategies as st

from gmpll import disambiguate
from gmpll.apps.tables import InputError

pytestmark = pytest.mark.filterwarnings("ignore")

cells = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6),
    st.lists(st.one_of(st.text(max_size=2), st.floats(), st.none()), max_size=3),
    st.sampled_from(["a|b", "a", "b", "a|b|c", '["a"]', "1", "x.png", "", " ", "\0"]),
)  # fmt: skip
names = st.one_of(
    st.sampled_from(["id", "tags", "text", "gold", "label", "size", "label_a", "label_b", "image"]),
    st.text(max_size=3),
    st.integers(0, 3),
)
sets = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)


@given(st.data(), st.integers(0, 6))
@examples(150)
def test_any_table_is_resolved_or_refused_in_a_sentence(data, n):
    columns = data.draw(st.lists(names, max_size=5, unique_by=str))
    column = st.lists(cells, min_size=n, max_size=n)
    frame = pd.DataFrame({name: pd.Series(data.draw(column), dtype=object) for name in columns})
    method = data.draw(st.sampled_from(["plknn", "gmpll", "nobody"]))
    error, resolved = refused(lambda: disambiguate(frame, method=method), InputError)
    if error is None:
        assert len(resolved) == n
        assert set(frame.columns) < set(resolved.frame.columns)


@given(
    st.lists(st.tuples(sets, st.floats(-9, 9)), min_size=2, max_size=8),
    st.sampled_from(["|", ";", "json", "list"]),
)
@examples(40)
def test_every_way_to_write_sets_gives_the_same_labels(rows, way):
    lists = [labels for labels, _ in rows]
    size = [number for _, number in rows]
    quoted = [str(labels).replace("'", '"') for labels in lists]
    written = {"json": quoted, "list": lists}.get(way) or [way.join(labels) for labels in lists]
    flags = pd.DataFrame(
        {f"is_{name}": [float(name in labels) for labels in lists] for name in "abc"}
    )
    both = (
        lambda: disambiguate(
            pd.DataFrame({"tags": written, "size": size}), "tags", separator=way, method="plknn"
        ),
        lambda: disambiguate(flags.assign(size=size), list(flags), method="plknn"),
    )
    (first_error, first), (second_error, second) = (refused(call, InputError) for call in both)
    if first_error is None and second_error is None:
        for row, labels in enumerate(lists):
            assert first["label"][row] in labels
            assert second["label"][row] in labels
        decided = first["margin"] > 1e-9
        assert (first["label"] == second["label"])[decided].all()


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), min_size=1, max_size=9))
@examples(40)
def test_votes_are_resolved_or_refused_in_a_sentence(votes):
    frame = pd.DataFrame({"id": list("xyz"), "size": [1.0, 2.0, 9.0]})
    table = pd.DataFrame(votes, columns=["item", "label"])
    error, resolved = refused(
        lambda: disambiguate(frame, votes=table, method="plknn", empty="all"), InputError
    )
    if error is None:
        for name, label in zip(frame["id"], resolved["label"], strict=True):
            voted = {choice for item, choice in votes if item == name}
            assert not voted or label in voted
        assert np.isfinite(resolved["confidence"]).all()
