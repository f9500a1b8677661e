"""Reading a file executes nothing that is in it."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import zipfile

import numpy as np
import pytest

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Store
from gmpll.apps.experiments import Declaration, Experiment, ExperimentError
from gmpll.apps.experiments.declaration import read_declaration
from gmpll.apps.experiments.store import RunFolder
from gmpll.apps.tables import InputError
from gmpll.apps.tables.features import read_embeddings
from gmpll.apps.tables.saved import MODEL_FILE, load_model, read_matching
from gmpll.apps.tables.tables import read_table
from gmpll.datasets import DatasetFormatError
from gmpll.datasets.matfile import read_mat

IDS = np.array(["1"])


def test_the_bait_executes_where_it_is_unpickled(pickled, mark):
    """Without this, tests in which nothing happens would say nothing."""
    pickle.loads(pickled)
    assert mark.exists()
    mark.unlink()


def test_pickled_embeddings_are_refused(hostile, pickled, tmp_path, mark):
    np.save(tmp_path / "a.npy", hostile)
    np.savez(tmp_path / "b.npz", embeddings=hostile)
    np.savez(tmp_path / "c.npz", embeddings=np.ones((1, 2)), ids=hostile)
    (tmp_path / "d.npy").write_bytes(pickled)
    (tmp_path / "e.npz").write_bytes(pickled)
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as file:
        file.writestr("embeddings.npy", pickled)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InputError, match=path.name):
            read_embeddings(path, IDS)


def test_a_pickled_matching_is_refused(hostile, pickled, tmp_path, mark):
    np.savez(tmp_path / "matching.npz", format=np.asarray(1), ids=hostile)
    with pytest.raises(InputError, match="damaged"):
        read_matching(tmp_path)
    (tmp_path / "matching.npz").write_bytes(pickled)
    with pytest.raises(InputError, match="damaged"):
        read_matching(tmp_path)
    with zipfile.ZipFile(tmp_path / "matching.npz", "w") as file:
        file.writestr("format.npy", pickled)
    with pytest.raises(InputError, match="is not in format 1"):
        read_matching(tmp_path)


def test_a_pickled_result_is_no_result(hostile, tmp_path, mark):
    folder = RunFolder(tmp_path / "run")
    iris = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
    folder.declare(Declaration((iris,)))
    job = folder.jobs()[0]
    np.savez(folder.file_of(job), facts=hostile, predicted=hostile)
    assert folder.load(job) is None


def test_a_pickled_rematching_is_refused(hostile, tmp_path, mark):
    Store(tmp_path / "review.sqlite", "key").close()
    content = io.BytesIO()
    np.savez(content, labels=hostile)
    raw = sqlite3.connect(tmp_path / "review.sqlite")
    raw.execute("INSERT INTO rematched VALUES (1, 'now', 'base', ?)", (content.getvalue(),))
    raw.commit()
    raw.close()
    store = Store(tmp_path / "review.sqlite", "key")
    with pytest.raises(ReviewError, match="the last matching in it is damaged"):
        store.load_rematched("base")
    store.close()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet", "tsv"])
def test_a_pickle_is_no_table(pickled, tmp_path, mark, suffix):
    (tmp_path / f"a.{suffix}").write_bytes(pickled)
    with pytest.raises(InputError):
        read_table(tmp_path / f"a.{suffix}")


def test_parquet_does_not_revive_python_types(pickled, tmp_path, mark):
    """Old versions of Arrow unpickled what the metadata of a column called an extension type."""
    import pyarrow as pa
    from pyarrow import parquet

    extension = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickled,
    }
    column = pa.field("n", pa.int64(), metadata=extension)
    schema = pa.schema([column], metadata={b"pandas": pickled})
    parquet.write_table(pa.table({"n": [1, 2]}, schema=schema), tmp_path / "a.parquet")
    try:
        table = read_table(tmp_path / "a.parquet")
    except InputError:
        return
    assert table.frame["n"].tolist() == [1, 2]


def _mat(path, **arrays):
    from scipy.io import savemat

    target = np.eye(2)
    savemat(path, {"data": np.ones((2, 2)), "partial_target": target, "target": target, **arrays})


def test_objects_in_mat_files_are_refused(hostile, tmp_path, mark):
    cells = np.empty(2, dtype=object)
    cells[:] = ["import os", np.ones(2)]
    structure = {"a": 1.0, "class": "os.system"}
    for data in (cells, structure, "import os"):
        _mat(tmp_path / "lost.mat", data=data)
        with pytest.raises(DatasetFormatError, match="usable partial label"):
            read_mat(tmp_path / "lost.mat")


# Models


def _skops(path, change):
    """Write a model whose description of types was changed by hand."""
    from skops.io import dumps

    from gmpll.methods import PLKNN

    content = io.BytesIO(dumps({"format": 1, "model": PLKNN()}))
    with zipfile.ZipFile(content) as file, zipfile.ZipFile(path, "w") as changed:
        for name in file.namelist():
            text = file.read(name)
            changed.writestr(name, change(text.decode()) if name == "schema.json" else text)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("subprocess", "Popen"),
        ("gmpll.apps.cli", "main"),
        ("gmpll.apps.decisions.store", "Store"),
        ("gmpll.methods.plknn", "np"),
        ("gmpll.apps.tables.features", "InputError"),
        ("gmpll.methods.nowhere", "Nothing"),
        ("gmpll.methods.plknn.os", "system"),
    ],
)
def test_a_model_loads_no_types_but_its_own(tmp_path, module, name):
    def change(text):
        schema = text.replace('"PLKNN"', json.dumps(name))
        return schema.replace('"gmpll.methods.plknn"', json.dumps(module))

    _skops(tmp_path / MODEL_FILE, change)
    with pytest.raises(InputError, match=r"no part of a gmpll model|is no model of gmpll"):
        load_model(tmp_path)


def test_the_changed_models_are_refused_for_their_types_alone(tmp_path):
    """The same file with its own type comes as far as its missing parts."""
    _skops(tmp_path / MODEL_FILE, lambda text: text)
    with pytest.raises(InputError, match="is damaged"):
        load_model(tmp_path)


def test_a_pickle_is_no_model(pickled, tmp_path, mark):
    (tmp_path / MODEL_FILE).write_bytes(pickled)
    with pytest.raises(InputError, match="is no model"):
        load_model(tmp_path)
    with zipfile.ZipFile(tmp_path / MODEL_FILE, "w") as file:
        file.writestr("schema.json", pickled)
    with pytest.raises(InputError, match="is no model"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("read", "name"), [(load_model, MODEL_FILE), (read_matching, "matching.npz")]
)
def test_what_would_not_fit_into_memory_is_not_unpacked(tmp_path, monkeypatch, read, name):
    monkeypatch.setattr("gmpll.apps.tables.saved._memory_bytes", lambda: 2**20)
    with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", b" " * 2**21)
    assert (tmp_path / name).stat().st_size < 2**14
    with pytest.raises(InputError, match="unpacks to 2 MiB, more than this machine has memory"):
        read(tmp_path)


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path):
    """The header of an array may say anything; believing it would ask for all memory there is."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
    )
    with zipfile.ZipFile(tmp_path / "matching.npz", "w") as file:
        file.writestr("format.npy", header.getvalue())
    with pytest.raises(InputError, match="damaged"):
        read_matching(tmp_path)


