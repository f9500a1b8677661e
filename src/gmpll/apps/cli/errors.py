"""Errors that are the user's to fix."""

__all__ = ["UserError"]


class UserError(Exception):
    """Something the user can put right; its text is one sentence that says what and how."""
