"""What pages are made of: tables, drawings, and templates that escape every name."""

from gmpll.apps.pages.rendering import render_template

__all__ = ["render_template"]
