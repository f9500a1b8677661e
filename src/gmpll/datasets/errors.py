"""What can go wrong when a data set is asked for."""

__all__ = ["DatasetFormatError", "DatasetUnavailableError"]


class DatasetUnavailableError(FileNotFoundError):
    """The file is not in the data folder and could not be fetched; the text says what to do."""


class DatasetFormatError(ValueError):
    """A file is not what its name promises; the text names the file and the first fault."""
