"""What is known of every data set before it is loaded: size, origin, licence, checksum.

The entries stand in ``catalogue.toml``. Beside the statistics of the loaded arrays are those that
the paper prints in its tables 1 and 2; where the two differ, :data:`PAPER_DIFFERENCES` says why.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources


@dataclass(frozen=True)
class PaperStatistics:
    """The figures that the paper prints for a data set: its columns EXP*, FEA*, CL* and AVG-CL*.

    The last is printed for the real-world sets only.
    """

    n_samples: int
    n_features: int
    n_classes: int
    mean_candidates: float | None = None


@dataclass(frozen=True)
class TableLayout:
    """What the columns of a comma separated file mean; columns in neither role are dropped."""

    n_columns: int
    class_column: int
    first_feature: int
    feature_names: list[str]
    #: Features of words, which become indicator columns, and the words.
    categories: dict[str, list[str]] = field(default_factory=dict)
    #: Columns in which ``?`` stands for an unknown value; the median of the others is put there.
    missing_allowed: Sequence[int] = ()
    default_rows: int | None = None  #: how many rows are taken unless all are asked for

    @property
    def feature_columns(self) -> range:
        """Where the features are."""
        return range(self.first_feature, self.first_feature + len(self.feature_names))


@dataclass(frozen=True)
class DatasetInfo:
    """A data set, described.

    ``name`` is what the loaders take, ``title`` the name in print. The numbers are those of the
    loaded arrays; ``paper`` is what the paper prints. Real-world and crowd sets have candidates, so
    that ``mean_candidates`` is their mean size; it is None for plain labels, which are to be
    corrupted.
    """

    name: str
    title: str
    kind: str  #: real-world, uci, crowd, prepared or embedded
    n_samples: int
    n_features: int
    n_classes: int
    mean_candidates: float | None
    source: str
    licence: str
    citation: str
    paper: PaperStatistics | None = None
    folder: str = ""  #: where the file belongs in the data folder; empty for embedded sets
    file_name: str = ""
    checksum: str = ""  #: ``sha256:`` or ``git-blob:`` and the digest of the file
    openml_id: int | None = None
    ordered: bool = False  #: labels are numbers whose differences count, such as ages
    named_annotators: bool = True  #: of a crowd set, whether a column of the votes is one person
    remark: str = ""  #: what a user should know
    layout: TableLayout | None = None  #: the columns of a comma separated file

    def description(self) -> str:
        """Return the text that becomes ``DESCR`` of the loaded set."""
        size = f"{self.n_samples} rows, {self.n_features} features, {self.n_classes} labels"
        if self.mean_candidates is not None:
            size += f", {self.mean_candidates:.2f} candidates per row on average"
        lines = [f"{self.title} ({self.kind})", "", size + ".", *filter(None, [self.remark])]
        lines += [f"Source: {self.source}", f"Licence: {self.licence}", f"Cite: {self.citation}"]
        return "\n".join(lines)


def _read_catalogue() -> tuple[dict[str, DatasetInfo], dict[str, dict[str, str]]]:
    """Return the sets, and where they differ from the paper."""
    content = tomllib.loads(
        resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    )
    sets, differences = {}, {}
    for name, entry in content["sets"].items():
        fields = {"mean_candidates": None} | content["kinds"][entry["kind"]] | entry
        if reasons := fields.pop("differences", None):
            differences[name] = reasons
        if "paper" in fields:
            fields["paper"] = PaperStatistics(**fields["paper"])
        if "layout" in fields:
            fields["layout"] = TableLayout(**fields["layout"])
        sets[name] = DatasetInfo(name=name, **fields)
    return sets, differences


#: Where the loaded arrays differ from the paper's tables, and why as far as that can be told:
#: name of the set -> statistic -> reason. A test holds this against the files.
PAPER_DIFFERENCES: dict[str, dict[str, str]]
_ALL, PAPER_DIFFERENCES = _read_catalogue()


def list_datasets() -> list[DatasetInfo]:
    """Return the descriptions of all data sets.

    Examples
    --------
    >>> from gmpll.datasets import list_datasets
    >>> [info.name for info in list_datasets() if info.kind == "real-world"]
    ['lost', 'msrcv2', 'fg-net', 'birdsong', 'soccer-player', 'yahoo-news']
    """
    return list(_ALL.values())


def dataset_info(name: str, *, kind: str | None = None) -> DatasetInfo:
    """Return the description of one data set; with ``kind``, look among this kind only.

    Upper and lower case of the name are the same.

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
