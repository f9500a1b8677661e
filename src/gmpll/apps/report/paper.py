"""The figures that the GM-PLL paper prints, table by table, as they are printed.

G. Lyu, S. Feng, T. Wang, C. Lang and Y. Li, "GM-PLL: Graph Matching based Partial Label Learning".

Nothing here is computed and nothing is mended: where the paper contradicts itself, the printed
figure stands and :mod:`gmpll.apps.report.paper_checks` says so. Data sets carry the names that
:mod:`gmpll.datasets` gives them; methods carry their printed names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "BETA",
    "CITATION",
    "CONTROLLED_DATA",
    "FIGURE_BETA",
    "FIGURE_R",
    "INDUCTIVE",
    "PRINTED_NAMES",
    "REAL_WORLD_DATA",
    "RUNNING_SECONDS",
    "R_BEST",
    "R_FORMULA",
    "TABLES",
    "TESTING_SECONDS",
    "TIMING_MACHINE",
    "TRANSDUCTIVE",
    "WIN_TIE_LOSS",
    "WIN_TIE_LOSS_DATA_SUMS",
    "WIN_TIE_LOSS_METHOD_SUMS",
    "Counts",
    "DataStatistics",
    "PaperTable",
    "PrintedAccuracy",
]

CITATION = (
    "G. Lyu, S. Feng, T. Wang, C. Lang and Y. Li, "
    "“GM-PLL: Graph Matching based Partial Label Learning”"
)


class PaperTable(NamedTuple):
    """Where a printed table stands: its number in the paper, its label there and its caption."""

    number: int
    label: str
    caption: str


TABLES = {
    "controlled data": PaperTable(1, "table1", "Characteristics of the controlled data sets"),
    "real-world data": PaperTable(2, "table2", "Characteristics of the real-world data sets"),
    "win/tie/loss": PaperTable(
        3,
        "wintieloss",
        "Win/tie/loss counts of the GM-PLL's classification performance against each comparing "
        "method on UCI data sets (pairwise t-test at 0.05 significance level)",
    ),
    "inductive": PaperTable(
        4,
        "Table3",
        "Inductive accuracy (mean ± std) of each comparing algorithm on real-world data sets",
    ),
    "transductive": PaperTable(
        5,
        "Tabledisambiguation",
        "Transductive accuracy (mean ± std) of each comparing algorithm on real-world data sets",
    ),
    "beta": PaperTable(6, "table4", "The optimal value of β for GM-PLL"),
    "r": PaperTable(
        7,
        "table5",
        "The number comparison of candidate labels between the optimal value of r** and the "
        "calculation results r*",
    ),
    "time": PaperTable(
        8,
        "testtimecost",
        "Total running time and testing time consumption of our proposed algorithm on UCI and RW "
        "data sets",
    ),
}

PRINTED_NAMES = {
    "glass": "Glass",
    "ecoli": "Ecoli",
    "dermatology": "Dermatology",
    "vehicle": "Vehicle",
    "segment": "Segment",
    "abalone": "Abalone",
    "letter": "Letter",
    "satimage": "Satimage",
    "pendigits": "Pendigits",
    "lost": "Lost",
    "msrcv2": "MSRCv2",
    "fg-net": "FG-NET",
    "birdsong": "BirdSong",
    "soccer-player": "Soccer Player",
    "yahoo-news": "Yahoo! News",
}


@dataclass(frozen=True)
class DataStatistics:
    """One row of the paper's tables 1 and 2."""

    n_samples: int
    n_features: int
    n_classes: int
    mean_candidates: float | None = None
    task: str = ""


CONTROLLED_DATA = {
    "glass": DataStatistics(214, 10, 7),
    "ecoli": DataStatistics(336, 7, 8),
    "dermatology": DataStatistics(364, 23, 6),
    "vehicle": DataStatistics(846, 18, 4),
    "segment": DataStatistics(2310, 18, 7),
    "abalone": DataStatistics(4177, 7, 29),
    "letter": DataStatistics(5000, 16, 26),
    "satimage": DataStatistics(6345, 36, 7),
    "pendigits": DataStatistics(10992, 16, 10),
}

#: Five of the six sets: the paper's table leaves BirdSong out.
REAL_WORLD_DATA = {
    "lost": DataStatistics(1122, 108, 16, 2.33, "Automatic Face Naming"),
    "msrcv2": DataStatistics(1758, 48, 23, 3.16, "Image Classification"),
    "fg-net": DataStatistics(1002, 262, 99, 7.48, "Facial Age Estimation"),
    "soccer-player": DataStatistics(17472, 279, 171, 2.09, "Automatic Face Naming"),
    "yahoo-news": DataStatistics(22991, 163, 219, 1.91, "Automatic Face Naming"),
}


