"""What is wrong with an input, said in one sentence."""

__all__ = ["InputError", "counted", "quoted"]

#: Cells and names of any length must leave the sentence readable.
_LONGEST = 60


class InputError(ValueError):
    """The data cannot be used as they are; the text says what is wrong, where, and what to do."""


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> from gmpll.apps.tables.errors import counted
    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def quoted(value: object) -> str:
    r"""Show a value in a sentence: on one line, shortened, in quotes.

    Examples
    --------
    >>> from gmpll.apps.tables.errors import quoted
    >>> print(quoted("two\nlines"))
    'two\nlines'
    """
    text = str(value)
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
