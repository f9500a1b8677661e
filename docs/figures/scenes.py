"""Four ways in which candidate sets arise, drawn as the sets of a few rows."""

import matplotlib.pyplot as plt
import numpy as np
from pies import COLORS

from gmpll import as_candidates

SCENES = {
    "faces and a caption": [{"Ada", "Ben"}, {"Ada", "Ben"}, {"Ben", "Cleo"}, {"Cleo"}],
    "votes of a crowd": [{"spam"}, {"spam", "news"}, {"news", "offer"}, {"offer"}],
    "tags of a picture": [{"sky", "tree", "cow"}, {"tree", "cow"}, {"sky", "tree"}, {"cow"}],
    "guessed ages": [{20, 21}, {21, 22, 23}, {22, 23}, {30, 31}],
}

figure, axes = plt.subplots(1, 4, figsize=(9.6, 2.3), layout="constrained")
for ax, (title, rows) in zip(axes, SCENES.items(), strict=True):
    mask, labels = as_candidates(rows)
    i, k = np.nonzero(mask)
    ax.scatter(k, i, s=160, marker="s", color=COLORS[0])
    ax.set(title=title, xticks=range(len(labels)), yticks=range(len(rows)))
    ax.set_xticklabels([str(label) for label in labels], fontsize=9)
    ax.set_yticklabels([f"row {row}" for row in range(len(rows))], fontsize=9)
    ax.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.tick_params(length=0)
    ax.grid(color="#ddd", lw=0.6)
    ax.set_axisbelow(True)