@dataclass(frozen=True)
class PrintedAccuracy:
    """A printed accuracy: mean, standard deviation, mark against GM-PLL, bold type."""

    mean: float
    std: float
    mark: str = ""
    bold: bool = False

    @classmethod
    def parse(cls, text: str) -> PrintedAccuracy:
        """Read ``0.667±0.014*∘``: a star stands for bold type, the rest is as printed.

        Examples
        --------
        >>> from gmpll.apps.report.paper import PrintedAccuracy
        >>> PrintedAccuracy.parse("0.667±0.014*∘")
        PrintedAccuracy(mean=0.667, std=0.014, mark='∘', bold=True)
        """
        mark = text[-1] if text[-1] in "•∘" else ""
        mean, std = text.rstrip("•∘*").split("±")
        return cls(float(mean), float(std), mark, "*" in text)


class Counts(NamedTuple):
    """Won, tied and lost comparisons of GM-PLL."""

    win: int
    tie: int
    loss: int

    @classmethod
    def parse(cls, text: str) -> Counts:
        """Read ``19/2/0``."""
        win, tie, loss = (int(part) for part in text.split("/"))
        return cls(win, tie, loss)

    def __str__(self) -> str:
        return f"{self.win}/{self.tie}/{self.loss}"


def _printed_table(text: str) -> dict[tuple[str, str], str]:
    """Read a table with a header line; keys are (row, column)."""
    header, *rows = (line.split() for line in text.strip().splitlines())
    return {
        (name, column): cell
        for name, *cells in rows
        for column, cell in zip(header, cells, strict=True)
    }


def _accuracies(text: str) -> dict[tuple[str, str], PrintedAccuracy]:
    return {key: PrintedAccuracy.parse(cell) for key, cell in _printed_table(text).items()}


#: (method, data set) -> accuracy on unseen rows, ten-fold cross-validation.
INDUCTIVE = _accuracies("""
         lost          msrcv2        yahoo-news    birdsong      soccer-player fg-net
GM-PLL   0.737±0.043*  0.530±0.019*  0.629±0.007   0.663±0.010   0.549±0.009*  0.065±0.021
PL-SVM   0.639±0.056•  0.417±0.027•  0.636±0.018∘  0.662±0.032•  0.430±0.004•  0.058±0.010•
CLPL     0.670±0.024•  0.375±0.020•  0.462±0.009•  0.632±0.017•  0.347±0.004•  0.047±0.017•
PL-KNN   0.332±0.030•  0.417±0.012•  0.457±0.009•  0.614±0.024•  0.494±0.004•  0.037±0.008•
LSB-CMM  0.591±0.019•  0.431±0.008•  0.648±0.015∘  0.717±0.024∘  0.506±0.006•  0.056±0.008•
M3PL     0.732±0.035•  0.521±0.030•  0.655±0.010∘  0.709±0.010∘  0.446±0.013•  0.037±0.025•
PL-LEAF  0.664±0.020•  0.459±0.013•  0.597±0.012•  0.706±0.012∘  0.515±0.004•  0.072±0.010*∘
IPAL     0.726±0.041•  0.523±0.025•  0.667±0.014*∘ 0.708±0.014∘  0.547±0.014•  0.057±0.023•
PL-ECOC  0.703±0.052•  0.505±0.027•  0.662±0.010∘  0.740±0.016∘  0.537±0.020•  0.040±0.018•
""")

#: (method, data set) -> share of training rows whose label was recovered.
TRANSDUCTIVE = _accuracies("""
         lost          msrcv2        yahoo-news    birdsong      soccer-player fg-net
GM-PLL   0.881±0.005   0.770±0.013*  0.705±0.612   0.834±0.010   0.668±0.003   0.186±0.021*
PL-SVM   0.887±0.012∘  0.653±0.024•  0.871±0.002∘  0.825±0.012•  0.688±0.014∘  0.136±0.021•
CLPL     0.894±0.005*∘ 0.656±0.010•  0.834±0.002∘  0.822±0.004•  0.680±0.010•  0.158±0.018•
PL-KNN   0.615±0.036•  0.616±0.006•  0.692±0.010•  0.772±0.021•  0.492±0.015•  0.173±0.017•
LSB-CMM  0.721±0.010•  0.524±0.007•  0.872±0.001*∘ 0.716±0.014•  0.704±0.002∘  0.138±0.019•
M3PL     0.860±0.006•  0.732±0.025•  0.870±0.002∘  0.855±0.030∘  0.761±0.010*∘ 0.127±0.013•
PL-LEAF  0.809±0.022•  0.645±0.015•  0.827±0.002∘  0.882±0.014∘  0.702±0.003∘  0.148±0.009•
IPAL     0.840±0.041•  0.714±0.015•  0.823±0.008∘  0.833±0.030•  0.673±0.014•  0.158±0.024•
PL-ECOC  0.851±0.013•  0.555±0.030•  0.862±0.007∘  0.886±0.014*∘ 0.671±0.003•  0.132±0.019•
""")

