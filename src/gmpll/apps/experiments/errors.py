"""The one error of this package that is the user's to fix."""

from gmpll.apps.errors import UserError


class ExperimentError(UserError):
    """A declaration, a name or a run folder is wrong; the text says what and what to do."""
