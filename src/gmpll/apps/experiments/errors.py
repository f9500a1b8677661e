"""The one error of this package that is the user's to fix."""

__all__ = ["ExperimentError"]


class ExperimentError(ValueError):
    """A declaration, a name or a run folder is wrong; the text says what and what to do."""
