from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.review.guidelines import ELEMENTS, definitions, parse, read_guidelines, text_of

GUIDE = """# Labels

Choose **one**.

## Billing

Everything about *money*.

## Nothing

- **Login**: cannot get in
- Shipping - parcels and `couriers`
  - nested: not part of it
"""


def test_markdown_becomes_elements_and_text():
    assert parse("# A\n\n*b* **c** `d`\n\n- e\n- f\n\n```\ng\n```\n\n---\n") == [
        ("h1", ["A"]),
        ("p", [("em", ["b"]), " ", ("strong", ["c"]), " ", ("code", ["d"])]),
        ("ul", [("li", ["e"]), ("li", ["f"])]),
        ("pre", ["g\n"]),
        ("hr", []),
    ]
    table = parse("|a|\n|-|\n|1|\n")
    assert table == [
        (
            "table",
            [("thead", [("tr", [("th", ["a"])])]), ("tbody", [("tr", [("td", ["1"])])])],
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=alert(1)>b</b>",
        "[x](javascript:alert(1))",
        "![x](http://evil.example/y.png)",
        "<http://evil.example>",
        "[x]: http://evil.example\n\n[x]",
    ],
)
def test_html_is_text_and_addresses_are_lost(text):
    def check(nodes):
        for node in nodes:
            if isinstance(node, str):
                continue
            name, children = node
            assert name in {"p", "strong", "em"}
            check(children)

    nodes = parse(text)
    check(nodes)
    if text.startswith(("<script", "<img")):
        assert text_of(nodes) == text
    if text.startswith(("![", "[x]:")):
        assert "evil" not in str(nodes)


@given(st.text(alphabet="#*_`[]()<>!-|\n 1.abc&;\\", max_size=60))
def test_nothing_but_the_known_elements_ever_comes_out(text):
    def check(nodes):
        for node in nodes:
            if not isinstance(node, str):
                assert node[0] in ELEMENTS
                check(node[1])

    check(parse(text))


def test_what_the_guidelines_say_about_labels_is_found():
    labels = ["billing", "Login", "Shipping", "Nothing", "nested"]
    assert definitions(parse(GUIDE), labels) == {
        "billing": "Everything about money.",
        "Login": "cannot get in",
        "Shipping": "parcels and couriers",
    }


def test_deep_nesting_does_no_harm():
    assert parse("> " * 3000 + "x")
    assert parse("- " * 3000 + "x")


def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    with pytest.raises(ReviewError, match="cannot be read"):
        read_guidelines(tmp_path / "missing.md")
    with pytest.raises(ReviewError, match="cannot be read"):
        read_guidelines(tmp_path)
    (tmp_path / "latin.md").write_bytes(b"\xfc")
    with pytest.raises(ReviewError, match="not UTF-8"):
        read_guidelines(tmp_path / "latin.md")
    (tmp_path / "large.md").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(ReviewError, match="larger than 1 MiB"):
        read_guidelines(tmp_path / "large.md")
