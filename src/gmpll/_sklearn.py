"""The parts of scikit-learn that are not public but that every estimator needs, in one place.

A release of scikit-learn that moves them is fixed here and nowhere else.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Integral,
    Interval,
    Options,
    Real,
    StrOptions,
)

__all__ = ["HasMethods", "Integral", "Interval", "Options", "Real", "StrOptions", "fit_context"]
