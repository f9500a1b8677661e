"""Guidelines for annotators, from a Markdown file to a tree of a few harmless elements.

What comes out is data: names of elements and text. HTML in the file is text, links and pictures
lose their addresses, and the page makes elements of the names in :data:`ELEMENTS` only.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from gmpll.apps.decisions.errors import ReviewError

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
    """Turn Markdown into nodes."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    return _nodes(SyntaxTreeNode(parser.enable("table").parse(text)).children)


def _nodes(tree: Iterable[SyntaxTreeNode]) -> list[Node]:
    """Keep text and the elements that are allowed; of others what is in them."""
    nodes: list[Node] = []
    for part in tree:
        if part.type in ("fence", "code_block"):
            found: list[Node] = [("pre", [part.content])]
        elif part.tag in ELEMENTS and not part.hidden:
            found = [(part.tag, _nodes(part.children) or [part.content] * bool(part.content))]
        elif part.children:  # a link, or the paragraph of a tight list
            found = _nodes(part.children)
        else:
            found = ["\n" if part.type in ("softbreak", "hardbreak") else part.content]
        for node in found:
            if isinstance(node, str) and nodes and isinstance(nodes[-1], str):
                nodes[-1] += node
            elif node:
                nodes.append(node)
    return nodes


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
