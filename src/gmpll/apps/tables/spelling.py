"""How labels are written in the end: new names that the user gave, and one for all variants."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gmpll.apps.tables.errors import InputError, counted, listed, quoted
from gmpll.apps.tables.tables import read_json, read_table
from gmpll.label_names import merged_names, spelling_key, variants

_MAX_GROUPS = 40


#: Gives a label its new name, which may be its old one.
Spelling = Callable[[str], str]


def read_spelling(
    counts: Mapping[str, int], known: Sequence[str], options: Any, problems: list[str]
) -> tuple[Spelling, dict[str, dict[str, int]]]:
    """Decide on the names of labels, given with their counts; tell what is odd of them.

    With the names come, for every new one, the labels that became it and how often they stood.
    """
    all_counts = {**dict.fromkeys(known, 0), **counts}
    renamed = read_renames(options.rename)
    key = spelling_key if options.merge_labels else str  # a new name is for all variants of the old
    by_key, known_keys = {key(old): new for old, new in renamed.items()}, set(map(key, all_counts))
    strange = [old for old in renamed if key(old) not in known_keys]
    if strange:
        raise InputError(
            f"--rename has a new name for {quoted(strange[0])}, which is no label: the labels are "
            f"{listed(map(quoted, sorted(counts)))}."
        )
    renamed = {name: by_key[key(name)] for name in all_counts if key(name) in by_key} | renamed
    now: Counter[str] = Counter()
    for label, count in all_counts.items():
        now[renamed.get(label, label)] += count
    names: dict[str, str] = {}
    if options.merge_labels:
        # A spelling that --labels allows comes first, whatever its count.
        most = now.total() + 1
        names = merged_names({n: count + most * (n in options.labels) for n, count in now.items()})
    merged = {spelling_key(n): names.get(n, n) for n in now} if options.merge_labels else {}
    problems += _note_of_variants({names.get(n, n): count for n, count in now.items()})

    def spelling(label: str) -> str:
        label = renamed.get(label, label)
        return merged.get(spelling_key(label), label) if merged else label

    joined: dict[str, dict[str, int]] = {}
    for label, count in counts.items():
        if spelling(label) != label:
            joined.setdefault(spelling(label), {})[label] = count
    if joined:
        said = [f"{_counts(old)} became {quoted(new)}" for new, old in sorted(joined.items())]
        problems.append(f"labels were merged or renamed: {_few(said)}")
    return spelling, joined


def _note_of_variants(counts: Mapping[str, int]) -> list[str]:
    groups = variants(counts)
    if not groups:
        return []
    left = [len({spelling_key(name) for name in group}) for group in groups]
    remedies = []
    if any(n < len(group) for n, group in zip(left, groups, strict=True)):
        what = "one of those that differ in case, spaces or Unicode form"
        remedies.append(f"--merge-labels makes {what}")
    if max(left) > 1:
        remedies.append("--rename OLD=NEW makes one of any others")
    what = f"{counted(len(groups), 'label', 'is')} written in several ways"
    return [f"{what}: {_few(map(_counts, groups))}; {', '.join(remedies)}"]


def _counts(group: Mapping[str, int]) -> str:
    return ", ".join(f"{_shown(name)} ({count})" for name, count in group.items())


def _shown(name: str) -> str:
    """Show a name, with codes for its characters where something of it cannot be seen."""
    seen = unicodedata.normalize("NFC", " ".join(name.split()))
    return quoted(name) if name == seen and name.isprintable() else ascii(name)[:60]


def _few(texts: Any) -> str:
    shown = list(texts)
    more = f"; and {len(shown) - _MAX_GROUPS} more" if len(shown) > _MAX_GROUPS else ""
    return "; ".join(shown[:_MAX_GROUPS]) + more


def read_renames(given: Any) -> dict[str, str]:
    """Return new names by old ones, from a mapping or from texts that are OLD=NEW or a file."""
    pairs: list[tuple[str, str]] = []
    if isinstance(given, Mapping):
        pairs = [(str(old), str(new)) for old, new in given.items()]
        given = ()
    for text in [given] if isinstance(given, (str, Path)) else given or ():
        old, mark, new = str(text).partition("=")
        pairs += [(old, new)] if mark else _pairs_in(Path(text))
    names: dict[str, str] = {}
    for old, new in ((old.strip(), new.strip()) for old, new in pairs):
        if not old or not new:
            raise InputError(
                f"--rename has {quoted(f'{old}={new}')}: it needs OLD=NEW, both of them not empty."
            )
        if names.setdefault(old, new) != new:
            raise InputError(
                f"--rename gives {quoted(old)} the names {quoted(names[old])} and {quoted(new)}: "
                "leave out one of them."
            )
    return names


def _pairs_in(path: Path) -> list[tuple[str, str]]:
    """Read a file of new names: a JSON object, or a table with the columns old and new."""
    if not path.is_file():
        raise InputError(
            f"--rename has {quoted(path)}, which is neither OLD=NEW nor a file: give one of them."
        )
    if path.suffix.lower() == ".json":
        content = read_json(path)
        if isinstance(content, dict) and all(isinstance(new, str) for new in content.values()):
            return list(content.items())
        if not isinstance(content, list):
            raise InputError(f'{path} must hold new names by old ones, like {{"old": "new"}}.')
    table = read_table(path)
    columns = {name.lower(): name for name in table.frame.columns}
    if not {"old", "new"} <= columns.keys():
        raise InputError(
            f"{path} needs the columns old and new; it has {listed(table.frame.columns)}."
        )
    return list(zip(table.text(columns["old"]), table.text(columns["new"]), strict=True))
