"""What reviewers decided about the rows of a matching: ``store`` keeps it in a file, ``archive``
carries it over to a new matching.

Neither knows how a matching is made or shown, so that both sides can use them.
"""
