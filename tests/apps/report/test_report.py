from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from gmpll.apps.pages.tables import MISSING, Cell, Row, Table
from gmpll.apps.report import figures, ranking, write_report
from gmpll.apps.report.formats import latex_text, markdown_text, to_latex, to_markdown
from gmpll.apps.report.names import BASELINES
from gmpll.apps.report.scores_table import SCORE_COLUMNS

HEADINGS = (
    "Overview",
    "Data sets",
    "Ranking",
    "Controlled sets: accuracy over p",
    "Controlled sets: win/tie/loss",
    "Real-world sets: inductive accuracy",
    "Real-world sets: transductive accuracy",
    "Ordered labels: mean absolute error",
    "Critical differences",
    "Sensitivity to β",
    "Sensitivity to r",
    "Running and testing times",
    "Partial results",
    "Failed jobs",
    "Provenance",
)
HOSTILE = (
    "<script>alert(1)</script>",
    '" onload="alert(2)" x="',
    "</svg><img src=x onerror=alert(3)>",
    "$\\frac{",
    "_hidden",
    "a|b `c` *d* [e](http://f)",
    "\\input{/etc/passwd} 100% & #1_{x}^~",
    "{{ 7 * 7 }} {% raw %}",
    "control \x00\x1b and \x85",
    "../../outside",
    "x" * 300,
)


