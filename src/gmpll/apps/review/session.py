"""A review under way: everything that the page can ask for, without a word of HTTP."""

import hashlib
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._typing import Floats, Mask, Places
from gmpll.apps.decisions.errors import ConflictError, RequestError, ReviewError
from gmpll.apps.decisions.store import FILE_NAME, Decision, Entry, Rematched, Store
from gmpll.apps.pages.images import Image, PictureError, read_picture
from gmpll.apps.review.applying import NO_DECISION, apply_decisions
from gmpll.apps.review.background import BackgroundRun
from gmpll.apps.review.guidelines import Node, definitions, read_guidelines
from gmpll.apps.review.ordering import Similarity, doubt, propose_order
from gmpll.apps.tables import InputError, SavedMatching, read_matching, rematch
from gmpll.apps.tables.tables import read_table

#: How to match again: what was found before, and the known labels (codes by row).
Rematch = Callable[[SavedMatching, dict[int, int]], SavedMatching]

#: Neighbours shown with an item; more do not fit beside it.
SHOWN_NEIGHBORS = 8
#: Answers of a search for labels, and rows in a list.
SHOWN_LABELS = 30
SHOWN_ROWS = 500
#: Margin below which a label is in doubt, where the run did not say.
REVIEW_BELOW = 0.25
#: Labels at least so sure can be accepted together.
VERY_SURE = (0.99, 0.98, 0.95, 0.9)
#: A row that is leased to another tab is offered again after this time.
LEASE_SECONDS = 300.0
#: Longest name of a label that the reviewer brings, and of the reviewer.
MAX_LABEL_LENGTH = 200
MAX_REVIEWER_LENGTH = 60
#: Characters of a text in a list of rows, and how many other cells stand there.
EXCERPT = 160
EXCERPT_CELLS = 5


def _share(confidence: np.floating) -> float:
    return round(float(confidence), 4)


class _Matching(NamedTuple):
    """The labels as they stand, and the order to ask in. Replaced as a whole, so never torn."""

    saved: SavedMatching
    order: Places
    doubtful: Mask
    margins: Floats
    confidence: NDArray[np.floating]  # of the labels found


class Result(NamedTuple):
    """A row with the label as it stands; ``label`` is None where no candidate is right."""

    id: str
    label: str | None
    origin: str
    decision: str
    decided_at: str
    decided_by: str
    matched: str
    confidence: float
    fields: dict[str, str]


