"""The report of a run: facts first, the page after."""

from gmpll.apps.report.facts import ranking
from gmpll.apps.report.write import write_report, write_run_report

__all__ = ["ranking", "write_report", "write_run_report"]