class _Outline(HTMLParser):
    """Collect what the checks need from a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self._in_heading = False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._in_heading = tag == "h2"
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)

    def handle_endtag(self, tag):
        self._in_heading = False

    def handle_data(self, data):
        if self._in_heading:
            self.headings.append(data)


def outline(page: Path) -> _Outline:
    parser = _Outline()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_full_page_has_every_section_filled(full_report):
    assert tuple(outline(full_report).headings[1:]) == HEADINGS  # the first is "Contents"
    text = full_report.read_text(encoding="utf-8")
    assert "MemoryError: unable to allocate 9.1 GiB" in text
    assert "3 of 5 folds" in text
    assert "9.9.9" in text


def test_page_needs_nothing_from_outside(full_report):
    found = outline(full_report)
    assert not found.tags & {"script", "iframe", "object", "embed", "img"}
    inside = [link for link in found.links if link.startswith("#")]
    assert set(inside) <= {f"#{name}" for name in found.ids}
    files = [link for link in found.links if not link.startswith(("#", "data:"))]
    assert files
    assert all((full_report.parent / link).is_file() for link in files)


def test_identifiers_are_unique_across_drawings(full_report):
    ids = outline(full_report).ids
    assert len(ids) == len(set(ids))


def test_every_table_has_three_files(full_report):
    names = {path.stem for path in (full_report.parent / "tables").iterdir()}
    assert {
        "overview",
        "data",
        "ranking",
        "curves-r1",
        "curves-r2",
        "curves-r3",
        "win-tie-loss",
        "win-tie-loss-corrected",
        "inductive",
        "transductive",
        "absolute-error-real-world",
        "absolute-error-controlled",
        "ranks-controlled-inductive",
        "sensitivity-beta",
        "sensitivity-r",
        "times",
        "times-of-methods",
        "incomplete",
        "failures",
    } <= names
    for name in names:
        for suffix in (".csv", ".md", ".tex"):
            assert (full_report.parent / "tables" / f"{name}{suffix}").stat().st_size > 0


def test_csv_holds_the_digits_behind_the_page(full_report, made_up):
    facts = pd.read_csv(full_report.parent / "tables" / "inductive.csv")
    scores = made_up.full_scores()
    ours = scores.query("experiment == 'real-world' and dataset == 'lost' and method == 'GM-PLL'")
    row = facts.query("dataset == 'lost' and method == 'GM-PLL'").iloc[0]
    assert row["mean"] == pytest.approx(ours["inductive"].mean(), rel=1e-12)
    assert f"<strong>{row['mean']:.3f} ± {row['std']:.3f}</strong>" in full_report.read_text(
        "utf-8"
    )


def test_absolute_errors_are_laid_out_by_method_and_by_setting(full_report, made_up):
    tables = full_report.parent / "tables"
    facts = pd.read_csv(tables / "absolute-error-real-world.csv")
    scores = made_up.full_scores().query("experiment == 'real-world' and method == 'IPAL'")
    row = facts.query("rows == 'training' and method == 'IPAL'").iloc[0]
    errors = scores.query("dataset == 'fg-net'")["transductive_mae"]
    assert (row["mean"], row["std"]) == pytest.approx((errors.mean(), errors.std()), rel=1e-12)
    by_method = (tables / "absolute-error-real-world.md").read_text(encoding="utf-8")
    assert "| Method | FG-NET, unseen rows | FG-NET, training rows |" in by_method
    assert f"{row['mean']:.2f} ± {row['std']:.2f} •" in by_method
    ceiling = next(line for line in by_method.splitlines() if "Full supervision" in line)
    assert ceiling.endswith(f"| {MISSING} |")  # it finds no labels of training rows
    by_setting = (tables / "absolute-error-controlled.md").read_text(encoding="utf-8")
    assert "| Abalone (p = 0.4, r = 2), unseen rows | **" in by_setting
    assert "Glass" not in by_setting
    assert "| failed" in by_setting  # PL-LEAF, r = 3


def test_drawings_are_well_formed_described_and_readable(full_report):
    drawings = sorted((full_report.parent / "figures").iterdir())
    assert {"curves-r1.svg", "sensitivity-r.svg", "ranks-controlled-inductive.svg"} <= {
        path.name for path in drawings
    }
    for path in drawings:
        root = ET.parse(path).getroot()
        assert root.get("role") == "img"
        assert root[0].tag.endswith("title")
        assert root[0].text
        assert root[1].tag.endswith("desc")
    curves = (full_report.parent / "figures" / "curves-r1.svg").read_text(encoding="utf-8")
    for method in ("GM-PLL", "PL-ECOC", "LSB-CMM"):
        assert f">{method}</text>" in curves
    assert "by the paper's formula" in html.unescape(
        (full_report.parent / "figures" / "sensitivity-r.svg").read_text(encoding="utf-8")
    )


def test_same_scores_make_the_same_files(made_up, tmp_path):
    scores = made_up.full_scores().query("experiment == 'sensitivity'")
    pages = [write_report(scores, tmp_path / name, provenance={}) for name in "ab"]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert not list(tmp_path.rglob(".*"))  # no drafts stay behind


def test_empty_scores_make_a_page_of_one_sentence(tmp_path):
    nothing = pd.DataFrame(columns=list(SCORE_COLUMNS))
    page = write_report(nothing, tmp_path, provenance={})
    assert outline(page).headings == ["Contents", "Overview"]
    assert "The table of scores is empty." in page.read_text(encoding="utf-8")


def test_one_job_is_enough(made_up, tmp_path):
    page = write_report(made_up.table(made_up.job()), tmp_path, provenance={})
    text = page.read_text(encoding="utf-8")
    assert "<strong>0.500</strong>" in text
    assert "Real-world sets: transductive accuracy" not in text
    assert "In the paper, but not in these scores: PL-SVM, CLPL" in text


def test_only_failures(made_up, tmp_path):
    experiments = ("real-world", "controlled", "sensitivity", "timing")
    rows = [
        made_up.failed(made_up.job(experiment=experiment, p=0.1, r=1), "RuntimeError: broken")
        for experiment in experiments
    ]
    page = write_report(made_up.table(*rows), tmp_path, provenance={})
    assert page.read_text(encoding="utf-8").count("RuntimeError: broken") == len(experiments)
    assert outline(page).headings[-2:] == ["Partial results", "Failed jobs"]


def test_hostile_names_stay_text(made_up, tmp_path):
    rows = []
    for place, name in enumerate(HOSTILE):
        for fold in (0, 1, 2):
            for facts in (
                {"experiment": "real-world", "dataset": name},
                {"experiment": "controlled", "dataset": name, "p": 0.1, "r": 1},
                {"experiment": "sensitivity", "dataset": name, "parameter": "r", "value": 2},
                {"experiment": "timing", "dataset": name},
                {"experiment": name},
            ):
                for method in ("GM-PLL", "CLPL", name):
                    accuracy = 0.5 + place / 50 + fold / 100
                    rows.append(made_up.job(**facts, method=method, fold=fold, inductive=accuracy))
        rows.append(made_up.failed(made_up.job(fold=3, method=name), error=name))
    folder = tmp_path / "report"
    page = write_report(made_up.table(*rows), folder, provenance={name: name for name in HOSTILE})
    found = outline(page)
    assert not found.tags & {"script", "img"}
    assert not {name for name in found.attributes if name.startswith("on")}
    text = page.read_text(encoding="utf-8")
    assert "{{ 7 * 7 }}" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert {path.name for path in tmp_path.iterdir()} == {"report"}
    for drawing in (folder / "figures").iterdir():
        assert not {element.tag.rpartition("}")[2] for element in ET.parse(drawing).iter()} & {
            "script",
            "img",
        }
    for source in (folder / "tables").glob("*.tex"):
        assert r"\input" not in source.read_text(encoding="utf-8")


def test_latex_and_markdown_layout():
    table = Table(
        "t",
        "A & B",
        ["Data_set", "x"],
        [
            Row([Cell("[a]"), Cell("0.5 ± 0.1", mark="•", strong=True)]),
            Row(
                [Cell("b|c"), Cell(MISSING, detail="paper 0.4", note="1 of 2 folds")], is_apart=True
            ),
        ],
        pd.DataFrame({"x": [0.5]}),
        ["Note 100%."],
    )
    latex = to_latex(table)
    assert r"{}[a] & \textbf{0.5 $\pm$ 0.1} $\bullet$ \\" in latex
    assert r"\shortstack{--\\{\scriptsize paper 0.4, 1 of 2 folds}}" in latex
    assert latex.count(r"\midrule") == 2
    assert r"Note 100\%." in latex
    markdown = to_markdown(table).splitlines()
    assert markdown[2:6] == [
        r"| Data\_set | x |",
        "| :-- | --: |",
        r"| \[a\] | **0.5 ± 0.1** • |",
        rf"| b\|c | {MISSING}<br>paper 0.4, 1 of 2 folds |",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_escapes_leave_nothing_special(text):
    markdown = markdown_text(text)
    assert "\n" not in markdown
    assert not re.search(r"(?<!\\)[|`*_<>]", markdown)
    latex = latex_text(text)
    assert not re.search(r"(?<!\\)[%&#_$]", re.sub(r"\$[^$]*\$", "", latex))


def test_missing_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks the column"):
        write_report(pd.DataFrame({"method": ["GM-PLL"]}), tmp_path, provenance={})
    assert not list(tmp_path.iterdir())


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found to render the page with")
def test_a_browser_shows_the_page(full_report, tmp_path):
    def browse(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                str(CHROMIUM),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                f"--user-data-dir={tmp_path / 'profile'}",
                "--enable-logging=stderr",
                *flags,
                full_report.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    dumped = browse("--dump-dom")
    for heading in HEADINGS:
        assert f"<h2>{heading}</h2>" in dumped.stdout
    picture = tmp_path / "page.png"
    shot = browse(f"--screenshot={picture}", "--window-size=1200,2000")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "CONSOLE" not in dumped.stderr + shot.stderr


def test_bars_of_a_rank_diagram_run_from_left_to_right(full_report):
    # The library draws them in the order of a set of names, which differs between processes.
    svg = (full_report.parent / "figures" / "ranks-controlled-inductive.svg").read_text("utf-8")
    bars = re.findall(r'<path d="([^"]*)"[^>]*stroke: var\(--series-1', svg)
    assert bars
    for bar in bars:
        places = [float(x) for x in re.findall(r"[ML] ([\d.]+)", bar)]
        assert len(places) > 1
        assert places == sorted(places)


def test_rank_diagrams_are_the_same_in_every_process(tmp_path):
    script = tmp_path / "draw.py"
    script.write_text(
        """
