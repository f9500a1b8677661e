"""The worked example: four instances, three labels, and who supports whom."""

import matplotlib.pyplot as plt
import numpy as np
from pies import COLORS, bare

from gmpll.matching import full_affinity, match, uniform_start

X = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
mask = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
affinity = full_affinity(X, mask, beta=0.6)
shown = (
    ("before: every candidate equal", uniform_start(mask)),
    ("after one iteration", match(affinity, mask, max_iter=1).probabilities),
    ("in the end", match(affinity, mask).probabilities),
)

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.1), layout="constrained")
for ax, (title, P) in zip(axes, shown, strict=True):
    for i, label in zip(*np.nonzero(mask), strict=True):
        ends, p = ([0, 1], [3 - i, 2.5 - label]), P[i, label]
        ax.plot(*ends, color=COLORS[label], lw=0.5 + 5 * p, alpha=0.25 + 0.75 * p)
        share = 0.3 + 0.1 * (i % 2)
        at = share, (1 - share) * ends[1][0] + share * ends[1][1]
        ax.text(*at, f"{p:.2f}", ha="center", va="center", fontsize=8,
                bbox={"fc": "white", "ec": "none", "pad": 0.6})  # fmt: skip
    for i in range(4):
        ax.plot(0, 3 - i, "o", ms=15, color="#555")
        ax.text(0, 3 - i, f"{i + 1}", color="white", ha="center", va="center")
    for label, name in enumerate("abc"):
        ax.plot(1, 2.5 - label, "s", ms=15, color=COLORS[label])
        ax.text(1, 2.5 - label, name, color="white", ha="center", va="center")
    ax.set(xlim=(-0.15, 1.15), ylim=(-0.5, 3.5))
    bare(ax, title)
