"""Errors that are the user's to fix."""


class UserError(Exception):
    """Something the user can put right; its text is one sentence that says what and how."""
