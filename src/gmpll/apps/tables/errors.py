"""What is wrong with an input, said in one sentence."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gmpll.apps.errors import UserError

#: Cells and names of any length must leave the sentence readable.
_MAX_CELL = 60


class InputError(UserError):
    """The data cannot be used as they are; the text says what is wrong, where, and what to do."""


@contextmanager
def damage_told(sentence: str, *passed: type[Exception]) -> Iterator[None]:
    """Say what makes a reader stumble in a sentence, REASON filled in; some errors are passed."""
    plain: tuple[type[Exception], ...] = (InputError, *passed)
    try:
        yield
    except plain:
        raise
    except Exception as error:  # damage shows in a dozen kinds of exception
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(sentence.replace("REASON", reason)) from error


def counted(number: int, thing: str, verb: str = "") -> str:
    """Return a number of things: "1 row", "2 rows are"; the verb is given in the singular."""
    if number == 1:
        return f"1 {thing} {verb}".rstrip()
    plural = {"has": "have", "is": "are", "stands": "stand"}.get(verb, "")
    return f"{number} {thing}s {plural}".rstrip()


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return names with commas, the first of them if there are many."""
    texts = [str(name)[: _MAX_CELL + 2] for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def quoted(value: object) -> str:
    """Show a value in a sentence: on one line, shortened, in quotes."""
    text = str(value)
    return repr(text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 1]}…")
