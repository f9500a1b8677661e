"""Networks that learn from candidate labels: one trainer, one loss or label update per method.

It needs PyTorch, the extra ``torch``, and is loaded when it is asked for.
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("gmpll.deep needs PyTorch: pip install 'gmpll[torch]'.") from error

from gmpll.base import BasePartialLabelClassifier
from gmpll.deep.estimators import (
    CAVL,
    CC,
    LWS,
    POP,
    PRODEN,
    RC,
    DeepGMPLL,
    PartialLabelNetwork,
    PiCO,
)
from gmpll.deep.matching import MatchingTargets
from gmpll.deep.objectives import Objective
from gmpll.deep.trainer import History, Trainer

__all__ = [
    "CAVL",
    "CC",
    "DEEP_METHODS",
    "LWS",
    "POP",
    "PRODEN",
    "RC",
    "DeepGMPLL",
    "History",
    "MatchingTargets",
    "Objective",
    "PartialLabelNetwork",
    "PiCO",
    "Trainer",
]

#: Printed name -> estimator.
DEEP_METHODS: dict[str, type[BasePartialLabelClassifier]] = {
    method.__name__: method for method in (CC, RC, PRODEN, LWS, CAVL, POP, PiCO)
} | {"Deep GM-PLL": DeepGMPLL}
