"""From a table to resolved labels: the pipeline, what comes out and what counted.

:func:`disambiguate` is the whole product in three lines of Python.
"""

import html
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

import gmpll.methods
from gmpll._atomic_io import write_atomically
from gmpll._progress import begin
from gmpll._seeds import LARGEST_SEED
from gmpll._typing import AnyFloats, Floats, Integers, Mask, Names
from gmpll.apps.decisions.store import Entry
from gmpll.apps.tables.candidate_sets import LabelSets, label_sets, row_ids
from gmpll.apps.tables.errors import InputError, quoted
from gmpll.apps.tables.features import FeatureEncoder, FeatureTable, feature_table, fitted_encoder
from gmpll.apps.tables.guesses import Roles, guess_roles
from gmpll.apps.tables.labels import Options, options_of
from gmpll.apps.tables.steps import ENCODING, MATCHING
from gmpll.apps.tables.summary import (
    PROBABLY,
    annotator_table,
    display_cells,
    notes_of,
    wrong_probability,
)
from gmpll.apps.tables.tables import Table, table_from_frame
from gmpll.candidates import CandidateSets, VotedCandidates

#: What ``--method`` takes.
METHODS = {
    name.lower() if name in ("gmpll", "GM-PLL") else method.__name__.lower(): method
    for name, method in gmpll.methods.METHODS.items()
}
#: Labels whose margin is smaller are worth a look: where confidences are calibrated, and else.
REVIEW_BELOW, REVIEW_BELOW_UNCALIBRATED = 0.5, 0.25
#: A label that nobody voted for is possible from a confidence on that does not round to nothing.
LEAST_CONFIDENCE = 5e-5

#: The column that names who decided a row, and who did where nobody gave a name.
DECIDED_BY, SOMEBODY = "decided_by", "reviewer"

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: (none|all|never)\b)?")


@dataclass(frozen=True)
class Prepared:
    """A table that has been read and understood, before any work."""

    table: Table
    roles: Roles
    options: Options
    ids: Names
    sets: LabelSets
    inputs: FeatureTable

    @property
    def calibrated(self) -> bool:
        """Whether confidences will estimate how probable it is that a label is right."""
        return self.options.method == "gmpll"

    @property
    def review_below(self) -> float:
        """The margin below which labels are worth a look."""
        if self.options.review_below is not None:
            return self.options.review_below
        return REVIEW_BELOW if self.calibrated else REVIEW_BELOW_UNCALIBRATED

    @property
    def problems(self) -> tuple[str, ...]:
        """What is odd about the data."""
        return (*self.sets.problems, *self.inputs.problems)


@dataclass(frozen=True)
class Verdicts:
    """The label of every row and how sure it is.

    Labels and runners-up are codes, -1 where there is no other candidate; the margin is how far
    the confidence of the runner-up lies below that of the label. ``review`` marks labels that are
    worth a look, and ``notes`` tell what is odd about the rows. ``outside`` is how probable it is
    that the set lacks the right label, and ``suggested`` the best label of all; both are None where
    the method does not tell.
    """

    labels: Integers
    runners_up: Integers
    confidence: Floats
    margin: Floats
    review: Mask
    notes: tuple[str, ...] = ()
    outside: Floats | None = None
    suggested: Integers | None = None


class Matched(NamedTuple):
    """What a fitted model says of its rows; see :class:`Verdicts` for the last two."""

    labels: Integers
    confidences: AnyFloats
    outside: Floats | None = None
    suggested: Integers | None = None


