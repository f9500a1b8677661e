"""What is known of every data set before it is loaded: size, origin, licence, checksum.

The statistics are those of the files described in the documentation; beside them stand the ones
that the paper prints in its tables 1 and 2. Where the two differ, :data:`PAPER_DIFFERENCES` says
why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "PAPER_DIFFERENCES",
    "DatasetInfo",
    "PaperStatistics",
    "dataset_info",
    "list_datasets",
]


@dataclass(frozen=True)
class PaperStatistics:
    """The figures that the paper prints for a data set.

    Attributes
    ----------
    n_samples, n_features, n_classes : int
        The columns EXP*, FEA* and CL*.
    mean_candidates : float or None
        The column AVG-CL*, printed for the real-world sets only.
    """

    n_samples: int
    n_features: int
    n_classes: int
    mean_candidates: float | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """A data set, described.

    Attributes
    ----------
    name : str
        What the loaders take.
    title : str
        The name in print.
    kind : {"real-world", "uci", "embedded"}
        Real-world sets have candidates; the others have labels that are to be corrupted.
    n_samples, n_features, n_classes : int
        Of the loaded arrays.
    mean_candidates : float or None
        Mean size of the candidate sets.
    source, licence, citation : str
        Where it comes from, on which terms, and what to cite.
    paper : PaperStatistics or None
        What the paper prints; None where it prints nothing.
    file_name : str
        The file in the data folder; empty for embedded sets.
    checksum : str
        ``sha256:`` or ``git-blob:`` and the digest of the file that was described here.
    openml_id : int or None
        Number of the set at OpenML.
    ordered : bool
        Whether the labels are numbers whose differences count, such as ages: predictions then
        have a mean absolute error.
    remark : str
        What a user should know.
    """

    name: str
    title: str
    kind: str
    n_samples: int
    n_features: int
    n_classes: int
    mean_candidates: float | None
    source: str
    licence: str
    citation: str
    paper: PaperStatistics | None = None
    file_name: str = ""
    checksum: str = ""
    openml_id: int | None = None
    ordered: bool = False
    remark: str = ""

    def description(self) -> str:
        """Return the text that becomes ``DESCR`` of the loaded set."""
        size = f"{self.n_samples} rows, {self.n_features} features, {self.n_classes} labels"
        if self.mean_candidates is not None:
            size += f", {self.mean_candidates:.2f} candidates per row on average"
        lines = [
            f"{self.title} ({self.kind})",
            "",
            size + ".",
            self.remark,
            f"Source: {self.source}",
            f"Licence: {self.licence}",
            f"Cite: {self.citation}",
        ]
        return "\n".join(line for index, line in enumerate(lines) if line or index == 1)


_ORIGIN_LICENCE = "academic use only, by the notice of the origin; not redistributed here"
_ORIGIN_SOURCE = "M.-L. Zhang's page of partial label data, http://palm.seu.edu.cn/zhangml/"
_UCI_LICENCE = "CC BY 4.0"

_REAL_WORLD = (
    DatasetInfo(
        name="lost",
        title="Lost",
        kind="real-world",
        n_samples=1122,
        n_features=108,
        n_classes=16,
        mean_candidates=2.2317,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation="T. Cour, B. Sapp, B. Taskar: Learning from partial labels, JMLR 12, 2011.",
        paper=PaperStatistics(1122, 108, 16, 2.33),
        file_name="lost.mat",
        checksum="sha256:42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
        remark="Face naming in a television series; two of the 16 labels are never true.",
    ),
    DatasetInfo(
        name="msrcv2",
        title="MSRCv2",
        kind="real-world",
        n_samples=1758,
        n_features=48,
        n_classes=23,
        mean_candidates=3.1564,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation=(
            "L. Liu, T. G. Dietterich: A conditional multinomial mixture model for superset label "
            "learning, NIPS 2012."
        ),
        paper=PaperStatistics(1758, 48, 23, 3.16),
        file_name="MSRCv2.mat",
        checksum="sha256:948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
        remark="Image segments; five rows are duplicates, some with other candidates.",
    ),
    DatasetInfo(
        name="fg-net",
        title="FG-NET",
        kind="real-world",
        n_samples=1002,
        n_features=262,
        n_classes=78,
        mean_candidates=7.4770,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation=(
            "G. Panis, A. Lanitis: An overview of research activities in facial age estimation "
            "using the FG-NET aging database, ECCV Workshops 2014."
        ),
        paper=PaperStatistics(1002, 262, 99, 7.48),
        file_name="FG-NET.mat",
        checksum="sha256:5b8d43e40cee007f6438a7a74d600b5cf67ac596754a322ce91b0fc6811f45db",
        ordered=True,
        remark="Facial age estimation: the labels are ages; 15 of the 78 are never true.",
    ),
    DatasetInfo(
        name="birdsong",
        title="BirdSong",
        kind="real-world",
        n_samples=4998,
        n_features=38,
        n_classes=13,
        mean_candidates=2.1755,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation=(
            "F. Briggs, X. Z. Fern, R. Raich: Rank-loss support instance machines for MIML "
            "instance annotation, KDD 2012."
        ),
        file_name="BirdSong.mat",
        checksum="sha256:2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
        remark="Syllables of bird song; the spreads of the columns differ by seven powers of ten.",
    ),
    DatasetInfo(
        name="soccer-player",
        title="Soccer Player",
        kind="real-world",
        n_samples=17472,
        n_features=279,
        n_classes=171,
        mean_candidates=2.09,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation=("Z. Zeng et al.: Learning by associating ambiguously labeled images, CVPR 2013."),
        paper=PaperStatistics(17472, 279, 171, 2.09),
        file_name="Soccer Player.mat",
        checksum="git-blob:3372e7350e06eba374c715e07fbd18e2555e00ec",
        remark="Face naming in news photographs; the statistics are as published, not measured.",
    ),
    DatasetInfo(
        name="yahoo-news",
        title="Yahoo! News",
        kind="real-world",
        n_samples=22991,
        n_features=163,
        n_classes=219,
        mean_candidates=1.91,
        source=_ORIGIN_SOURCE,
        licence=_ORIGIN_LICENCE,
        citation=(
            "M. Guillaumin, J. Verbeek, C. Schmid: Multiple instance metric learning from "
            "automatically labeled bags of faces, ECCV 2010."
        ),
        paper=PaperStatistics(22991, 163, 219, 1.91),
        file_name="Yahoo! News.mat",
        checksum="git-blob:c9c3c35a6562ece4dffca8e7997c4c9cdcd12354",
        remark="Face naming in captioned news; the statistics are as published, not measured.",
    ),
)

_UCI = (
    DatasetInfo(
        name="glass",
        title="Glass Identification",
        kind="uci",
        n_samples=214,
        n_features=9,
        n_classes=6,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5WW2P",
        licence=_UCI_LICENCE,
        citation="B. German: Glass Identification, 1987.",
        paper=PaperStatistics(214, 10, 7),
        checksum="sha256:dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d",
        openml_id=41,
        remark="The id column is dropped: with the rows sorted by class it gives the class away.",
    ),
    DatasetInfo(
        name="ecoli",
        title="Ecoli",
        kind="uci",
        n_samples=336,
        n_features=7,
        n_classes=8,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5388M",
        licence=_UCI_LICENCE,
        citation="K. Nakai: Ecoli, 1996.",
        paper=PaperStatistics(336, 7, 8),
        checksum="sha256:6f8b9afa811c78a34e0fac86264522a0d6b86982587b4656a957a9ea3eb5c926",
        openml_id=39,
        remark="The column of sequence names is dropped; two classes have two rows.",
    ),
    DatasetInfo(
        name="dermatology",
        title="Dermatology",
        kind="uci",
        n_samples=366,
        n_features=34,
        n_classes=6,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5FK5P",
        licence=_UCI_LICENCE,
        citation="N. Ilter, H. Guvenir: Dermatology, 1998.",
        paper=PaperStatistics(364, 23, 6),
        checksum="sha256:455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742",
        openml_id=35,
        remark="The age, unknown in eight rows, is set to the median of the known ages there.",
    ),
    DatasetInfo(
        name="vehicle",
        title="Statlog (Vehicle Silhouettes)",
        kind="uci",
        n_samples=846,
        n_features=18,
        n_classes=4,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5HG6N",
        licence=_UCI_LICENCE,
        citation="P. Mowforth, B. Shepherd: Statlog (Vehicle Silhouettes).",
        paper=PaperStatistics(846, 18, 4),
        checksum="sha256:63e275a99c957ee9cdd6cc7dbada4e68ed761ecdb5141ac6771cd25a9ac90292",
        openml_id=54,
    ),
    DatasetInfo(
        name="segment",
        title="Statlog (Image Segmentation)",
        kind="uci",
        n_samples=2310,
        n_features=19,
        n_classes=7,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5P01G",
        licence=_UCI_LICENCE,
        citation="Statlog (Image Segmentation), 1990.",
        paper=PaperStatistics(2310, 18, 7),
        checksum="sha256:5f386c00728133f57f43b6a31cbbf4ecd57b651475534046dd294231ca89a0c6",
        openml_id=36,
        remark="The column region-pixel-count is constant; it is kept.",
    ),
    DatasetInfo(
        name="abalone",
        title="Abalone",
        kind="uci",
        n_samples=4177,
        n_features=10,
        n_classes=28,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C55C7W",
        licence=_UCI_LICENCE,
        citation="W. Nash, T. Sellers, S. Talbot, A. Cawthorn, W. Ford: Abalone, 1994.",
        paper=PaperStatistics(4177, 7, 29),
        checksum="sha256:eb2de13be807e9bb9ec4128b9c89b98ab23d7739121cfd17b7dde69b46ba7bf6",
        openml_id=183,
        ordered=True,
        remark=(
            "The labels are numbers of rings; five occur once. The sex is three indicator columns, "
            "which come first."
        ),
    ),
    DatasetInfo(
        name="letter",
        title="Letter Recognition",
        kind="uci",
        n_samples=5000,
        n_features=16,
        n_classes=26,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5ZP40",
        licence=_UCI_LICENCE,
        citation="D. Slate: Letter Recognition, 1991.",
        paper=PaperStatistics(5000, 16, 26),
        checksum="sha256:2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
        openml_id=6,
        remark="The first 5000 of 20000 rows, unless all are asked for.",
    ),
    DatasetInfo(
        name="satimage",
        title="Statlog (Landsat Satellite)",
        kind="uci",
        n_samples=6435,
        n_features=36,
        n_classes=6,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C55887",
        licence=_UCI_LICENCE,
        citation="A. Srinivasan: Statlog (Landsat Satellite), 1993.",
        paper=PaperStatistics(6345, 36, 7),
        checksum="sha256:e23a322e05dd9b7772f4889746bf67e51727336916e1be057e8fb3f8a971ac47",
        openml_id=182,
    ),
    DatasetInfo(
        name="pendigits",
        title="Pen-Based Recognition of Handwritten Digits",
        kind="uci",
        n_samples=10992,
        n_features=16,
        n_classes=10,
        mean_candidates=None,
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5MG6K",
        licence=_UCI_LICENCE,
        citation="E. Alpaydin, F. Alimoglu: Pen-Based Recognition of Handwritten Digits, 1996.",
        paper=PaperStatistics(10992, 16, 10),
        checksum="sha256:7f5d368ea1d87ca0bf7b7b6925a4eda145e22069b90aa0d1cafcb7cfafc47eca",
        openml_id=32,
        remark="The 3498 rows of the repository's test file come first.",
    ),
)

_EMBEDDED = tuple(
    DatasetInfo(
        name=name,
        title=title,
        kind="embedded",
        n_samples=n_samples,
        n_features=n_features,
        n_classes=n_classes,
        mean_candidates=None,
        source=f"sklearn.datasets.load_{name}",
        licence=_UCI_LICENCE,
        citation=citation,
        remark="Comes with scikit-learn; needs no file.",
    )
    for name, title, n_samples, n_features, n_classes, citation in (
        ("digits", "Optical Digits", 1797, 64, 10, "E. Alpaydin, C. Kaynak, 1998."),
        ("iris", "Iris", 150, 4, 3, "R. A. Fisher, 1936."),
        ("wine", "Wine", 178, 13, 3, "S. Aeberhard, M. Forina, 1992."),
    )
)

_ALL = {
    info.name: info
    for info in (
        *_REAL_WORLD,
        *(replace(info, file_name=f"{info.name}.csv") for info in _UCI),
        *_EMBEDDED,
    )
}

#: Where the loaded arrays differ from the paper's tables, and why as far as that can be told:
#: name of the set -> statistic -> reason. A test holds this against the files.
PAPER_DIFFERENCES: dict[str, dict[str, str]] = {
    "lost": {
        "mean_candidates": "The file has 2504 candidates in 1122 rows; 2.33 seems a misprint.",
    },
    "fg-net": {
        "n_classes": "The file has 78 label rows, the ages 0 to 77; the origin of 99 is unknown.",
    },
    "glass": {
        "n_features": "10 counts the id column, which gives the class away and is dropped.",
        "n_classes": "7 counts type 4 of the repository's description, of which there is no row.",
    },
    "dermatology": {
        "n_samples": "The repository has 366 rows (358 without the unknown ages); 364 is unknown.",
        "n_features": "The repository has 34 features; which 23 were meant is unknown.",
    },
    "segment": {
        "n_features": "18 leaves out one of 19 columns, probably the constant region-pixel-count.",
    },
    "abalone": {
        "n_features": "7 probably leaves out the sex, which is kept here as three indicators.",
        "n_classes": "29 is the largest number of rings; 28 different numbers occur.",
    },
    "satimage": {
        "n_samples": "The repository has 6435 rows; 6345 probably has two digits exchanged.",
        "n_classes": "7 counts class 6 of the repository's description, of which there is no row.",
    },
}


def list_datasets() -> list[DatasetInfo]:
    """Return the descriptions of all data sets.

    Returns
    -------
    list of DatasetInfo
        Six real-world sets, nine UCI sets and three that come with scikit-learn.

    Examples
    --------
    >>> from gmpll.datasets import list_datasets
    >>> [info.name for info in list_datasets() if info.kind == "real-world"]
    ['lost', 'msrcv2', 'fg-net', 'birdsong', 'soccer-player', 'yahoo-news']
    """
    return list(_ALL.values())


def dataset_info(name: str, *, kind: str | None = None) -> DatasetInfo:
    """Return the description of one data set.

    Parameters
    ----------
    name : str
        Upper and lower case are the same.
    kind : {"real-world", "uci", "embedded"}, default=None
        Look among this kind only.

    Returns
    -------
    DatasetInfo

    Examples
    --------
    >>> from gmpll.datasets import dataset_info
    >>> dataset_info("glass").paper.n_features
    10
    """
    info = _ALL.get(str(name).lower())
    if info is None or kind not in (None, info.kind):
        known = ", ".join(known for known, other in _ALL.items() if kind in (None, other.kind))
        raise ValueError(f"There is no {kind or 'data'} set {name!r}; choose one of: {known}.")
    return info
