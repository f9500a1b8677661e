"""Parameters that are declared as lines of a class."""

import inspect
import pickle
from dataclasses import field
from typing import Annotated, ClassVar

import pytest
from sklearn.base import BaseEstimator, clone

from gmpll._parameters import Count, Jobs, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import StrOptions


class Base(BaseEstimator):
    """A base.

    Parameters
    ----------
    width, limit : float
        How far.
    not_here : int
        Nobody has it.

    Attributes
    ----------
    found_ : int
        What is found.

        It may be much.
    """

    _parameter_constraints: ClassVar[dict] = {"random_state": ["random_state"]}


@with_parameters
class Estimator(Base):
    """An estimator.

    Parameters
    ----------
    way : str
        Which way.

    Notes
    -----
    It is one.
    """

    GRID: ClassVar[tuple[int, ...]] = (1, 2)

    way: Annotated[str, StrOptions({"fast", "slow"})] = field(default="fast", kw_only=False)
    n_rounds: Count = 3
    width: Annotated[str, StrOptions({"auto"})] | Positive = "auto"
    limit: Positive | None = None
    careful: Switch = True
    n_jobs: Jobs = None
    random_state: Seed = None


def test_it_is_built_like_any_estimator():
    estimator = Estimator("slow", n_rounds=5)
    assert estimator.get_params() == {
        "way": "slow", "n_rounds": 5, "width": "auto", "limit": None,
        "careful": True, "n_jobs": None, "random_state": None,
    }  # fmt: skip
    assert repr(estimator) == "Estimator(n_rounds=5, way='slow')"
    assert clone(estimator).get_params() == estimator.get_params()
    assert pickle.loads(pickle.dumps(estimator)).n_rounds == 5
    assert estimator != clone(estimator)
    assert len({estimator, clone(estimator)}) == 2


def test_parameters_are_keyword_only_unless_they_say_otherwise():
    with pytest.raises(TypeError, match="positional"):
        Estimator("slow", 5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Estimator(n_round=5)


def test_the_signature_shows_types_without_limits():
    parameters = inspect.signature(Estimator).parameters
    assert list(parameters) == list(inspect.get_annotations(Estimator))[1:]
    assert parameters["n_rounds"].annotation is int
    assert parameters["way"].annotation is str
    assert parameters["n_rounds"].default == 3


def test_what_a_base_class_says_of_a_parameter_is_in_the_docstring():
    assert inspect.getdoc(Estimator).split("\n") == [
        *("An estimator.", "", "Parameters", "----------"),
        *("way : str", "    Which way.", "width, limit : float", "    How far."),
        *("", "Attributes", "----------", "found_ : int"),
        *("    What is found.", "", "    It may be much.", "", "Notes", "-----", "It is one."),
    ]


def test_parameters_belong_to_the_object():
    assert not hasattr(Estimator, "n_rounds")
    assert Estimator.GRID == (1, 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"way": "lazy"}, "'way' parameter .* must be a str among"),
        ({"n_rounds": 0}, r"'n_rounds' parameter .* must be an int in the range \[1, inf\)"),
        (
            {"width": -1.0},
            r"'width' .* a str among \{'auto'\} or a float in the range \(0.0, inf\)",
        ),
        ({"limit": 0.0}, r"'limit' .* a float in the range \(0.0, inf\) or None"),
        ({"careful": "yes"}, "'careful' parameter .* must be an instance of 'bool'"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter .* must be None or an instance of 'int'"),
        ({"random_state": "seven"}, "'random_state' parameter"),
    ],
)
def test_limits_are_checked(wrong, message):
    Estimator()._validate_params()
    with pytest.raises(ValueError, match=message):
        Estimator(**wrong)._validate_params()
