"""Tables as Markdown, LaTeX and CSV."""

import re
from collections.abc import Callable

from gmpll.apps.pages.tables import Cell, Table

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "•": r"$\bullet$",
        "∘": r"$\circ$",
        "\N{MINUS SIGN}": r"$-$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "\N{EN DASH}": "--",
        "β": r"$\beta$",
        "\N{THIN SPACE}": r"\,",
        "\n": " ",
    }
)


def latex_text(text: str) -> str:
    """Escape text for LaTeX."""
    return text.translate(_LATEX)


def markdown_text(text: str) -> str:
    """Escape text for a cell or a sentence of Markdown."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Signs and brackets of our own figures stay readable: they have no meaning inside a cell.
    escaped = re.sub(r"([\\`*_\[\]|~$])", r"\\\1", escaped)
    return " ".join(escaped.split())


def to_csv(table: Table) -> str:
    """Return the raw facts of a table as CSV, with all their digits."""
    return table.facts.to_csv(index=False, lineterminator="\n")


def to_markdown(table: Table) -> str:
    """Return a table as Markdown, with its title and notes."""
    header = [markdown_text(title) or " " for title in table.header]
    alignment = [":--"] + [":--" if table.is_text else "--:"] * (len(header) - 1)
    rows = [header, alignment]
    for row in table.rows:
        rows.append([_cell(cell, markdown_text, "**%s**", "%s<br>%s") for cell in row.cells])
    lines = [f"**{markdown_text(table.title)}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += [part for note in table.notes for part in ("", markdown_text(note))]
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """Return a table as a LaTeX ``table`` environment; it needs the package ``booktabs``."""
    columns = "l" + ("l" if table.is_text else "c") * (len(table.header) - 1)
    two_lines = r"\shortstack{%s\\{\scriptsize %s}}"
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{latex_text(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(latex_text(title) for title in table.header) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        if row.is_apart:
            lines.append(r"\midrule")
        cells = [_cell(cell, latex_text, r"\textbf{%s}", two_lines) for cell in row.cells]
        # A cell that begins with a bracket would be read as an argument of the line break before.
        cells = [f"{{}}{text}" if text.startswith("[") else text for text in cells]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip {{\footnotesize {latex_text(note)}}}" for note in table.notes]
    lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def _cell(cell: Cell, escaped: Callable[[str], str], strong: str, lines: str) -> str:
    text = escaped(cell.text)
    if cell.strong and text:
        text = strong % text
    if cell.mark:
        text += f" {escaped(cell.mark)}"
    second = ", ".join(escaped(part) for part in (cell.detail, cell.note) if part)
    return lines % (text, second) if second else text
