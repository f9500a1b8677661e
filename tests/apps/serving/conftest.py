"""A small model, written as ``gmpll disambiguate`` does."""

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_folder
from gmpll.apps.tables.resolving import prepare, resolve
from gmpll.apps.tables.tables import read_table


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serving") / "out"
    truth = np.arange(40) % 2
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": truth * 4 + rng.normal(size=40),
            "home": np.where(rng.random(40) < 0.5, "farm", "flat"),
            "tags": ["=cat|dog" if i % 3 else ("=cat", "dog")[t] for i, t in enumerate(truth)],
        }
    )
    frame.to_csv(path.with_suffix(".csv"), index=False)
    table, options = read_table(path.with_suffix(".csv")), Options(method="plknn")
    write_folder(resolve(prepare(table, guess_roles(table, options), options)), path)
    return path