import numpy as np, pandas as pd
from gmpll.apps.experiments.methods import known_methods
from gmpll.apps.report.facts import rank_facts
from gmpll.apps.report.figures import rank_figure
from gmpll.apps.report.scores_table import SCORE_COLUMNS, checked_scores

rng, names = np.random.default_rng(0), list(known_methods())[:14]
jobs = [
    {"experiment": "real-world", "dataset": f"set {d}", "method": name, "seed": 0, "fold": 0,
     "inductive": round(0.12 * rank + 0.25 * rng.normal(), 1), "status": "ok"}
    for d in range(9) for rank, name in enumerate(names)
]
scores = checked_scores(pd.DataFrame(jobs, columns=list(SCORE_COLUMNS)))
print(rank_figure(rank_facts(scores, "real-world", "inductive"), "ranks", "Ranks").svg)
"""
    )
    drawn = {
        subprocess.run(
            [sys.executable, script], env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True, text=True, check=True,
        ).stdout
        for salt in ("1", "2", "3")
    }  # fmt: skip
    assert len(drawn) == 1
    assert drawn.pop().count("var(--series-1") > 3  # several bars, whose order could differ


def test_crowd_sets_have_critical_differences(made_up, tmp_path):
    shares = {"GLAD": 0.7, "SURE": 0.8, "PRODEN": 0.9}
    jobs = [
        {"dataset": dataset, "method": method, "transductive": share, "inductive": share}
        for dataset in ("labelme", "sentiment-polarity")
        for method, share in shares.items()
    ]
    scores = made_up.table(*(made_up.job(experiment="crowd", **job) for job in jobs))
    page = write_report(scores, tmp_path, provenance={})
    for measure in ("transductive", "inductive"):
        table = tmp_path / "tables" / f"ranks-crowd-{measure}.csv"
        assert pd.read_csv(table)["method"].tolist() == ["PRODEN", "SURE", "GLAD"]
        assert (tmp_path / "figures" / f"ranks-crowd-{measure}.svg").exists()
    assert "Crowd sets, transductive accuracy" in page.read_text(encoding="utf-8")


def _real_world(made_up, **figures):
    """Three folds of every method on one data set that the paper does not have."""
    return [
        made_up.job(dataset="mine", method=method, fold=fold, inductive=figure + fold / 100)
        for method, figure in figures.items()
        for fold in range(3)
    ]


def test_a_run_on_other_data_has_a_ranking_and_says_nothing_of_the_paper(made_up, tmp_path):
    rows = _real_world(made_up, CLPL=0.5, IPAL=0.7)
    page = write_report(made_up.table(*rows), tmp_path, provenance={})
    text = page.read_text(encoding="utf-8")
    assert outline(page).headings == ["Contents", "Overview", "Ranking", "Inductive accuracy"]
    sentence = "IPAL has the best average rank of 2 methods on unseen rows: 1.00 over 1 data set."
    assert sentence in text
    assert "paper" not in text.partition("<body>")[2]
    assert "•" not in text  # neither gmpll nor GM-PLL ran
    ranking = pd.read_csv(tmp_path / "tables" / "ranking.csv")
    assert ranking["method"].tolist() == ["IPAL", "CLPL"]
    assert ranking["average_rank"].tolist() == [1.0, 2.0]
    assert ranking["inductive"].tolist() == pytest.approx([0.71, 0.51])


def test_methods_that_share_the_first_rank_are_both_named(made_up, tmp_path):
    rows = _real_world(made_up, CLPL=0.7, IPAL=0.7, M3PL=0.1)
    text = write_report(made_up.table(*rows), tmp_path, provenance={}).read_text(encoding="utf-8")
    assert "CLPL and IPAL share the best average rank of 3 methods on unseen rows: 1.50" in text


def test_a_method_that_lacks_a_data_set_is_not_ranked(made_up, tmp_path):
    rows = _real_world(made_up, CLPL=0.5, IPAL=0.7)
    rows += [row | {"dataset": "other"} for row in rows]
    rows += _real_world(made_up, M3PL=0.9)
    found = ranking(made_up.table(*rows)).set_index("method")
    assert found["average_rank"].dropna().to_dict() == {"IPAL": 1.0, "CLPL": 2.0}


@pytest.mark.parametrize(("shares", "drawn"), [((0.5,), "Dots for"), ((0.1, 0.5), "Line charts")])
def test_one_p_is_no_curve(made_up, tmp_path, shares, drawn):
    rows = [
        made_up.job(experiment="controlled", dataset="glass", method=method, p=p, r=1, fold=fold)
        for method in ("CLPL", "Random candidate", "Any candidate")
        for p in shares
        for fold in (0, 1)
    ]
    page = write_report(made_up.table(*rows), tmp_path, provenance={})
    svg = (tmp_path / "figures" / "curves-r1.svg").read_text(encoding="utf-8")
    assert drawn in svg
    assert ("accuracy over p" in page.read_text(encoding="utf-8")) == (len(shares) > 1)


def test_baselines_are_told_apart():
    styles = figures._line_styles([*BASELINES])
    looks = {(styles[name]["marker"], styles[name]["linestyle"]) for name in BASELINES}
    assert len(looks) == len(BASELINES) == len({styles[name]["marker"] for name in BASELINES})


def test_the_data_sets_of_a_run_are_listed_and_no_others(full_report, made_up, tmp_path):
    page = write_report(made_up.table(made_up.job()), tmp_path, provenance={})
    assert pd.read_csv(tmp_path / "tables" / "data.csv")["dataset"].tolist() == ["lost"]
    assert "FG-NET" not in page.read_text(encoding="utf-8").partition('id="inductive"')[0]
    ran = pd.read_csv(full_report.parent / "tables" / "data.csv")["dataset"]
    assert len(ran) == 13
