import json
from dataclasses import asdict, fields, replace

import pytest

from gmpll.apps.experiments.jobs import Job

JOB = Job(
    "controlled",
    "glass",
    "Mine",
    "GM-PLL",
    fold=1,
    n_folds=10,
    seed=0,
    settings={"graph": "full"},
    grid={"beta": (0.3, 0.4)},
    criterion="candidate lift",
    p=0.1,
    r=2,
    parameter="alpha",
    value=0.5,
    max_rows=100,
)
OTHER = {
    **dict.fromkeys(("experiment", "dataset", "method", "estimator", "parameter"), "other"),
    **dict.fromkeys(("fold", "n_folds", "seed", "p", "r", "value", "max_rows", "tune_fold"), 7),
    "settings": {"graph": "local"},
    "grid": {"beta": (0.3,)},
    "criterion": "covering rate",
}


def test_the_id_survives_json():
    plain = json.loads(json.dumps(asdict(JOB)))
    assert Job(**plain).id == JOB.id


@pytest.mark.parametrize("field", [item.name for item in fields(Job)])
def test_whatever_differs_changes_the_id(field):
    assert replace(JOB, **{field: OTHER[field]}).id != JOB.id


def test_the_title_names_what_people_look_for():
    assert JOB.title == "glass p=0.1 r=2, Mine alpha=0.5, fold 2"
