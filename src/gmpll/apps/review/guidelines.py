"""Guidelines for annotators, from a Markdown file to a tree of a few harmless elements.

What comes out is data: names of elements and text. HTML in the file is text, links and pictures
lose their addresses, and the page makes elements of the names in :data:`ELEMENTS` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmpll.apps.decisions.errors import ReviewError

if TYPE_CHECKING:
    from markdown_it.token import Token

#: A larger file is nothing that anybody reads before annotating.
MAX_BYTES = 2**20
#: Deeper lists in lists are refused by the parser.
MAX_NESTING = 20
ELEMENTS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "hr"),
    *("strong", "em", "code", "s", "table", "thead", "tbody", "tr", "th", "td"),
}

_DASH = re.compile(r"\s+[-\u2013\u2014]+\s+")

#: Text, or the name of an element and what is in it.
Node = str | tuple[str, list[Any]]


def read_guidelines(path: Path) -> list[Node]:
    """Read a Markdown file; one that cannot be read is a ReviewError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReviewError(
                f"{path} is larger than {MAX_BYTES >> 20} MiB: shorten the guidelines."
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ReviewError(f"The guidelines {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ReviewError(f"The guidelines {path} are not UTF-8: save them so.") from error
    return parse(text)


def parse(text: str) -> list[Node]:
    """Turn Markdown into nodes.

    Examples
    --------
    >>> from gmpll.apps.review.guidelines import parse
    >>> parse("**Billing**: <b>money</b>")
    [('p', [('strong', ['Billing']), ': <b>money</b>'])]
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    return _nodes(parser.enable("table").parse(text))


def _nodes(tokens: Iterable[Token]) -> list[Node]:
    """Put the flat list of a parser's tokens, which open and close elements, into a tree."""
    open_lists: list[list[Any]] = [[]]
    for token in tokens:
        children = open_lists[-1]
        if token.nesting == 1:
            inner: list[Any] = []
            if token.tag in ELEMENTS and not token.hidden:
                children.append((token.tag, inner))
            else:  # a link, or the paragraph of a tight list: what is in it stays
                inner = children
            open_lists.append(inner)
        elif token.nesting == -1:
            open_lists.pop()
        elif token.type == "inline":
            children.extend(_nodes(token.children or ()))
        elif token.type in ("fence", "code_block"):
            children.append(("pre", [token.content]))
        elif token.tag in ELEMENTS:
            children.append((token.tag, [token.content] if token.content else []))
        else:
            text = "\n" if token.type in ("softbreak", "hardbreak") else token.content
            if text and children and isinstance(children[-1], str):
                children[-1] += text
            elif text:
                children.append(text)
    return open_lists[0]


def text_of(nodes: Iterable[Node]) -> str:
    """Return the text of nodes."""
    parts = [node if isinstance(node, str) else text_of(node[1]) for node in nodes]
    return " ".join("".join(parts).split())


def definitions(nodes: Sequence[Node], labels: Iterable[str]) -> dict[str, str]:
    """Find what the guidelines say about labels.

    That is the paragraph below a heading that is the label's name, or what follows the name and a
    colon or dash in an entry of a list or a paragraph.
    """
    wanted = {label.casefold(): label for label in labels}
    found: dict[str, str] = {}
    for place, node in enumerate(nodes):
        if isinstance(node, str):
            continue
        name, children = node
        text = text_of(c for c in children if isinstance(c, str) or c[0] not in ("ul", "ol"))
        if name.startswith("h") and text.casefold() in wanted and place + 1 < len(nodes):
            follows = nodes[place + 1]
            if not isinstance(follows, str) and follows[0] == "p":
                found.setdefault(wanted[text.casefold()], text_of(follows[1]))
        elif name in ("ul", "ol"):
            found = {**definitions(children, labels), **found}
        elif name in ("li", "p"):
            label, _, meaning = _DASH.sub(": ", text, count=1).partition(": ")
            if label.casefold() in wanted and meaning:
                found.setdefault(wanted[label.casefold()], meaning)
    return found