# Text formats


@pytest.mark.parametrize(
    "text",
    ["!!python/object/apply:os.system ['touch executed']", "__import__('os').mkdir('executed')"],
)
def test_text_is_never_evaluated(tmp_path, monkeypatch, text, mark):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ExperimentError):
        read_declaration(tmp_path / "run.toml")
    (tmp_path / "a.csv").write_text(f'id,n\n1,"{text}"\n')
    assert read_table(tmp_path / "a.csv").text("n").tolist() == [text]


def test_reading_a_run_imports_nothing_that_it_names(tmp_path, monkeypatch, mark):
    """A variant names its class; only whoever runs it imports it."""
    (tmp_path / "hostile_method.py").write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nclass Method: pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    run = tmp_path / "run"
    run.mkdir()
    experiment = {"kind": "controlled", "datasets": ["iris"], "methods": ["Mine"]}
    experiment |= {"p": [0.5], "r": [1], "folds": 3}
    declaration = {
        "format": 1,
        "experiment": [experiment],
        "variants": {"Mine": {"class": "hostile_method:Method"}},
    }
    (run / "declaration.json").write_text(json.dumps(declaration))
    from gmpll.apps.experiments import scores

    assert len(RunFolder(run).jobs()) == 3
    assert len(scores(run)) == 0