@dataclass(frozen=True)
class Resolution:
    """Everything that a run found: the features, and the confidences of all candidates."""

    prepared: Prepared
    encoder: FeatureEncoder
    model: Any
    features: NDArray[np.float32]
    confidences: AnyFloats
    verdicts: Verdicts

    @property
    def is_open(self) -> Mask:
        """Rows that had more than one label to choose from."""
        return self.verdicts.runners_up >= 0

    @property
    def n_lacking(self) -> int:
        """How many candidate sets probably lack the right label."""
        outside = self.verdicts.outside
        return 0 if outside is None else int(np.count_nonzero(outside > PROBABLY))

    @property
    def votes(self) -> Integers | None:
        """How many voted for the label of a row, None where it is not known who voted."""
        sets = self.prepared.sets
        if sets.weights is None or not sets.annotated:
            return None
        return sets.weights[np.arange(len(sets.mask)), self.verdicts.labels].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Disambiguation:
    """The labels that were found, and what is to be said about them.

    Indexing gives columns and rows of ``frame``: ``result["label"]``.

    Attributes
    ----------
    frame : DataFrame
        The rows with their labels, see :func:`gmpll.disambiguate`.
    notes : tuple of str
        What is odd about the data, and how much features, votes and label frequencies count.
    model : estimator
        The fitted model.

    Examples
    --------
    >>> import pandas as pd
    >>> import gmpll
    >>> df = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|b", "a", "b", "a|b"]})
    >>> result = gmpll.disambiguate(df)
    >>> result.frame["label"].tolist()
    ['a', 'a', 'b', 'b']
    >>> print(result.notes[-1])
    Labels by the frequency found: 'a' 50%, 'b' 50%.
    >>> "Resolved labels" in result.report()
    True
    >>> result.expected_wrong < 1
    True
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    model: Any
    _resolution: Resolution = field(repr=False)

    @property
    def annotators(self) -> pd.DataFrame | None:
        """Votes, estimated accuracy and agreement of every annotator; None if nobody is named."""
        return annotator_table(self._resolution)

    @property
    def expected_wrong(self) -> float | None:
        """About how many labels are wrong; None where confidences are no probabilities."""
        is_known = self._resolution.prepared.calibrated
        return float(wrong_probability(self._resolution).sum()) if is_known else None

    def report(self, path: str | Path | None = None) -> str:
        """Return the report as one HTML page; with a path, write it there too."""
        from gmpll.apps.tables.page import page_facts, render_page

        facts = page_facts(self._resolution, display_cells(self._resolution))
        page = render_page(facts | {"notes": self.notes})
        if path is not None:
            write_atomically(Path(path), page.encode())
        return page

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame)

    def __len__(self) -> int:
        return len(self.frame)

    def _repr_html_(self) -> str:
        told = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"{self.frame.to_html(max_rows=10, notebook=True)}<ul>{told}</ul>"


def prepare(table: Table, roles: Roles, options: Options, names: Names | None = None) -> Prepared:
    """Read ids, candidates and what the features are made of; refuse what cannot be used.

    ``names`` are those of the rows where no column holds ids; their numbers by default.
    """
    if options.method not in METHODS:
        raise InputError(
            f"There is no method {quoted(options.method)}: use one of {', '.join(METHODS)}."
        )
    if options.review_below is not None and not 0 <= options.review_below <= 1:
        raise InputError(f"--review-below is {options.review_below}; it must be between 0 and 1.")
    if options.empty not in ("error", "all"):
        raise InputError(f"--empty is {quoted(options.empty)}; it must be 'error' or 'all'.")
    if not 0 <= options.seed <= LARGEST_SEED:
        raise InputError(f"The seed is {options.seed}; it must be between 0 and {LARGEST_SEED}.")
    if options.trust is not None and (not roles.votes or options.method != "gmpll"):
        raise InputError(
            "--trust says how much votes count: it goes with votes (--votes, --annotators) and "
            "gmpll only."
        )
    if options.votes is None and options.vote_columns:
        raise InputError("--vote-columns is about votes: it goes with --votes only.")
    if not roles.votes and options.min_share:
        raise InputError("--min-share is about votes: it goes with --votes or --annotators only.")
    if not 0 <= options.min_share <= 1:
        raise InputError(f"--min-share is {options.min_share}; it must be between 0 and 1.")
    if options.outside not in ("auto", "never"):
        raise InputError(f"--outside is {quoted(options.outside)}; it must be 'auto' or 'never'.")
    if options.outside == "never" and options.method != "gmpll":
        raise InputError(
            "--outside is about labels that nobody voted for: it goes with gmpll only."
        )
    if options.trust is not None and not 0 <= options.trust < np.inf:
        raise InputError(f"--trust is {options.trust}; it must be a number that is not negative.")
    ids = row_ids(table, roles) if roles.id or names is None else names
    sets = label_sets(table, roles, options, ids)
    return Prepared(table, roles, options, ids, sets, feature_table(table, roles, ids))


def resolve(prepared: Prepared) -> Resolution:
    """Encode the features, match, and judge the labels."""
    roles, options, sets = prepared.roles, prepared.options, prepared.sets
    begin(ENCODING)
    encoder = fitted_encoder(prepared.inputs, roles, options.seed)
    features = encoder.encode(prepared.inputs)
    if not (features != features[0]).any():
        raise InputError(
            "All rows have the same features, so nothing tells them apart: name other columns "
            "with --features or --text."
        )
    begin(MATCHING)
    settings: dict[str, Any] = {}
    if options.trust is not None:
        settings["hyperparameters"] = {"weight_exponent": options.trust}
    if options.outside == "never" or (roles.impossible and prepared.calibrated):
        settings["outside"] = "never"  # what a row cannot have is not known outside the sets
    model = make_model(options.method, options.seed, **settings)
    known = CandidateSets(sets.mask, sets.classes)
    matched = match_sets(model, features, known, sets.gold, sets.votes)
    possible = sets.mask
    if sets.annotated:
        possible = possible | (matched.confidences >= LEAST_CONFIDENCE)
    found = verdicts(matched, possible, sets.gold, prepared.review_below)
    return Resolution(prepared, encoder, model, features, matched.confidences, found)


def resolve_decided(prepared: Prepared, held: Mapping[int, Entry]) -> Resolution:
    """Resolve with decisions as known labels; the candidates stay those of the input.

    Labels that reviewers brought become labels of the run, behind its own.
    """
    names = {e.decision.name for e in held.values() if e.decision.name}
    sets = prepared.sets.with_labels(sorted(names)) if names else prepared.sets
    code_of = {name: code for code, name in enumerate(sets.classes.tolist())}
    mask, gold = sets.mask.copy(), sets.gold.copy()
    for row, entry in held.items():
        code = entry.decision.code
        code = code_of.get(entry.decision.name) if code is None else code
        if code is not None:
            mask[row] = np.arange(len(code_of)) == code
            gold[row] = code
    narrowed = replace(prepared, sets=replace(sets, mask=mask, gold=gold))
    return replace(resolve(narrowed), prepared=replace(prepared, sets=sets))


def make_model(method: str, seed: int, **settings: Any) -> Any:
    """Make the estimator of a method; the seed is given to those that draw."""
    estimator = METHODS[method]
    if "random_state" in inspect.signature(estimator).parameters:
        settings["random_state"] = seed
    return estimator(**settings)


def match_sets(
    model: Any,
    features: AnyFloats,
    sets: CandidateSets,
    gold: Integers,
    votes: VotedCandidates | None,
) -> Matched:
    """Fit a model and return what it says of the rows.

    Votes count where the method can use them, else they are sets only; where it is known who
    voted, every annotator is modelled. No known label is in doubt.
    """
    if votes is not None and votes.annotators is not None:
        known = [sets.classes[code] if code >= 0 else None for code in gold]
        ruled_out = votes.candidates.mask & ~sets.mask & (gold < 0)[:, None]
        model.fit(features, votes, gold=known, impossible=ruled_out)
    elif votes is not None and has_fit_parameter(model, "candidate_weight"):
        model.fit(features, sets, candidate_weight=votes.weights)
    else:
        model.fit(features, sets)
    labels = codes_of(model.labels_, sets.classes)
    outside = suggested = None
    if getattr(model, "outside", "never") != "never":
        is_open = gold < 0
        outside = np.where(is_open, model.outside_probability_, 0.0)
        suggested = np.where(is_open, codes_of(model.suggested_labels_, sets.classes), labels)
    # The confidences of the paper's matching are driven towards 0 and 1: the support that the final
    # labels get from the other rows says more.
    is_paper = isinstance(model, gmpll.GMPLL)
    confidences = model.label_support_ if is_paper else model.label_confidences_
    return Matched(labels, confidences.astype(np.float32), outside, suggested)


def codes_of(labels: NDArray[Any], classes: Names) -> Integers:
    """Return the place of every label among the classes, which need not be sorted."""
    order = np.argsort(classes)
    return order[np.searchsorted(classes[order], labels)].astype(np.int64)


def verdicts(matched: Matched, mask: Mask, gold: Integers, review_below: float) -> Verdicts:
    """Judge labels by their confidences, and by whether the right one is probably missing."""
    labels, confidences, outside, suggested = matched
    rows = np.arange(len(labels))
    confidence = confidences[rows, labels].astype(np.float64)
    others = np.where(mask, confidences, -1.0).astype(np.float64)
    others[rows, labels] = -1.0
    second = others.argmax(axis=1)
    alone = mask.sum(axis=1) == 1
    confidence[alone] = 1.0
    margin = np.where(alone, 1.0, confidence - others[rows, second])
    review = ~alone & (gold < 0) & (margin < review_below)
    if outside is not None:
        review |= outside > PROBABLY
    runners_up = np.where(alone, -1, second)
    return Verdicts(labels, runners_up, confidence, margin, review, (), outside, suggested)


def result_columns(
    found: Verdicts,
    classes: Names,
    taken: Any,
    *,
    votes: Integers | None = None,
    held: Mapping[int, Entry] | None = None,
    decimals: int = 4,
) -> dict[str, list[Any]]:
    """Return the columns that are added to the input; names that are taken get ``resolved_``.

    Of decisions that are ``held`` there is who made them; the label is empty where none is right.
    """
    names = [*classes.tolist(), ""]  # code -1 is the last
    values: dict[str, list[Any]] = {
        "label": [names[code] for code in found.labels.tolist()],
        "confidence": found.confidence.round(decimals).tolist(),
        "runner_up": [names[code] for code in found.runners_up.tolist()],
        "margin": found.margin.round(decimals).tolist(),
        "review": found.review.tolist(),
    }
    for row in np.flatnonzero(np.isnan(found.confidence)).tolist():
        values["confidence"][row] = values["margin"][row] = values["review"][row] = None
    if votes is not None:
        values["votes"] = votes.tolist()
    if found.outside is not None and found.suggested is not None:
        values["suggested"] = [names[code] for code in found.suggested.tolist()]
        values["outside"] = found.outside.round(decimals).tolist()
    for row, entry in (held or {}).items():
        decided = values.setdefault(DECIDED_BY, [""] * len(found.labels))
        decided[row] = entry.reviewer or SOMEBODY
        if entry.decision.action == "none":
            values["label"][row], values["review"][row] = "", False
            values["confidence"][row] = values["margin"][row] = None
    columns = {}
    for name, column in values.items():
        while name in taken:
            name = f"resolved_{name}"
        columns[name] = column
    return columns


def disambiguate(
    df: pd.DataFrame,
    candidates: str | Sequence[str] | None = None,
    *,
    separator: str | None = None,
    votes: pd.DataFrame | str | Path | None = None,
    vote_columns: Sequence[str] = (),
    annotators: Sequence[str] = (),
    merge_labels: bool = False,
    rename: Mapping[str, str] | str | Path | None = None,
    text: str | Sequence[str] | None = None,
    features: str | Path | Sequence[str | Path] | None = None,
    id: str | None = None,
    gold: str | None = None,
    impossible: str | None = None,
    trust: float | None = None,
    outside: str = "auto",
    exclude: str | Sequence[str] = (),
    empty: str = "error",
    method: str = "gmpll",
    review_below: float | None = None,
    random_state: int = 0,
) -> Disambiguation:
    """Find the right label in every row's set of candidates.

    Parameters
    ----------
    df : DataFrame
        One row per item.
    candidates : str or sequence of str, default=None
        The column of candidate sets (lists, JSON lists or delimited text), or several columns of
        0 and 1. Guessed by default, like everything below.
    separator : str, default=None
        Between the labels of a cell, or ``"json"``.
    votes : DataFrame or path, default=None
        A long table of votes (item, label, annotator) in place of candidates; items are matched
        with the column ``id``. Where it says who voted, every annotator is modelled, see
        :mod:`gmpll.evidence.annotators`, unless ``trust`` is given: then votes are only counted.
    vote_columns : sequence of str, default=()
        Its columns, in that order.
    annotators : sequence of str, default=()
        Columns that hold the labels of one annotator each, in place of candidates.
    merge_labels : bool, default=False
        Whether labels that differ in case, whitespace or Unicode form are one label, see
        :func:`gmpll.merge_labels`.
    rename : mapping or path, default=None
        New names of labels by old ones, or a file of them: a JSON object, or a table with the
        columns ``old`` and ``new``.
    text : str or sequence of str, default=None
        Columns of text; ``"none"`` for none.
    features : str, path or sequence, default=None
        Columns (wildcards allowed) and embedding files to use, and no others.
    id, gold : str, default=None
        Columns of ids and of known labels; ``"none"`` for none.
    impossible : str, default=None
        Column of labels that a row cannot have, in the form of candidate sets.
    trust : float, default=None
        How much votes count, see :class:`gmpll.PartialLabelClassifier`; estimated by default.
    outside : {"auto", "never"}, default="auto"
        Whether a row may get a label that nobody voted for. ``"auto"``: where it is known who
        voted, and no labels are ``impossible``.
    exclude : str or sequence of str, default=()
        Columns not to use.
    empty : {"error", "all"}, default="error"
        Whether a row without candidates is refused or may get any label.
    method : str, default="gmpll"
        Any method of the library, in small letters.
    review_below : float, default=None
        Rows with a smaller margin are flagged for review. By default 0.5 where confidences are
        calibrated (the default), else 0.25.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Disambiguation
        Its ``frame`` is ``df`` with the columns ``label``, ``confidence``, ``runner_up``,
        ``margin`` and ``review``; a name that ``df`` has already gets ``resolved_`` before it.
        Where it is known who voted there is the column ``votes``, too: how many voted for the
        label. Where sets may lack the right label there are ``suggested``, the best label of all,
        and ``outside``, how probable that is. Its ``notes`` are sentences on the data and on what
        counted, ``model`` is the fitted model, ``annotators`` a table of them, and ``report()`` the
        page that ``gmpll disambiguate`` writes. Rows without a column of ids are named by the index
        of ``df``.

    Raises
    ------
    TypeError
        If ``df`` is no DataFrame.
    ValueError
        If the data cannot be used; the message says what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables import disambiguate
    >>> df = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|b", "a", "b", "a|b"]})
    >>> disambiguate(df)["label"].tolist()
    ['a', 'a', 'b', 'b']
    """
    given = locals()
    if not isinstance(df, pd.DataFrame):
        raise TypeError(
            f"df must be a pandas DataFrame, but it is of the type {type(df).__name__}: make one "
            "with pandas.DataFrame."
        )
    options = options_of({**given, "seed": random_state})
    try:
        table = table_from_frame(df)
        roles = guess_roles(table, options)
        resolution = resolve(prepare(table, roles, options, _row_names(df.index)))
    except InputError as error:
        raise InputError(_in_python(str(error))) from None
    columns = result_columns(
        resolution.verdicts,
        resolution.prepared.sets.classes,
        set(df.columns),
        votes=resolution.votes,
        decimals=12,
    )
    if roles.separator == "list" and roles.candidates:
        _restore_types(columns, table.frame[roles.candidates[0]])
    notes = tuple(map(_in_python, notes_of(resolution)))
    return Disambiguation(df.assign(**columns), notes, resolution.model, resolution)


def _row_names(index: pd.Index) -> Names | None:
    """Return the index as names of rows; None if it does not tell them apart, or cannot be kept."""
    names = [str(name) for name in index]
    text = "".join(names)
    is_kept = "\0" not in text and text.encode(errors="replace").decode() == text
    return np.array(names, dtype=str) if is_kept and len(set(names)) == len(names) else None


def _in_python(sentence: str) -> str:
    """Name parameters in place of options of the command line: empty='all' for --empty all."""
    parameters = inspect.signature(disambiguate).parameters

    def named(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        if name not in parameters:
            return found[0]
        return f"{name}='{value}'" if value else f"{name}="

    return _OPTION.sub(named, sentence)


def _restore_types(columns: dict[str, list[Any]], sets: pd.Series) -> None:
    """Give labels that were numbers their type back."""
    originals = {
        str(label).strip(): label for labels in sets if labels is not None for label in labels
    }
    for key in columns:
        if key.removeprefix("resolved_") in ("label", "runner_up", "suggested"):
            columns[key] = [originals.get(label, label) for label in columns[key]]
