"""What commands raise themselves."""

from gmpll.apps.errors import UserError

__all__ = ["UserError"]
