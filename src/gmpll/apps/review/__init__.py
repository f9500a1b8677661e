"""The review page: a person decides the doubtful rows, most informative first.

``session`` is what the page can ask for, ``app`` speaks HTTP, ``store`` keeps the decisions.
"""
