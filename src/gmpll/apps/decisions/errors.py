"""What can go wrong while reviewing, each with a sentence for the reviewer."""

from gmpll.apps.errors import UserError


class ReviewError(UserError):
    """The review cannot begin or go on; the text says what to do."""


class RequestError(ReviewError):
    """What was asked for makes no sense: no such row, no such label."""


class ConflictError(ReviewError):
    """Somebody else, perhaps another tab, has decided the row in the meantime."""
