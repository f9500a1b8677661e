"""One file per method, and all of them by the names that the literature prints."""

from gmpll.base import BasePartialLabelClassifier
from gmpll.methods.classifier import PartialLabelClassifier
from gmpll.methods.clpl import CLPL
from gmpll.methods.gmpll import GMPLL
from gmpll.methods.ipal import IPAL
from gmpll.methods.lalo import LALO
from gmpll.methods.lsbcmm import LSBCMM
from gmpll.methods.m3pl import M3PL
from gmpll.methods.plaggd import PLAGGD
from gmpll.methods.plcl import PLCL
from gmpll.methods.plecoc import PLECOC
from gmpll.methods.plknn import PLKNN
from gmpll.methods.plleaf import PLLEAF
from gmpll.methods.plsvm import PLSVM
from gmpll.methods.sure import SURE

METHODS: dict[str, type[BasePartialLabelClassifier]] = {
    "gmpll": PartialLabelClassifier,
    "GM-PLL": GMPLL,
    "PL-KNN": PLKNN,
    "PL-SVM": PLSVM,
    "CLPL": CLPL,
    "LSB-CMM": LSBCMM,
    "M3PL": M3PL,
    "PL-LEAF": PLLEAF,
    "IPAL": IPAL,
    "PL-ECOC": PLECOC,
    "LALO": LALO,
    "SURE": SURE,
    "PL-AGGD": PLAGGD,
    "PL-CL": PLCL,
}
