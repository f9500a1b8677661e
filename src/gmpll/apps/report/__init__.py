"""The report of a run: facts first, the page after."""

from gmpll.apps.report.write import write_report

__all__ = ["write_report"]
