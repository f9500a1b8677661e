"""Points drawn as pies: the slices are the confidences of the labels."""

import numpy as np

COLORS = np.array(["#3b6fb6", "#d1663b", "#3c9a5f", "#8a5bb5"])


def draw_pies(ax, X, confidences, size=120):
    """Draw every row of X as a pie of its confidences."""
    ends = np.cumsum(confidences, axis=1)
    starts = ends - confidences
    for (x, y), first, last in zip(X, starts, ends, strict=True):
        for label, (start, end) in enumerate(zip(first, last, strict=True)):
            if end - start > 1e-3:
                ax.scatter(x, y, marker=_slice(start, end), s=size, lw=0, color=COLORS[label])


def _slice(start, end):
    angle = 2 * np.pi * np.linspace(start, end, max(3, int(40 * (end - start))))
    rim = np.column_stack([np.sin(angle), np.cos(angle)])
    return rim if end - start > 0.999 else np.vstack([[0, 0], rim, [0, 0]])


def bare(ax, title):
    """Take the axes away."""
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
