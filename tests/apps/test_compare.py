"""Methods compared on data that the catalogue does not know."""

import io
import subprocess
import sys
from functools import wraps

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import gmpll
from gmpll.apps.cli import app
from gmpll.apps.errors import UserError
from gmpll.apps.experiments import ExperimentError, expand, read_declaration, run, scores
from gmpll.apps.experiments.own_data import read_own
from gmpll.apps.experiments.progress import RunProgress
from gmpll.apps.experiments.store import RunFolder
from gmpll.datasets import make_partial_label_problem
from gmpll.experiments import compare
from gmpll.metrics import row_lifts

METHODS = ("PL-KNN", "Random candidate")
QUICK = {"methods": METHODS, "folds": 2, "tune": False}


@pytest.fixture
def silent():
    return RunProgress(Console(file=io.StringIO()))


@pytest.fixture
def problem():
    return make_partial_label_problem(n_samples=60, n_features=5, random_state=0)


@pytest.fixture
def archive(problem, tmp_path):
    """Write an archive with the arrays that are named."""

    def write(name, *keys, **more):
        arrays = {"X": problem.data, "S": problem.candidates.astype(int), "y": problem.target}
        path = tmp_path / name
        np.savez(path, **{key: arrays[key] for key in keys}, **more)
        return path

    return write


