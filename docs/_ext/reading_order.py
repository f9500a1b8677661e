"""The order in which the examples are best read."""

ORDER = [
    "plot_first_steps",
    "plot_matching_iterations",
    "plot_explain",
    "plot_compare_methods",
    "plot_choose_without_labels",
    "plot_reject",
    "plot_ambiguity_levels",
    "plot_companions",
    "plot_known_labels",
    "plot_votes",
    "plot_digits_review_order",
    "plot_text_tags",
    "plot_ordered_labels",
    "plot_local_vs_full_graph",
]


class ReadingOrder:
    """Sort key of the gallery; what is not listed comes last, by name."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        """Return the place of a file."""
        name = filename.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
