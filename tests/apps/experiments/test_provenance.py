import json
import platform
import sys

from gmpll.apps.experiments import Declaration, Experiment
from gmpll.apps.experiments.provenance import _commit, collect_provenance, provenance_of_run
from gmpll.apps.experiments.store import RunFolder


def test_it_can_be_written_down_and_names_no_machine():
    text = json.dumps(collect_provenance())
    assert platform.python_version() in text
    assert platform.node() == "" or platform.node() not in text


def test_the_command_is_told_without_the_folder_of_the_program(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/some/where/gmpll", "reproduce", "--quick"])
    assert collect_provenance()["command"] == "gmpll reproduce --quick"


def test_outside_a_repository_there_is_no_commit(tmp_path):
    assert _commit(tmp_path) == ""


def test_a_run_tells_its_protocol(tmp_path):
    iris = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
    folder = RunFolder(tmp_path)
    folder.declare(Declaration((iris,)))
    folder.note_start(collect_provenance())
    facts = provenance_of_run(folder)
    assert facts["starts"] == 1
    assert facts["protocol"] == {"controlled (iris)": "3 folds, seed 0, not tuned"}
