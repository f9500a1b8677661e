r"""Formulas as MathML, made at build time: no script has to be loaded to read them.

``\tag{5}`` at the end of a displayed formula prints (5) beside it, the number that the formula
has in the paper.
"""

import re

from docutils import nodes
from latex2mathml.converter import convert

_TAG = re.compile(r"\s*\\tag\{([^}]*)\}\s*$")
_PRIME = re.compile(r"<msup>(<mi>\w</mi>)<mi>&#x02032;</mi></msup>")


def formula(latex, display):
    """Return MathML; a prime stands beside its letter, as in a subscript it would vanish."""
    beside = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'
    return _PRIME.sub(beside, convert(latex, display=display))


def inline_formula(writer, node):
    """Write a formula within a sentence."""
    writer.body.append(formula(node.astext(), "inline"))
    raise nodes.SkipNode


def displayed_formula(writer, node):
    """Write a formula on a line of its own, its number at the right."""
    latex = node.astext().strip()
    tag = _TAG.search(latex)
    number = f'<span class="paper-number">({tag[1]})</span>' if tag else ""
    content = formula(_TAG.sub("", latex), "block")
    writer.body.append(f'<div class="formula">{content}{number}</div>')
    raise nodes.SkipNode


def setup(app):
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
