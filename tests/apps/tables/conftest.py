import numpy as np
import pandas as pd
import pytest
import typer

import gmpll.apps.cli
from gmpll.apps.cli.disambiguate import disambiguate
from gmpll.apps.cli.predict import predict
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_folder
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.tables import read_table


@pytest.fixture
def command(monkeypatch, capsys):
    """Run ``gmpll ARGUMENTS`` as the shell would; return exit code, output and errors."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(disambiguate)
    app.command()(predict)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["gmpll", *map(str, arguments)])
        monkeypatch.setattr(gmpll.apps.cli, "app", app)
        code = 0
        try:
            gmpll.apps.cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def pets():
    """Two clouds of points; every third row says which is which, the others may be either."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    where = truth[:, None] * 4 + rng.normal(size=(60, 3)) * 0.5
    frame = pd.DataFrame(where.round(4), columns=["size", "weight", "age"])
    names = np.array(["cat", "dog"])
    frame.insert(0, "id", [f"{i:03d}" for i in range(60)])
    frame["tags"] = ["cat|dog" if i % 3 else names[t] for i, t in enumerate(truth)]
    return frame, names[truth]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, pets):
    """The output folder of a run on the pets; do not write to it."""
    folder = tmp_path_factory.mktemp("run")
    pets[0].assign(note="a note of several words").to_csv(folder / "in.csv", index=False)
    table = read_table(folder / "in.csv")
    options = Options()
    resolution = resolve(prepare(table, guess_roles(table, options), options))
    write_folder(resolution, folder / "out")
    return folder / "out"