class ReviewSession:
    """The decisions about one matching, and what follows from them."""

    def __init__(
        self,
        saved: SavedMatching,
        store: Store,
        rematch: Rematch,
        image_folder: Path | None = None,
        guidelines: list[Node] | None = None,
    ) -> None:
        self.store = store
        self.folder = store.path.parent
        self._image_folder = image_folder
        self._rematch = rematch
        self._lock = threading.Lock()
        self._passed: dict[str, set[int]] = {}
        self.run = BackgroundRun()
        self._begin(saved)
        self._similarity = Similarity(saved.features, labels=saved.labels)
        self._check_store()
        self._matching = self._put_in_order()
        nodes = guidelines or []
        self.guidelines = {"nodes": nodes, "definitions": definitions(nodes, self._codes)}

    def _begin(self, saved: SavedMatching) -> None:
        """Take over the results that lie in the folder."""
        self.saved = saved
        # A table that came from memory has no folder.
        source_folder = Path(saved.source).parent if saved.source else None
        self.image_folder = self._image_folder or source_folder
        settings = json.loads(saved.settings)
        self._review_below = float(settings.get("review_below", REVIEW_BELOW))
        self._calibrated = settings.get("method") == "gmpll"
        #: Labels of the input; those behind them were brought by reviewers and are kept by name.
        self._n_own = len(saved.classes) - saved.rows.n_new
        self._codes = {str(name): code for code, name in enumerate(saved.classes)}
        known = saved.outside.size > 0
        self._outside = saved.outside if known else np.zeros(len(saved.ids))
        # Confidences compare the candidates; those of votes of named annotators all labels.
        self._complete = np.ones(len(saved.ids)) if saved.votes.size else 1.0 - self._outside
        self._suggested = saved.suggested if known else saved.labels
        found = saved.labels.astype(np.int64), saved.confidence.astype(np.float32)
        self._base = hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()
        # Of votes of named annotators a label can be in doubt, or lie outside, that stands alone.
        in_doubt = 1 - 2 * doubt(saved.confidence, saved.labels) < self._review_below
        several = saved.mask.sum(axis=1) > 1
        self._ambiguous = (several | in_doubt | saved.lacking) & (saved.gold < 0)
        self.rematched = self.store.load_rematched(self._base)

    def _check_store(self) -> None:
        """Refuse decisions about rows and labels that there are not."""
        n, q = self.saved.mask.shape
        held = self.store.decisions().values()
        strange = [e.number for e in held if e.row >= n or (e.decision.code or 0) >= q]
        reason = f"entry {strange[0]} names no row or label" if strange else ""
        if self.rematched and [a.shape for a in self.rematched[1:3]] != [(n,), (n, q)]:
            reason = reason or "its last matching is of other rows"
        if reason:
            raise ReviewError(
                f"{self.store.path} is damaged ({reason}): move it away to begin a new review."
            )

    def _put_in_order(self) -> _Matching:
        saved, rematched = self.saved, self.rematched
        if rematched is not None:
            saved = replace(saved, labels=rematched.labels, confidence=rematched.confidence)
        doubts = doubt(saved.confidence, saved.labels)
        margins = 1 - 2 * doubts
        doubtful = self._ambiguous & ((margins < self._review_below) | saved.lacking)
        doubts = np.maximum(doubts, np.where(saved.lacking, self._outside, 0.0))
        decided = list(self.store.decisions())
        doubts[decided] = 0.0  # settled: they draw no questions to the rows around them
        waiting = self._ambiguous.copy()
        waiting[decided] = False
        first = propose_order(doubts, waiting, self._similarity)
        # The page promises that so many doubtful rows are left: no others stand between them.
        first = first[np.argsort(~doubtful[first], kind="stable")]
        # Decided rows stay at the end: whatever is undone later is found there.
        rest = np.flatnonzero(self._ambiguous & ~waiting)
        confidence = saved.confidence[np.arange(len(saved.labels)), saved.labels]
        return _Matching(saved, np.concatenate([first, rest]), doubtful, margins, confidence)

    # Items

    def next_item(self, tab: str, passed: int | None = None) -> dict[str, Any] | None:
        """Return the most informative row that is neither decided nor leased to another tab.

        Skipped rows come after all others, and those that the tab has passed over last of all.
        """
        with self._lock:
            over = self._passed.setdefault(tab, set())
            if passed is not None:
                over.add(passed)

            def choose(held: dict[int, Entry], elsewhere: set[int]) -> int | None:
                waiting = [row for row in self._matching.order.tolist() if row not in held]
                skipped = [e for e in held.values() if e.decision.action == "skip"]
                waiting += [e.row for e in sorted(skipped, key=lambda entry: entry.number)]
                free = [row for row in waiting if row not in elsewhere]
                if over.issuperset(free):
                    over.clear()
                return next((row for row in free if row not in over), None)

            row = self.store.take(tab, choose, lease_seconds=LEASE_SECONDS)
        return None if row is None else self.item(row)

    def item(self, row: int) -> dict[str, Any]:
        """Describe a row: what it is, its candidates, what speaks for them, the decision."""
        self._check_row(row)
        entry = self.store.current(row)
        fields = self._fields(row)
        text = fields.pop(self.saved.text_column, None)
        image = fields.pop(self.saved.image_column, None)
        return {
            "row": row,
            "id": str(self.saved.ids[row]),
            "version": self.store.version(row),
            "text": text,
            "image": image,
            "fields": [{"name": name, "value": value} for name, value in fields.items()],
            "candidates": self._candidates(row),
            "suggested": self._suggestion(row),
            "doubtful": bool(self._matching.doubtful[row]),
            "neighbors": self._neighbors(row),
            "decision": self._described(entry),
        }

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self.saved.ids):
            raise RequestError(f"There is no row {row}: rows are 0 to {len(self.saved.ids) - 1}.")

    def _fields(self, row: int) -> dict[str, str]:
        try:
            shown = json.loads(str(self.saved.display[row])).items()
        except (ValueError, RecursionError, AttributeError):  # it can be decided all the same
            return {}
        return {
            str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in shown
            if value is not None
        }

    def _suggestion(self, row: int) -> dict[str, Any] | None:
        """Return the label that similar rows suggest where no candidate is probably right."""
        code, name = int(self._suggested[row]), str(self.saved.classes[self._suggested[row]])
        if not self.saved.lacking[row] or self.saved.mask[row, code]:
            return None
        # Of votes it may be the label found, which stands among the candidates already.
        listed = code == int(self._matching.saved.labels[row])
        outside = _share(self._outside[row])
        return {"code": code, "name": name, "outside": outside, "listed": listed}

    def _candidates(self, row: int) -> list[dict[str, Any]]:
        saved = self._matching.saved
        codes = np.union1d(np.flatnonzero(self.saved.mask[row]), saved.labels[row])
        codes = codes[np.argsort(-saved.confidence[row, codes], kind="stable")]
        return [
            {
                "code": int(code),
                "name": str(self.saved.classes[code]),
                "confidence": _share(saved.confidence[row, code] * self._complete[row]),
                "found": bool(code == saved.labels[row]),
                "votes": int(saved.weights[row, code]) if saved.weights.size else None,
            }
            for code in codes
        ]

    def _neighbors(self, row: int) -> list[dict[str, Any]]:
        similar, weights = self._similarity.to(np.array([row]))
        held = self.store.decisions()
        return [
            {**self._line(int(other), held), "weight": round(float(weight), 3)}
            for other, weight in list(zip(similar[0], weights[0], strict=True))[:SHOWN_NEIGHBORS]
        ]

    def _line(self, row: int, held: Mapping[int, Entry]) -> dict[str, Any]:
        """Describe a row in one line of a list, by its text and a few of its other cells."""
        fields, identity = self._fields(row), str(self.saved.ids[row])
        text_column, image_column = self.saved.text_column, self.saved.image_column
        cells = [
            f"{name}: {value}"
            for name, value in fields.items()
            if name not in (text_column, image_column) and value not in ("", identity)
        ]
        text = ", ".join(filter(None, [fields.get(text_column), *cells[:EXCERPT_CELLS]]))
        label, origin = self._label(row, held)
        return {
            "row": row,
            "id": identity,
            "by": held[row].reviewer if origin == "reviewer" else "",
            "excerpt": text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…",
            "has_image": image_column in fields,
            "label": label,
            "origin": origin,
        }

    def _label(self, row: int, held: Mapping[int, Entry]) -> tuple[str | None, str]:
        """Return the label of a row as it stands, and who gave it: reviewer, input, matching."""
        entry = held.get(row)
        if entry is not None and entry.decision.action != "skip":
            return self._decided_name(entry.decision), "reviewer"
        origin = "input" if self.saved.gold[row] >= 0 else "matching"
        return str(self.saved.classes[self._matching.saved.labels[row]]), origin

    def _decided_name(self, decision: Decision) -> str | None:
        code = decision.code
        return decision.name if code is None else str(self.saved.classes[code])

    def _described(self, entry: Entry | None) -> dict[str, Any] | None:
        if entry is None:
            return None
        label = self._decided_name(entry.decision)
        action, by = entry.decision.action, entry.reviewer
        return {"action": action, "label": label, "at": entry.at, "by": by}

    def image(self, row: int) -> Image:
        """Read the picture that a row names."""
        self._check_row(row)
        name = self._fields(row).get(self.saved.image_column)
        if not name:
            raise RequestError(f"Row {row} names no picture.")
        if self.image_folder is None:
            raise RequestError("The input was no file: name the folder of the pictures, --images.")
        try:
            return read_picture(name, self.image_folder)
        except PictureError as error:
            raise RequestError(str(error)) from None

    def labels_like(self, part: str) -> list[dict[str, Any]]:
        """Find labels, those without a code that reviewers brought too, by a part of their name.

        Those that begin with it come first, and of these the ones that most rows have.
        """
        part = part.casefold().strip()
        held = self.store.decisions()
        brought = (e.decision.name for e in held.values())
        codes = {**{name: None for name in brought if name}, **self._codes}
        often = Counter(self._label(row, held)[0] for row in range(len(self.saved.ids)))
        found = [
            (not folded.startswith(part), -often[name], folded, name)
            for name in codes
            if part in (folded := name.casefold())
        ]
        return [{"code": codes[name], "name": name} for *_, name in sorted(found)[:SHOWN_LABELS]]

    # Decisions

    def decide(
        self, row: int, decision: Decision, *, seen_version: int, tab: str, reviewer: str = ""
    ) -> Entry:
        """Check a decision and write it; see :meth:`Store.decide`."""
        self._check_row(row)
        found = int(self._matching.saved.labels[row])
        return self.store.decide(
            row,
            self._checked(decision),
            seen_version=seen_version,
            tab=tab,
            reviewer=self._checked_reviewer(reviewer),
            found=found if found < self._n_own else None,
            margin=float(self._matching.margins[row]),
        )

    def _checked(self, decision: Decision) -> Decision:
        if decision.action == "label":
            if decision.code is None or not 0 <= decision.code < len(self.saved.classes):
                raise RequestError("A label is chosen by its code; there is no such code.")
            name = str(self.saved.classes[decision.code])
        elif decision.action == "other":
            name = " ".join((decision.name or "").split())
            if not (0 < len(name) <= MAX_LABEL_LENGTH and name.isprintable()):
                raise RequestError(
                    f"Another label needs a name of 1 to {MAX_LABEL_LENGTH} printable characters."
                )
        else:
            return Decision(decision.action)
        code = self._codes.get(name, self._n_own)
        is_own = code < self._n_own
        return Decision("label", code=code) if is_own else Decision("other", name=name)

    @staticmethod
    def _checked_reviewer(name: str) -> str:
        name = " ".join(name.split())
        if len(name) > MAX_REVIEWER_LENGTH or not name.isprintable():
            raise RequestError(
                f"The name of a reviewer has at most {MAX_REVIEWER_LENGTH} printable characters."
            )
        return name

    def undo(self, tab: str) -> tuple[int | None, int]:
        """Take back the last decision, or batch, of a tab; return a row of it and how many."""
        undone = self.store.undo(tab)
        return (undone[-1].row if undone else None), len(undone)

    # Very sure rows

    def _sure(self, at_least: float) -> dict[int, int]:
        """Return the labels found of undecided rows that are so sure and in no doubt."""
        saved, held = self._matching.saved, self.store.decisions()
        confident = self._matching.confidence >= at_least
        sure = self._ambiguous & ~self._matching.doubtful & confident
        rows = np.flatnonzero(sure & (saved.labels < self._n_own)).tolist()
        return {row: int(saved.labels[row]) for row in rows if row not in held}

    def sure_rows(self) -> list[dict[str, Any]]:
        """Tell for some limits how many rows are as sure, and how many of them are likely wrong."""
        told = []
        for at_least in VERY_SURE:
            rows = list(self._sure(at_least))
            wrong = round(float(self._wrong()[rows].sum()), 1) if self._calibrated else None
            told.append({"at_least": at_least, "rows": len(rows), "wrong": wrong})
        return told

    def accept_sure(self, at_least: float, *, tab: str, reviewer: str = "") -> int:
        """Decide for the labels found of all rows that are as sure; return how many there were."""
        if at_least not in VERY_SURE:
            raise RequestError(f"Rows are accepted from one of {VERY_SURE} on.")
        reviewer = self._checked_reviewer(reviewer)
        sure = self._sure(at_least)
        return len(self.store.decide_together(sure, tab=tab, reviewer=reviewer))

    def _wrong(self) -> Floats:
        """Return how probably the label found of every row is wrong, where that is estimated."""
        right = self._matching.confidence * self._complete
        return np.where(self.saved.gold >= 0, 0.0, 1.0 - right)

    # What was decided

    def decided_rows(
        self, *, label: str = "", reviewer: str | None = None, doubt: str = "", text: str = ""
    ) -> dict[str, Any]:
        """List what every reviewer decided, newest first, and how far they agree.

        Filters are the label, the reviewer, ``doubt`` ("doubtful" or "sure", before anybody
        decided) and a part of the text of the row.
        """
        held, opinions = self.store.decisions(), self.store.opinions()
        skipped = [e for e in held.values() if e.decision.action == "skip"]
        entries = [*skipped, *(e for said in opinions.values() for e in said.values())]
        entries.sort(key=lambda entry: -entry.number)
        names = {self._decided_name(e.decision) or "" for e in entries if e not in skipped}
        by_reviewer: dict[str, list[Entry]] = {}
        for name, entry in (pair for said in opinions.values() for pair in said.items()):
            by_reviewer.setdefault(name, []).append(entry)
        part = text.casefold().strip()

        def is_wanted(entry: Entry) -> bool:
            doubtful = entry.margin is not None and entry.margin < self._review_below
            return (
                (not label or self._decided_name(entry.decision) == label)
                and (reviewer is None or entry.reviewer == reviewer)
                and (not doubt or (doubt == "doubtful") == doubtful)
                and (not part or self._contains(entry.row, part))
            )

        shown = list(filter(is_wanted, entries))
        return {
            "count": len(shown),
            "rows": [
                {
                    **self._line(entry.row, held),
                    "decision": self._described(entry),
                    "holds": held.get(entry.row) == entry,
                    "found": None if entry.found is None else str(self.saved.classes[entry.found]),
                }
                for entry in shown[:SHOWN_ROWS]
            ],
            "labels": sorted(names - {""}),
            "reviewers": [
                {"name": name, "decided": len(said), **_agreement_with_model(said)}
                for name, said in sorted(by_reviewer.items())
            ],
            "pairs": _agreement_of_reviewers(opinions),
        }

    def _contains(self, row: int, part: str) -> bool:
        cells = [str(self.saved.ids[row]), *self._fields(row).values()]
        return any(part in cell.casefold() for cell in cells)

    def summary(self) -> dict[str, Any]:
        """Tell how far the review is: what was decided, and about how many labels are wrong."""
        held = [e for e in self.store.decisions().values() if e.decision.action != "skip"]
        told = _agreement_with_model(held)
        left = self._wrong()
        left[[entry.row for entry in held]] = 0.0
        return {
            "decided": len(held),
            "agreed": told["agreed"],
            "changed": told["compared"] - told["agreed"],
            "wrong_left": round(float(left.sum()), 1) if self._calibrated else None,
            "left": int(self._ambiguous.sum()) - sum(bool(self._ambiguous[e.row]) for e in held),
            "folder": str(self.folder),
        }

    def progress(self) -> dict[str, Any]:
        """Count what is decided and what is left."""
        held = self.store.decisions()
        skipped = {row for row, entry in held.items() if entry.decision.action == "skip"}
        decided = held.keys() - skipped
        doubtful = set(np.flatnonzero(self._matching.doubtful).tolist())
        return {
            "rows": len(self.saved.ids),
            "ambiguous": int(self._ambiguous.sum()),
            "decided": len(decided),
            "skipped": len(skipped),
            "doubtful": len(doubtful - decided),
            "source": Path(self.saved.source).name,
            "calibrated": self._calibrated,
            "guidelines": bool(self.guidelines["nodes"]),
            "run": self.run.status(),
            "rematched_at": self.rematched.at if self.rematched else None,
        }

    # Matching again

    def gold(self) -> dict[int, int]:
        """Return the known labels by row: those of the input and the reviewer's."""
        known = {row: code for row, code in enumerate(self.saved.gold.tolist()) if code >= 0}
        return known | self._decided_codes()

    def _decided_codes(self) -> dict[int, int]:
        """Return the codes of the labels decided, without those that the matching does not know."""
        held = self.store.decisions().values()
        names = {e.row: self._decided_name(e.decision) for e in held}
        return {row: self._codes[name] for row, name in names.items() if name in self._codes}

    def match_again(self) -> None:
        """Start matching with the decisions as known labels; the page goes on meanwhile."""

        def work() -> str:
            gold = self.gold()
            after = self._rematch(self.saved, gold)
            rematched = Rematched(
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                labels=after.labels,
                confidence=after.confidence,
                gold_rows=np.array(sorted(gold), dtype=np.int64),
            )
            self.store.save_rematched(self._base, rematched)
            self.rematched = rematched
            self._matching = self._put_in_order()
            return ""

        if not self._decided_codes():
            raise ConflictError(NO_DECISION)
        self.run.start("match", work)

    def apply(self) -> None:
        """Start making the results in the folder again, with the decisions as known labels."""

        def work() -> str:
            applied = apply_decisions(self.folder)
            with self._lock:
                self._begin(read_matching(self.folder))
                self._matching = self._put_in_order()
            return str(applied)

        if not any(e.decision.action != "skip" for e in self.store.decisions().values()):
            raise ConflictError(NO_DECISION)
        self.run.start("apply", work)

    def changes(self) -> dict[str, Any]:
        """Tell which labels the latest matching changed, apart from the decided rows' own."""
        if (rematched := self.rematched) is None:
            return {"at": None, "count": 0, "rows": []}
        saved = self.saved
        changed = np.flatnonzero(rematched.labels != saved.labels)
        others = np.setdiff1d(changed, rematched.gold_rows)
        surest = -rematched.confidence[others, rematched.labels[others]]
        others = others[np.argsort(surest, kind="stable")]
        return {
            "at": rematched.at,
            "decisions": len(rematched.gold_rows),
            "decided_and_changed": len(changed) - len(others),
            "count": len(others),
            "rows": [
                {
                    **self._line(row, {}),
                    "before": str(saved.classes[saved.labels[row]]),
                    "before_confidence": _share(saved.confidence[row, saved.labels[row]]),
                    "after": str(saved.classes[rematched.labels[row]]),
                    "after_confidence": _share(rematched.confidence[row, rematched.labels[row]]),
                }
                for row in others[:SHOWN_ROWS].tolist()
            ],
        }

    # Results

    def input_columns(self) -> dict[str, list[str]]:
        """Return the columns of the input as text; none where the results cannot be read."""
        settings = json.loads(self.saved.settings)
        given = settings.get("input") or {}
        for path in sorted(self.folder.glob("resolved.*")):
            try:
                table = read_table(path, encoding=given["reading"]["encoding"] if given else None)
                names = table.frame.columns[: -settings["added_columns"]]
            except (InputError, OSError, KeyError, TypeError):
                continue
            if len(table.frame) == len(self.saved.ids):
                mark = "'" if given.get("escape", True) and table.format in ("csv", "tsv") else ""
                return {
                    name.removeprefix(mark): [cell.removeprefix(mark) for cell in table.text(name)]
                    for name in names
                }
        return {}

    def results(self) -> Iterator[Result]:
        """Yield every row with the label as it stands, in the order of the input."""
        held = self.store.decisions()
        saved = self._matching.saved
        inputs = self.input_columns()
        for row, found in enumerate(saved.labels.tolist()):
            label, origin = self._label(row, held)
            entry = held.get(row)
            yield Result(
                str(saved.ids[row]),
                label,
                origin,
                *((entry.decision.action, entry.at, entry.reviewer) if entry else ("", "", "")),
                str(saved.classes[found]),
                float(self._matching.confidence[row]),
                {n: c[row] for n, c in inputs.items()} or self._fields(row),
            )


