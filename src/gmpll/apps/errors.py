"""The base of all errors that are the user's to fix: the command line says them in a sentence."""


class UserError(ValueError):
    """Something the user can put right; its text is one sentence that says what and how."""
