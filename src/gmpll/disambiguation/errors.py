"""What is wrong with an input, said in one sentence."""

__all__ = ["InputError", "quoted"]

#: Cells and names of any length must leave the sentence readable.
_LONGEST = 60


class InputError(ValueError):
    """The data cannot be used as they are; the text says what is wrong, where, and what to do."""


def quoted(value: object) -> str:
    r"""Show a value in a sentence: on one line, shortened, in quotes.

    Examples
    --------
    >>> from gmpll.disambiguation.errors import quoted
    >>> print(quoted("two\nlines"))
    'two\nlines'
    """
    text = str(value)
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
