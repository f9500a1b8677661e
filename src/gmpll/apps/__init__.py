"""Applications: tables, the review page, experiments and their report, the command line.

They use the library by its public names only; nothing in the library imports them.
"""
