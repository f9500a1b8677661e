"""What the documentation shows is run, and the figures that it types are those of the results.

Programs (``python`` and ``pycon`` blocks) of a page run one after the other, in one namespace and
in a folder of their own. So do its commands (``console`` blocks); :data:`NOT_RUN` says which are
only checked, and why. A block after the comment ``<!-- not run: reason -->`` is left out.
"""

import ast
import doctest
import re
import runpy
import shlex
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import typer

import gmpll.apps.cli
from literal import algorithm_1

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")

BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```",
    flags=re.MULTILINE | re.DOTALL,
)
RUN = ("python", "pycon", "console")
#: Shown without being run: declarations have their own test, text is what a program prints.
SHOWN = ("toml", "text")
#: Commands whose options are checked but which are not run.
NOT_RUN = {
    "pip install": "the package is installed already",
    "make": "its targets run these tests",
    "gmpll reproduce": "takes minutes to days",
    "gmpll report": "needs a finished run",
    "gmpll review": "serves its page until it is stopped",
    "gmpll serve": "serves until it is stopped",
    "gmpll demo": "has its own test",
    "python benchmarks/": "takes minutes to hours",
}
#: Blocks that may be marked as not run in all pages together.
FEW = 8
#: What the commands of a page must have left behind.
LEFT_BEHIND = {
    "README.md": ["resolved/report.html", "new-predicted.csv"],
    "docs/disambiguate.md": [
        "crowd/messages-resolved/report.html",
        "faces/faces-resolved/report.html",
        "regions/regions-resolved/report.html",
        "birds/syllables-resolved/report.html",
        "birds/syllables-predicted.csv",
    ],
    "docs/serving.md": ["birds/labels.csv"],
    "docs/start.md": ["digits-resolved/report.html", "digits-predicted.csv"],
}


class Block(NamedTuple):
    language: str
    body: str
    reason: str | None
    line: int


def pages():
    written = [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return sorted(page.relative_to(ROOT).as_posix() for page in written if page.exists())


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            found["language"].strip(),
            textwrap.dedent(found["body"]),
            found["reason"],
            text[: found.start("body")].count("\n"),
        )
        for found in BLOCK.finditer(text)
    ]


def pages_with(*languages):
    return [page for page in pages() if any(b.language in languages for b in blocks(page))]


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        known = block.language in (*RUN, *SHOWN) or block.language.startswith("{")
        assert known, f"{page}, line {block.line}: what is {block.language!r}?"


def test_few_blocks_are_left_out():
    assert sum(block.reason is not None for page in pages() for block in blocks(page)) <= FEW


# README.md has a test of its own, tests/test_readme.py, which looks at what the program finds.
@pytest.mark.parametrize(
    "page", [page for page in pages_with("python", "pycon") if page != "README.md"]
)
def test_programs_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__page__"}
    if any("import torch" in block.body for block in blocks(page)):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    for block in blocks(page):
        if block.reason is not None:
            continue
        if block.language == "python":
            exec(compile("\n" * block.line + block.body, page, "exec"), namespace)
        elif block.language == "pycon":
            run_session(block, page, namespace)


def run_session(block, page, namespace):
    session = doctest.DocTestParser().get_doctest(
        block.body, namespace, page, str(ROOT / page), block.line
    )
    assert session.examples, f"{page}, line {block.line}: a session has lines with >>>."
    session.globs = namespace  # what a session defines is there for the next block
    report = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        session, out=report.append, clear_globs=False
    )
    assert not report, "".join(report)


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_do_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    for block in blocks(page):
        if block.language == "console" and block.reason is None:
            for line in block.body.splitlines():
                run_command(line.removeprefix("$ "), monkeypatch, capsys)
    for name in LEFT_BEHIND.get(page, ()):
        assert (tmp_path / name).exists(), name


def write_tables(folder):
    """Write the tables of which the pages speak as your own."""
    rng = np.random.default_rng(0)
    kinds = np.arange(40) % 2
    items = pd.DataFrame(kinds[:, None] * 4 + rng.normal(size=(40, 2)), columns=["size", "age"])
    items.round(3).to_csv(folder / "new.csv", index=False)
    items["tags"] = ["cat|dog" if i % 3 else ["cat", "dog"][kind] for i, kind in enumerate(kinds)]
    items.to_csv(folder / "items.csv", index=False)


def run_command(line, monkeypatch, capsys):
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # settings of the environment
        words = words[1:]
    if not words:
        return
    command = " ".join(words)
    if any(command.startswith(begin) for begin in NOT_RUN) and "--table" not in words:
        check_command(words)
    elif words[0] == "python":
        assert words[1].startswith("examples/"), line
        runpy.run_path(str(ROOT / words[1]))["write_data"](*words[2:])
    else:
        assert words[0] == "gmpll", f"{line}: no test knows how to run this."
        monkeypatch.setattr("sys.argv", words)
        code = exit_code(gmpll.apps.cli.main)
        assert code == 0, f"{line}: {capsys.readouterr().err}"


def exit_code(program):
    try:
        program()
    except SystemExit as stop:
        return stop.code or 0
    return 0


def check_command(words):
    """See that what is not run could be: programs, targets, extras and options exist."""
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(rest) - {word for word in rest if "=" in word} <= set(targets), words
    elif program == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = set(project["optional-dependencies"])
        for asked in re.findall(r"gmpll\[([\w,]+)\]", " ".join(rest)):
            assert set(asked.split(",")) <= extras, words
    elif program == "python":
        assert (ROOT / rest[0]).exists(), words
    else:
        command = typer.main.get_command(gmpll.apps.cli.app).commands[rest[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        shown = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert shown <= options, words


@pytest.fixture
def extension(monkeypatch):
    """The parts of the site that are programs."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))

    def load(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        if "sphinx" in (DOCS / "_ext" / f"{name}.py").read_text():
            pytest.importorskip("sphinx", reason="the site needs the extra docs")
        return __import__(name)

    return load


needs_results = pytest.mark.skipif(
    not (ROOT / "results").exists(), reason="the folder of results is not here"
)


def typed_tables(page):
    """Tables of a page as lists of rows of cells."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        ]
        yield [row for row in rows if not re.fullmatch(r"[-: ]*", row[-1])]


@needs_results
def test_typed_accuracies_are_the_measured_ones(extension):
    tables = extension("result_tables").TABLES
    inductive, transductive = tables["inductive"](), tables["transductive"]()
    rows = next(rows for rows in typed_tables("results/README.md") if rows[0][1:2] == ["Lost"])
    assert len(rows) == 1 + len(inductive)
    for method, *cells in rows[1:]:
        for name, cell in zip(rows[0][1:], cells, strict=True):
            measured = [inductive.loc[method, name]]
            measured += [transductive.loc[method, name]] if method in transductive.index else []
            assert cell == " / ".join(figure.partition(" ")[0] for figure in measured)


@needs_results
def test_the_typed_ablation_is_the_measured_one():
    measured = pd.read_csv(ROOT / "results" / "ablation.csv")
    variants = list(dict.fromkeys(measured["variant"]))
    measured = measured.set_index(["variant", "dataset"])
    rows = next(rows for rows in typed_tables("docs/accuracy.md") if rows[0][:2] == ["", "Lost"])
    assert [variant for variant, *_ in rows[1:]] == variants
    for variant, *cells in rows[1:]:
        for name, cell in zip(rows[0][1:], cells, strict=True):
            row = measured.loc[(variant, name.lower())]
            figures = [float(figure) for figure in cell.split("/")]
            assert figures == pytest.approx([row.unseen, row.training], abs=6e-4)


@needs_results
def test_the_typed_regret_in_the_worlds_is_the_measured_one():
    runs = pd.read_csv(ROOT / "results" / "worlds" / "report.csv")
    rows = next(rows for rows in typed_tables("docs/accuracy.md") if rows[1][0] == "default")
    for figure, cell in zip(("unseen", "training"), rows[1][1:], strict=True):
        means = runs.groupby(["base", "world", "method"])[figure].mean().unstack()
        regret = 100 * (means.max(axis=1) - means["default"])
        assert figures_of(cell) == pytest.approx([regret.mean(), regret.max()], abs=0.051)


def figures_of(cell):
    """Numbers of a cell of a typed table."""
    return [float(figure) for figure in re.findall(r"-?\d*\.?\d+", cell)]


def confidence(setting, measure):
    """Where reliability.csv keeps a figure of the confidences."""
    return ("confidence", setting, "", measure)


def conformal(mode):
    return [("conformal", mode, "0.9", measure) for measure in ("coverage", "mean size")]


BEFORE, AFTER = "unseen rows, as they are", "unseen rows, temperature"
#: Second head of a table of docs/confidence.md -> what its columns hold.
RELIABILITY = {
    "accuracy": [
        [confidence(BEFORE, "accuracy")],
        [confidence(BEFORE, "mean confidence"), confidence(AFTER, "mean confidence")],
        [confidence(BEFORE, "ECE")],
        [confidence(AFTER, "ECE")],
        [confidence("unseen rows, by itself", "ECE")],
        [confidence(BEFORE, "Brier"), confidence(AFTER, "Brier")],
        [confidence("unseen rows, corrected", "ECE")],
        [confidence(f"training rows, {when}", "ECE") for when in ("as they are", "temperature")],
        [confidence("training rows, label_support_", "ECE")],
    ],
    "all": [
        *(
            [("answered", AFTER, share, "accuracy")]
            for share in ("1.0", "0.9", "0.8", "0.7", "0.5")
        ),
        [("rejection", "asked", "0.8", measure) for measure in ("coverage", "accuracy")],
    ],
    "guaranteed": [
        conformal(mode)
        for mode in ("guaranteed", "approximate", "approximate, cross", "optimistic", "known")
    ],
}


@needs_results
@pytest.mark.parametrize("head", RELIABILITY)
def test_the_typed_reliability_is_the_measured_one(head):
    measured = pd.read_csv(ROOT / "results" / "reliability.csv", dtype={"at": str}).fillna("")
    names = list(dict.fromkeys(measured["dataset"]))
    measured = measured[measured["part"] != "curve"]
    measured = measured.set_index(["dataset", "part", "setting", "at", "measure"])["value"]
    rows = next(rows for rows in typed_tables("docs/confidence.md") if rows[0][1] == head)
    assert [name for name, *_ in rows[1:]] == names
    for name, *cells in rows[1:]:
        for cell, places in zip(cells, RELIABILITY[head], strict=True):
            wanted = [measured[(name, *place)] for place in places]
            # Sizes of sets have two digits, all else three.
            tolerance = [6e-3 if place[-1] == "mean size" else 6e-4 for place in places]
            assert (np.abs(np.subtract(figures_of(cell), wanted)) <= tolerance).all()


@needs_results
def test_the_typed_learner_is_the_measured_one():
    measured = pd.read_csv(ROOT / "results" / "learner.csv")
    measured = measured.set_index(["dataset", "method", "setting"])
    tables = typed_tables("docs/train.md")
    rows = next(rows for rows in tables if rows[0][1:2] == ["Lost, alone"])
    assert {method for method, *_ in rows[1:]} == set(measured.index.get_level_values("method"))
    for method, *cells in rows[1:]:
        for head, cell in zip(rows[0][1:], cells, strict=True):
            name, setting = head.lower().split(", ")
            row = measured.loc[(name, method, setting)]
            assert figures_of(cell) == pytest.approx([row.unseen, row.training], abs=6e-4)


@needs_results
def test_the_typed_worth_of_knowledge_is_the_measured_one():
    measured = pd.read_csv(ROOT / "results" / "side_information.csv")
    measured = measured.groupby(["knowledge", "dataset"]).mean(numeric_only=True)
    rows = next(rows for rows in typed_tables("docs/side-information.md") if "lost" in rows[0])
    assert {name for name, *_ in rows[1:]} == set(measured.index.get_level_values("knowledge"))
    for knowledge, *cells in rows[1:]:
        for name, cell in zip(rows[0][1:], cells, strict=True):
            row = measured.loc[(knowledge, name)]
            wanted = [row["training"], row["same rows, sets only"], row["unseen"]]
            assert figures_of(cell) == pytest.approx(wanted, abs=6e-4)


@needs_results
def test_the_typed_batches_are_the_measured_ones():
    measured = pd.read_csv(ROOT / "results" / "incremental.csv").set_index(["dataset", "way"])
    rows = next(rows for rows in typed_tables("docs/incremental.md") if rows[0][1:2] == ["way"])
    assert [(name.lower(), way) for name, way, *_ in rows[1:]] == list(measured.index)
    for name, way, *cells in rows[1:]:
        row = measured.loc[(name.lower(), way)]
        wanted = row[["training", "unseen", "newest", "time"]].dropna().tolist()
        assert [f for cell in cells for f in figures_of(cell)] == pytest.approx(wanted, abs=6e-4)


@needs_results
@pytest.mark.parametrize(
    ("head", "file"),
    [("all settings", "criteria"), ("the nine", "choice"), ("balances", "balance")],
)
def test_the_typed_criteria_are_the_measured_ones(head, file):
    measured = pd.read_csv(ROOT / "results" / "study" / f"{file}.csv").groupby("criterion")
    rows = next(t for t in typed_tables("docs/accuracy.md") if t[0][0] == "criterion")
    typed = {row[0]: row[rows[0].index(head)] for row in rows[1:]}
    assert {criterion for criterion, cell in typed.items() if cell} == set(measured.groups)
    for criterion, part in measured:
        correlation, mean, worst = figures_of(typed[criterion])
        assert correlation == pytest.approx(part["rank correlation"].mean(), abs=6e-3)
        assert mean == pytest.approx(part["regret"].mean(), abs=6e-5)
        assert worst == pytest.approx(part["regret"].max(), abs=6e-4)


@needs_results
def test_the_typed_effect_of_the_balance_is_the_measured_one():
    fits = pd.read_csv(ROOT / "results" / "study" / "balances.csv.gz")
    means = fits[fits["dataset"] == "msrcv2"].groupby("balance").mean(numeric_only=True)
    text = " ".join((DOCS / "accuracy.md").read_text(encoding="utf-8").split())
    for column in ("unseen", "lift with prior", "set likelihood", "hidden singles"):
        none, half = (f"{means.loc[balance, column]:.3f}".lstrip("0") for balance in (0.0, 0.5))
        assert f"{'accuracy is' if column == 'unseen' else column} {none} and {half}" in text


@needs_results
def test_the_typed_study_is_the_measured_one():
    measured = pd.read_csv(ROOT / "results" / "study" / "ablation.csv").set_index("changed")
    rows = next(t for t in typed_tables("docs/accuracy.md") if t[0][0] == "changed")
    moves = (measured - measured.loc["nothing"]).abs().max(axis=1)
    assert [changed for changed, *_ in rows[1:]] == ["nothing", *moves[moves >= 0.05].index]
    for changed, *cells in rows[1:]:
        for name, cell in zip(["lost", "msrcv2", "birdsong", "fg-net", "corrupted"], cells,
                              strict=True):  # fmt: skip
            figures = [float(figure) for figure in cell.split("/")]
            wanted = [measured.loc[changed, f"{name} {kind}"] for kind in ("unseen", "training")]
            assert figures == pytest.approx(wanted, abs=6e-4)


@needs_results
def test_every_table_of_the_site_can_be_made(extension):
    for make in extension("result_tables").TABLES.values():
        table = make()
        assert table.shape[0] > 2
        assert not table.isna().to_numpy().any()


def test_the_reference_lists_every_public_name(extension):
    users, inside = extension("public_names").reference(
        "gmpll", ["cli", "report", "review"], ("gmpll.evidence.",)
    )
    text = users + inside
    for name in (name for name in gmpll.__all__ if not name.startswith("_")):
        assert re.search(rf"^   {name}$", text, flags=re.MULTILINE), name
    assert "   candidate_lift\n" in text


def test_links_of_the_repository_become_links_of_the_site(extension):
    change = extension("links").site_links
    assert change("[a](../results/README.md)", DOCS) == "[a](results.md)"
    assert change("[a](methods.md#x)", DOCS) == "[a](methods.md#x)"
    assert change("[a](not-written.md)", DOCS) == "a"
    assert change("![a](images/a.png) [b](https://x.org)", DOCS).startswith("![a](images/a.png)")


def test_formulas_are_mathml(extension):
    mathml = pytest.importorskip("latex2mathml") and extension("mathml")

    class Writer:
        body: list[str] = []  # noqa: RUF012

    class Node:
        def astext(self):
            return r"\mathbf x_i \tag{7}"

    writer = Writer()
    with pytest.raises(mathml.nodes.SkipNode):
        mathml.displayed_formula(writer, Node())
    assert writer.body[0].startswith('<div class="formula"><math')
    assert '<span class="paper-number">(7)</span>' in writer.body[0]
    assert "tag" not in writer.body[0]


def test_every_equation_of_the_paper_is_explained():
    text = (DOCS / "gm-pll.md").read_text(encoding="utf-8")
    assert re.findall(r"\\tag\{(\d+)\}", text) == [str(number) for number in range(1, 11)]
    for number in range(1, 5):
        assert f"OP ({number})" in text


def test_the_worked_example_follows_the_literal_algorithm():
    namespace = {}
    for block in blocks("docs/gm-pll.md"):
        if block.language == "pycon":
            run_session(block, "docs/gm-pll.md", namespace)
    X, mask = namespace["X"], namespace["mask"]
    literal = algorithm_1(X, mask, beta=namespace["beta"])
    assert namespace["matching"].probabilities == pytest.approx(literal, abs=1e-6)


@pytest.mark.parametrize("script", sorted(ROOT.glob("examples/gallery/*.py")), ids=lambda p: p.stem)
def test_an_example_is_fit_for_the_gallery(script, extension):
    source = script.read_text(encoding="utf-8")
    title, underline = ast.get_docstring(ast.parse(source)).splitlines()[:2]
    assert underline == "=" * len(title)
    assert script.stem in extension("reading_order").ORDER
    # The site is built without a network and without the field's data sets.
    assert not re.search(r"fetch_\w+|load_(real_world|uci|dataset)|GMPLL_DATA", source)