def _agreement_of_reviewers(opinions: Mapping[int, Mapping[str, Entry]]) -> list[dict[str, Any]]:
    """Tell for every two reviewers how many rows both decided, and how many alike."""
    alike: dict[tuple[str, str], list[bool]] = {}
    for said in opinions.values():
        for one, other in itertools.combinations(sorted(said), 2):
            alike.setdefault((one, other), []).append(said[one].decision == said[other].decision)
    return [
        {"names": pair, "rows": len(found), "agreed": sum(found)}
        for pair, found in sorted(alike.items())
    ]


def _agreement_with_model(entries: Sequence[Entry]) -> dict[str, int]:
    """Tell in how many of the decisions the label found before is known, and was chosen."""
    compared = [e for e in entries if e.found is not None]
    return {"compared": len(compared), "agreed": sum(e.decision.code == e.found for e in compared)}


def open_review(
    directory: Path,
    *,
    images: Path | None = None,
    rematch: Rematch = rematch,
    guidelines: Path | None = None,
) -> ReviewSession:
    """Begin a review of what ``gmpll disambiguate`` wrote to a folder, or go on with it.

    Decisions about another matching are a ReviewError.
    """
    nodes = None if guidelines is None else read_guidelines(guidelines)
    saved = read_matching(directory)
    store = Store(directory / FILE_NAME, saved.rows.key())
    return ReviewSession(saved, store, rematch, images, nodes)
