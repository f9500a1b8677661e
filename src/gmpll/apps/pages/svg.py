"""Matplotlib figures as SVG elements that live inside a page.

The drawing takes its ink, its grid and its line colours from the page's style sheet, so that it
follows a dark theme, and still looks right when opened alone. Identifiers get a prefix: several
drawings share one page.
"""

import io
import re
import xml.etree.ElementTree as ET
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

#: Colours that the page replaces; any value that no other element uses will do.
INK = "#1b1f24"
GRID = "#d3d7de"
#: Eight line colours, told apart also with the common kinds of colour blindness (after Okabe and
#: Ito, darkened where they would be faint on white).
PALETTE = ("#0072b2", "#d55e00", "#007f5f", "#b8578f", "#a87900", "#2f95cf", "#7a1f4f", "#7d7d7d")

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_COLOURS = {
    INK: "currentColor",
    GRID: f"var(--grid, {GRID})",
    **{colour: f"var(--series-{place}, {colour})" for place, colour in enumerate(PALETTE)},
}
_COLOUR = re.compile("|".join(_COLOURS))
_INKED = (
    *("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color"),
)
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


#: Matplotlib's settings for every drawing of a report.
DRAWING_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: selectable, searchable, in the page's ink
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    "grid.color": GRID,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(_INKED, INK),
}


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a figure as an ``svg`` element, well-formed XML, the same for the same figure.

    The name is the prefix of all identifiers and unique on the page; screen readers read out title
    and description.
    """
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": name}):
        # The date would make every report a new one.
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue().encode())
    for parent in list(root.iter()):  # matplotlib's style sheet speaks to the whole page
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata"):
                parent.remove(child)
    root.set("stroke-linejoin", "round")
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key == f"{{{_XLINK}}}href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
        style = element.get("style")
        if style:
            element.set("style", _COLOUR.sub(lambda hit: _COLOURS[hit[0]], style))
    # With the viewBox alone the drawing scales to its box.
    root.set("style", f"max-width: {root.attrib.pop('width')}")
    del root.attrib["height"]
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    texts = {"title": ("title", title), "description": ("desc", description)}
    for place, (what, (tag, text)) in enumerate(texts.items()):
        element = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{what}"})
        element.text = text
        root.insert(place, element)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")
