"""Which methods an experiment can name, and how a name becomes an estimator."""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from gmpll._typing import Floats
from gmpll.apps.experiments.crowd import CROWD_METHODS, one_label_or
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.methods import METHODS
from gmpll.methods.baselines import AnyCandidate, MostFrequentCandidate, RandomCandidate

#: Floors, by their printed names.
BASELINES: dict[str, type] = {
    "Random candidate": RandomCandidate,
    "Most frequent candidate": MostFrequentCandidate,
    "Any candidate": AnyCandidate,
}
#: Printed name of the ceiling.
FULL_SUPERVISION = "Full supervision"


def _powers_of_ten(first: int, last: int) -> tuple[float, ...]:
    # 10.0**-3 is not 1e-3 in the last bit; the text of the number is part of a job's identity.
    return tuple(float(f"1e{exponent}") for exponent in range(first, last + 1))


@dataclass(frozen=True)
class Method:
    """A named way to learn from candidates."""

    name: str  #: printed
    estimator: str  #: a registered estimator, or ``"package.module:Class"`` for any other
    #: Constructor parameters that differ from the defaults.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Parameter -> values to choose from where an experiment tunes.
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: Module of an optional package, one of :data:`PACKAGES`.
    needs: str = field(default="", compare=False)
    #: Whether ``methods = "all"`` means it too.
    in_all: bool = field(default=True, compare=False)


#: Module of an optional package -> its name, and the extra of gmpll that brings it.
PACKAGES = {
    "crowdkit": ("crowd-kit", "experiments"),
    "cleanlab": ("cleanlab", "experiments"),
    "torch": ("torch", "torch"),
}
#: Of methods that are not simply run at their defaults. The values are those that the paper names
#: for each method, with the exceptions noted; a method that is not listed runs at its defaults,
#: which the paper suggests for it too, or, as gmpll, chooses for itself.
_GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    # Unseen rows are matched as in the paper. alpha is left at 0: with similarities in [0, 1]
    # nearly all affinities are positive, so that the bias is nearly constant and moves no label.
    "GM-PLL": {"beta": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)},
    "PL-SVM": {"regularization": _powers_of_ten(-3, 3)},
    # The paper goes on to 100. From 1 on a fit takes minutes, and LIBLINEAR runs into its iteration
    # limit from 10 on: the grid is cut for time.
    "M3PL": {"C_max": (0.01, 0.1)},
    # With the defaults of the published package alone PL-ECOC stays below its published figures.
    "PL-ECOC": {"C": (1.0, 10.0), "n_columns": (None, 200)},
    "CLPL": {"C": _powers_of_ten(-3, 3)},
    # Published after the paper. Values around the authors' own; rows of length one, which their
    # packages leave to the user, are tried as well.
    "SURE": {
        "regularization": (0.01, 0.05),
        "reward": (0.1, 0.3, 0.5),
        "unit_rows": (False, True),
    },
    "LALO": {"smoothness": (0.005, 0.05, 0.5), "unit_rows": (False, True)},
    "PL-AGGD": {"label_weight": (0.1, 1.0), "unit_rows": (False, True)},
    "PL-CL": {"agreement": (0.1, 0.5), "unit_rows": (False, True)},
}
_SETTINGS: dict[str, dict[str, Any]] = {"GM-PLL": {"prediction": "joint"}}
#: Networks need a package that few have and no true label to choose their model: they are run where
#: they are named.
_NETWORKS = ("CC", "RC", "PRODEN", "LWS", "CAVL", "POP", "PiCO", "Deep GM-PLL")


def known_methods(
    extra: Mapping[str, Method] | None = None, *, kind: str = ""
) -> dict[str, Method]:
    """Return every method that can be named, in the order in which they are printed.

    ``extra`` are the variants that a declaration adds. In an experiment of the kind "crowd" its own
    methods alone are what "all" means.

    Examples
    --------
    >>> from gmpll.apps.experiments.methods import known_methods
    >>> "Random candidate" in known_methods()
    True
    """
    plain = {n: Method(n, n, _SETTINGS.get(n, {}), _GRIDS.get(n, {})) for n in METHODS}
    for name in _NETWORKS:
        estimator = f"gmpll.deep:{name.replace(' ', '').replace('-', '')}"
        plain[name] = Method(name, estimator, needs="torch", in_all=False)
    ends = {name: Method(name, name) for name in (*BASELINES, FULL_SUPERVISION)}
    if kind != "crowd":
        return {**plain, **(extra or {}), **ends}
    crowd = {name: Method(name, name, needs=needs) for name, needs in CROWD_METHODS.items()}
    others = {name: replace(method, in_all=False) for name, method in (plain | ends).items()}
    return {**crowd, **{n: others[n] for n in others if n not in crowd}, **(extra or {})}


def check_packages(methods: Iterable[Method]) -> None:
    """Refuse methods whose package is not installed."""
    for method in methods:
        if method.needs and find_spec(method.needs) is None:
            package, extra = PACKAGES[method.needs]
            raise ExperimentError(
                f"The method {method.name} needs {package}: pip install 'gmpll[{extra}]', or "
                "choose other methods."
            )


def find_method(name: str, known: Mapping[str, Method]) -> Method:
    """Return the method of a name among the known ones, upper or lower case alike."""
    by_lower_case = {key.lower(): method for key, method in known.items()}
    try:
        return by_lower_case[name.strip().lower()]
    except KeyError:
        raise ExperimentError(
            f"There is no method {name[:60]!r}; the methods are {', '.join(known)}."
        ) from None


def make_estimator(estimator: str, settings: Mapping[str, Any], random_state: int) -> Any:
    """Build an estimator from what a job says about it."""
    module, _, name = estimator.rpartition(":")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError) as error:
        raise ExperimentError(
            f"The estimator {estimator!r} cannot be imported ({error})."
        ) from error
    built = (found or (METHODS | BASELINES)[name])()
    parameters = built.get_params()
    unknown = [name for name in settings if name not in parameters]
    if unknown:
        raise ExperimentError(
            f"{estimator} has no parameter {unknown[0]!r}; it has {', '.join(sorted(parameters))}."
        )
    seed = {"random_state": random_state} if "random_state" in parameters else {}
    return built.set_params(**(seed | dict(settings)))


class FullSupervision:
    """The ceiling: an RBF support vector machine trained on the true labels.

    It is no partial label learner: it has no candidates, it is not in ``gmpll.methods``, and it is
    the only thing in an experiment that the true labels of training rows are handed to. Its
    features are z-scored and every row scaled to length one: the space in which GM-PLL compares
    instances. It is one strong classifier, not the best there is for each data set, so a partial
    label learner may come close to it.
    """

    def fit_on_truth(self, X: Floats, truth: NDArray[np.integer]) -> Self:
        """Learn from true labels (named so that it cannot stand in for a method's ``fit``)."""
        machine = make_pipeline(StandardScaler(), Normalizer(), SVC(C=10.0))
        self._classifier = one_label_or(machine, truth).fit(X, truth)
        return self

    def predict(self, X: Floats) -> NDArray[np.integer]:
        """Predict the label of unseen rows."""
        return self._classifier.predict(X)