def command(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_it_can_be_had_by_its_public_name():
    assert gmpll.experiments.compare is compare


def test_arrays_with_truth(problem, silent):
    found = compare(problem.data, problem.candidates, problem.target, progress=silent, **QUICK)
    assert found.report is None
    assert found.folder is None
    assert found.scores["status"].tolist() == ["ok"] * 4
    assert found.scores[["inductive", "transductive"]].notna().all(axis=None)
    assert found.scores["candidate_lift"].isna().all()
    first = found.ranking.iloc[0]
    assert (first["method"], first["average_rank"], first["data_sets"]) == ("PL-KNN", 1.0, 1)
    mean = found.scores.groupby("method")["inductive"].mean()["PL-KNN"]
    assert first["inductive"] == pytest.approx(mean)


def test_without_truth_methods_are_compared_by_the_candidate_lift(problem, tmp_path, silent):
    out = tmp_path / "run"
    found = compare(problem.data, problem.candidates, out=out, progress=silent, **QUICK)
    assert found.scores[["inductive", "transductive"]].isna().all(axis=None)
    folder, mask = RunFolder(out), np.asarray(problem.candidates, dtype=bool)
    for job, lift in zip(folder.jobs(), found.scores["candidate_lift"], strict=True):
        result = folder.load(job)
        frequency = mask[result.train_rows].mean(axis=0)
        terms = row_lifts(mask[result.test_rows], result.predicted, frequency)
        assert lift == pytest.approx(terms.mean())
    text = found.report.read_text(encoding="utf-8")
    assert "Sets without true labels: candidate lift" in text
    assert "nductive accuracy" not in text
    assert "paper" not in text.partition("<body>")[2]


def test_the_ceiling_is_left_out_where_the_truth_is(problem, silent):
    found = compare(
        problem.data, problem.candidates, folds=2, tune=False, progress=silent,
        methods=("Full supervision", "Any candidate"),
    )  # fmt: skip
    status = found.scores.groupby("method")["status"].unique()
    assert status["Any candidate"].tolist() == ["ok"]
    assert status["Full supervision"].tolist() == ["failed"]
    assert (
        "lacks true labels, which Full supervision is trained on" in found.scores["error"].iloc[0]
    )


def test_a_row_whose_truth_is_missing_is_not_scored(problem, silent):
    truth = problem.target.astype(object)
    truth[::2] = None
    found = compare(problem.data, problem.candidates, truth, progress=silent, **QUICK)
    whole = compare(problem.data, problem.candidates, problem.target, progress=silent, **QUICK)
    assert found.scores["inductive"].notna().all()
    assert (found.scores["inductive"] != whole.scores["inductive"]).any()


def test_plain_labels_get_candidates(archive, tmp_path, silent):
    found = compare(archive("plain.npz", "X", "y"), p=[0.5], r=[2], progress=silent, **QUICK)
    assert found.scores["experiment"].unique().tolist() == ["controlled"]
    assert found.scores["p"].unique().tolist() == [0.5]
    assert found.scores["dataset"].unique().tolist() == ["plain"]


def test_a_table_with_its_truth_in_a_column(problem, tmp_path, silent):
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    frame = pd.DataFrame(problem.data, columns=list("abcde"))
    frame["tags"] = ["|".join(names[row]) for row in np.asarray(problem.candidates, dtype=bool)]
    frame["correct"] = names[problem.target]
    frame.to_csv(tmp_path / "Animals.csv", index=False)
    of_file = compare(tmp_path / "Animals.csv", truth="correct", progress=silent, **QUICK)
    of_frame = compare(frame, truth="correct", progress=silent, **QUICK)
    assert of_file.scores["dataset"].unique().tolist() == ["animals"]
    neighbors = [found.scores.query("method == 'PL-KNN'") for found in (of_file, of_frame)]
    assert neighbors[0]["inductive"].tolist() == neighbors[1]["inductive"].tolist()
    # The truth is no feature: a plain nearest neighbour would be right nearly always.
    assert of_file.ranking["inductive"].iloc[0] < 0.9


def test_a_table_of_plain_labels_gets_candidates(problem, silent):
    frame = pd.DataFrame(problem.data, columns=list("abcde"))
    frame["correct"] = [f"class {label}" for label in problem.target]
    found = compare(frame, truth="correct", p=[0.5], r=[1], name="Plain", progress=silent, **QUICK)
    assert found.scores["status"].unique().tolist() == ["ok"]
    assert found.scores["dataset"].unique().tolist() == ["plain"]


@pytest.fixture
def voted(problem):
    """A table with a column for each of three annotators, the second of whom is often wrong."""
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(problem.data, columns=list("abcde"))
    for who, wrong in (("anna", 0.1), ("bjoern", 0.6), ("carla", 0.1)):
        shifted = (problem.target + rng.integers(1, 5, len(frame))) % 5
        said = names[np.where(rng.random(len(frame)) < wrong, shifted, problem.target)]
        frame[who] = np.where(rng.random(len(frame)) < 0.1, "", said)
    frame.loc[frame[["anna", "bjoern", "carla"]].eq("").all(axis=1), "anna"] = "ant"
    frame["correct"] = names[problem.target]
    return frame


ANNOTATORS = ("anna", "bjoern", "carla")


def test_a_table_with_a_column_for_each_annotator(voted, tmp_path, silent):
    file, out = tmp_path / "votes.csv", tmp_path / "run"
    voted.to_csv(file, index=False)
    options = {"truth": "correct", "annotators": ANNOTATORS, "progress": silent, **QUICK}
    of_file = compare(file, out=out, **{**options, "methods": ("PL-KNN", "gmpll")})
    assert of_file.scores["status"].unique().tolist() == ["ok"]
    kept = read_own(out / "data" / "votes.npz")
    names = np.array([*kept.target_names, ""])
    for row, cells in enumerate(voted[list(ANNOTATORS)].to_numpy()):
        assert set(names[:-1][kept.candidates[row]]) == set(cells) - {""}
        assert sorted(names[kept.votes[row]]) == sorted(cells)
    done = command(
        file, "--truth", "correct", "--annotators", "anna,bjoern,carla", "--methods",
        "PL-KNN,gmpll", "--folds", 2, "--jobs", 1, "--no-tune", "--out", tmp_path / "again",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    again = scores(tmp_path / "again")
    assert again["inductive"].tolist() == of_file.scores["inductive"].tolist()


def test_who_voted_reaches_the_methods_that_take_it(voted, tmp_path, silent, monkeypatch):
    given = {}

    def kept(name, fit):
        @wraps(fit)
        def with_record(self, X, y, **more):
            given[name] = y
            return fit(self, X, y, **more)

        return with_record

    for name, method in (("gmpll", gmpll.PartialLabelClassifier), ("PL-KNN", gmpll.PLKNN)):
        monkeypatch.setattr(method, "fit", kept(name, method.fit))
    methods = {**QUICK, "methods": ("gmpll", "PL-KNN")}
    compare(voted, truth="correct", annotators=ANNOTATORS, progress=silent, **methods)
    assert sorted(given["gmpll"].annotators) == [0, 1, 2]
    assert given["PL-KNN"].dtype == bool
    several = voted.assign(anna=voted["anna"].where(voted["anna"] == "", "ant|bee"))
    compare(several, truth="correct", annotators=ANNOTATORS, progress=silent, **methods)
    assert given["gmpll"].dtype == bool  # a table of one label for each annotator cannot hold it


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_declaration_takes_tables(voted, tmp_path, silent, suffix):
    file = tmp_path / f"Votes{suffix}"
    voted.to_csv(file, index=False) if suffix == ".csv" else voted.to_parquet(file)
    (tmp_path / "run.toml").write_text(
        f"""
        [[experiment]]
        kind = "real-world"
        datasets = ["Votes{suffix}"]
        methods = ["PL-KNN"]
        folds = 2

        [[experiment]]
        kind = "crowd"
        datasets = ["Votes{suffix}"]
        methods = ["gmpll (votes only)", "PL-KNN"]
        folds = 1

        [tables."Votes{suffix}"]
        truth = "correct"
        annotators = ["anna", "bjoern", "carla"]
        """
    )
    out = tmp_path / "run"
    declared = read_declaration(tmp_path / "run.toml")
    assert run(declared, out, progress=silent).done == 4
    found = scores(out)
    assert found["status"].unique().tolist() == ["ok"], found["error"].tolist()
    assert found["dataset"].unique().tolist() == ["votes"]
    assert (found["transductive"] > 0.5).all()
    same = compare(
        file, truth="correct", annotators=ANNOTATORS, progress=silent, **{**QUICK, "seeds": (0,)}
    )
    neighbors = [table.query("experiment == 'real-world' and method == 'PL-KNN'")
                 for table in (found, same.scores)]  # fmt: skip
    assert neighbors[0]["inductive"].tolist() == neighbors[1]["inductive"].tolist()
    run(declared, out, progress=silent)
    assert "0 jobs to run" in silent.console.file.getvalue()


def test_a_declared_table_of_plain_labels_gets_candidates(voted, tmp_path, silent):
    voted.drop(columns=list(ANNOTATORS)).to_csv(tmp_path / "plain.csv.gz", index=False)
    (tmp_path / "run.toml").write_text(
        """
        [[experiment]]
        kind = "controlled"
        datasets = ["plain.csv.gz"]
        p = [0.5]
        r = [1]
        methods = ["PL-KNN"]
        folds = 2

        [tables."plain.csv.gz"]
        truth = "correct"
        """
    )
    out = tmp_path / "run"
    assert run(read_declaration(tmp_path / "run.toml"), out, progress=silent).failed == 0
    assert scores(out)["dataset"].tolist() == ["plain", "plain"]


def test_arrays_resume_too(problem, tmp_path, silent):
    arguments = (problem.data, problem.candidates, problem.target)
    for _ in range(2):
        found = compare(*arguments, name="mine", out=tmp_path, progress=silent, **QUICK)
    assert len(found.scores) == len(list((tmp_path / "jobs").iterdir())) == 4
    assert found.scores["dataset"].unique().tolist() == ["mine"]
    with pytest.raises(ExperimentError, match="holds results on another data set named mine"):
        compare(*arguments[:2], name="mine", out=tmp_path, progress=silent, **QUICK)


def test_a_run_goes_on_where_it_was(archive, tmp_path, silent):
    file, out = archive("mine.npz", "X", "S", "y"), tmp_path / "run"
    compare(file, out=out, progress=silent, **{**QUICK, "methods": ("PL-KNN",)})
    before = {path: path.stat().st_mtime_ns for path in (out / "jobs").iterdir()}
    file.unlink()  # the run keeps its data
    compare(out / "data" / "mine.npz", out=out, progress=silent, **QUICK)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list((out / "jobs").iterdir())) == 4
    assert len(scores(out)) == 4


def test_a_name_with_a_dot_is_still_a_name(archive, tmp_path, silent):
    out = tmp_path / "run"
    compare(archive("my.data.npz", "X", "S", "y"), out=out, progress=silent, **QUICK)
    kept = RunFolder(out).declaration()
    assert kept.experiments[0].datasets == ("my.data",)
    assert run(kept, out, progress=silent).done == 4


def test_other_data_of_the_same_name_is_refused(archive, tmp_path, silent):
    out = tmp_path / "run"
    compare(archive("mine.npz", "X", "S", "y"), out=out, progress=silent, **QUICK)
    with pytest.raises(ExperimentError, match="holds results on another data set named mine"):
        compare(archive("mine.npz", "X", "S"), out=out, progress=silent, **QUICK)


def test_a_declaration_takes_files_that_lie_beside_it(archive, tmp_path, silent):
    archive("mine.npz", "X", "S", "y")
    file = tmp_path / "run.toml"
    file.write_text(
        '[[experiment]]\nkind = "real-world"\ndatasets = ["mine.npz"]\n'
        'methods = ["PL-KNN"]\nfolds = 2\n'
    )
    out = tmp_path / "run"
    assert run(read_declaration(file), out, progress=silent).done == 2
    assert scores(out)["dataset"].tolist() == ["mine", "mine"]
    assert [job.dataset for job in expand(RunFolder(out).declaration())] == ["mine", "mine"]


def test_on_the_command_line(archive, tmp_path):
    file, out = archive("mine.npz", "X", "S", "y"), tmp_path / "run"
    done = command(
        file, "--methods", "PL-KNN,Random candidate", "--folds", 2, "--jobs", 1, "--no-tune",
        "--out", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[:2] == ["PL-KNN", "1.000"]
    page = (out / "report" / "index.html").read_text(encoding="utf-8")
    assert "Data sets of this run" in page
    assert ">60<" in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such.npz"], r"There is no data file .*no-such\.npz"),
        (["glass.npz"], "has the name of a data set that gmpll knows"),
        (["broken.npz"], "it is no sound NumPy archive"),
        (["empty.npz"], "neither candidates .S. nor a true label|has no array"),
        (["mine.npz", "--methods", "SVM"], "There is no method 'SVM'; the methods are"),
        (["mine.npz", "--p", "0.5"], "p and r belong together"),
        (["mine.npz", "--p", "half", "--r", "1"], "--p is 'half': give numbers"),
        (["mine.npz", "--p", "2", "--r", "1"], "p must lie between 0 and 1"),
        (["mine.npz", "--folds", "100"], "has 60 rows, fewer than the 100 folds"),
        (["mine.npz", "--truth", "y"], "columns are named for tables only"),
        (["lost", "--data-home", "nowhere"], "The data set lost is not in the folder nowhere: see"),
        (["lots"], "lots"),
        (["mine.npz", "--methods", ","], "--methods is empty"),
        (["table.csv", "--annotators", "a,who"], "who"),
        (["table.csv", "--annotators", "a,tags", "--candidates", "tags"], "leave out all but one"),
        (["mine.npz", "--annotators", "a,b"], "columns are named for tables only"),
        (["table.csv", "--truth", "right"], "no column 'right' for the true labels; it has"),
        (["table.txt"], "does not end in|cannot be read|no file|not there|exist"),
    ],
)
def test_bad_input_is_answered_with_one_sentence(
    archive, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    archive("mine.npz", "X", "S", "y")
    archive("glass.npz", "X", "S", "y")
    archive("empty.npz", "X")
    (tmp_path / "broken.npz").write_bytes(b"PK but no archive")
    pd.DataFrame({"a": [1, 2, 3], "tags": ["x|y", "x", "y"]}).to_csv("table.csv", index=False)
    failed = command(*arguments, "--jobs", 1, "--out", tmp_path / "run")
    assert isinstance(failed.exception, UserError), failed.output
    with pytest.raises(UserError, match=sentence):
        raise failed.exception


def test_a_kill_loses_nothing_that_was_done(archive, tmp_path):
    file, out = archive("mine.npz", "X", "S", "y"), tmp_path / "run"
    arguments = [
        sys.executable, "-m", "gmpll", "compare", str(file), "--methods", "PL-KNN,IPAL,CLPL",
        "--folds", "5", "--jobs", "1", "--out", str(out),
    ]  # fmt: skip
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("1/"):
            break
    process.kill()
    process.communicate()
    kept = {path.name for path in (out / "jobs").glob("[!.]*.npz")}
    assert kept
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert f"{len(kept)} were done before" in done.stderr
    assert len(scores(out)) == 15