_WIN_TIE_LOSS = _printed_table("""
            PL-KNN   PL-SVM  LSB-CMM  CLPL      M3PL      PL-LEAF  PL-ECOC   IPAL     sum
glass       19/2/0   21/0/0  21/0/0   21/0/0    21/0/0    7/4/10   21/0/0    19/2/0   150/8/10
segment     21/0/0   21/0/0  21/0/0   21/0/0    21/0/0    21/0/0   16/5/0    21/0/0   163/5/0
vehicle     21/0/0   21/0/0  17/3/1   18/0/3    19/2/0    8/7/6    7/5/9     21/0/0   132/17/19
letter      14/7/0   21/0/0  21/0/0   21/0/0    21/0/0    21/0/0   5/16/0    15/6/0   139/29/0
satimage    19/2/0   21/0/0  21/0/0   21/0/0    21/0/0    20/1/0   15/6/0    19/2/0   157/11/0
abalone     21/0/0   21/0/0  0/0/21   0/10/11   21/0/0    0/0/21   0/0/21    21/0/0   84/10/74
ecoli       12/9/0   21/0/0  21/0/0   21/0/0    21/0/0    1/13/7   21/0/0    11/10/0  129/32/7
dermatology 14/7/0   21/0/0  21/0/0   21/0/0    6/14/1    0/14/7   21/0/0    13/8/0   117/43/8
pendigits   2/19/0   21/0/0  21/0/0   21/0/0    21/0/0    9/12/0   11/10/0   1/20/0   107/61/0
sum         163/22/4 178/6/5 142/0/42 148/14/27 153/15/21 79/44/66 110/37/42 125/55/9 -
""")

#: (data set, method) -> counts over the 21 configurations of p and r.
WIN_TIE_LOSS = {
    (data_set, method): Counts.parse(cell)
    for (data_set, method), cell in _WIN_TIE_LOSS.items()
    if "sum" not in (data_set, method)
}
#: The printed sums, which do not all agree with the printed counts.
WIN_TIE_LOSS_METHOD_SUMS = {
    method: Counts.parse(cell)
    for (data_set, method), cell in _WIN_TIE_LOSS.items()
    if data_set == "sum" and method != "sum"
}
WIN_TIE_LOSS_DATA_SUMS = {
    data_set: Counts.parse(cell)
    for (data_set, method), cell in _WIN_TIE_LOSS.items()
    if method == "sum" and data_set != "sum"
}

#: The value of beta that the paper found best.
BETA = {
    "lost": 0.6,
    "msrcv2": 0.6,
    "fg-net": 0.8,
    "birdsong": 0.5,
    "soccer-player": 0.3,
    "yahoo-news": 0.7,
}
#: r* as the paper's formula is said to give it, and r** as the paper found it best.
R_FORMULA = {
    "lost": 3,
    "msrcv2": 3,
    "fg-net": 4,
    "birdsong": 3,
    "soccer-player": 2,
    "yahoo-news": 2,
}
R_BEST = {
    "lost": 3,
    "msrcv2": 4,
    "fg-net": 1,
    "birdsong": 4,
    "soccer-player": 2,
    "yahoo-news": 1,
}
#: What the captions of the paper's two sensitivity figures say was held fixed.
FIGURE_R = {"lost": 3, "msrcv2": 4, "glass": 4}
FIGURE_BETA = {"lost": 0.3, "msrcv2": 0.6, "glass": 0.7}

TIMING_MACHINE = "Matlab on an Intel E5-2650 CPU"
#: Seconds of training and testing together.
RUNNING_SECONDS = {
    "lost": 37.046,
    "msrcv2": 127.818,
    "fg-net": 198.160,
    "birdsong": 281.765,
    "soccer-player": 3271.877,
    "yahoo-news": 8612.220,
    "glass": 2.080,
    "segment": 80.095,
    "satimage": 236.724,
    "vehicle": 7.138,
    "letter": 312.502,
    "abalone": 268.547,
    "ecoli": 1.916,
    "dermatology": 2.924,
    "pendigits": 116.202,
}
TESTING_SECONDS = {
    "lost": 0.837,
    "msrcv2": 1.431,
    "fg-net": 1.254,
    "birdsong": 21.879,
    "soccer-player": 422.012,
    "yahoo-news": 1025.886,
    "glass": 0.204,
    "segment": 5.901,
    "satimage": 29.574,
    "vehicle": 0.743,
    "letter": 28.344,
    "abalone": 21.380,
    "ecoli": 0.287,
    "dermatology": 0.334,
    "pendigits": 11.538,
}
