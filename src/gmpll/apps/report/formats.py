"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re

from gmpll.apps.pages.tables import Cell, Table

_LATEX = {
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


def latex_text(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_LATEX.get(character, character) for character in text)


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
    lines = [f"**{markdown_text(table.title)}**", "", _markdown_row(header)]
    lines.append(_markdown_row(alignment))
    lines += [_markdown_row([_markdown_cell(cell) for cell in row.cells]) for row in table.rows]
    lines += [part for note in table.notes for part in ("", markdown_text(note))]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = markdown_text(cell.text)
    if cell.strong and text:
        text = f"**{text}**"
    if cell.mark:
        text += f" {cell.mark}"
    second = ", ".join(markdown_text(part) for part in (cell.detail, cell.note) if part)
    return f"{text}<br>{second}" if second else text


def to_latex(table: Table) -> str:
    """Return a table as a LaTeX ``table`` environment; it needs the package ``booktabs``."""
    columns = "l" + ("l" if table.is_text else "c") * (len(table.header) - 1)
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
        lines.append(" & ".join(_latex_cell(cell) for cell in row.cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip {{\footnotesize {latex_text(note)}}}" for note in table.notes]
    lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    text = latex_text(cell.text)
    if cell.strong and text:
        text = rf"\textbf{{{text}}}"
    if cell.mark:
        text += f" {latex_text(cell.mark)}"
    second = ", ".join(latex_text(part) for part in (cell.detail, cell.note) if part)
    # A cell that begins with a bracket would be read as an argument of the line break before it.
    if second:
        return rf"\shortstack{{{text}\\{{\scriptsize {second}}}}}"
    return f"{{}}{text}" if text.startswith("[") else text
