"""
The paper's graph and the local graph
=====================================

The paper relates every row to every other by the cosine of their features. The local graph
relates a row to its nearest neighbours only. Where a class is a curve rather than a direction, the
difference shows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gmpll import GMPLL
from gmpll.datasets import random_candidates

X, truth = make_moons(240, noise=0.09, random_state=0)
labels = truth + 2 * (X[:, 0] > 0.5)  # both moons cut in two: four labels
candidates = random_candidates(labels, p=0.9, r=2, random_state=0)
models = {
    "all pairs, as in the paper": GMPLL(random_state=0),
    "neighbours only": GMPLL("local", n_graph_neighbors=12, random_state=0),
}

# %%
# Crosses are rows whose label was not found.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    right = model.fit(X, candidates).labels_ == labels
    ax.scatter(*X[right].T, c=labels[right], cmap="tab10", vmax=9, s=22)
    ax.scatter(*X[~right].T, c="k", marker="x", s=30)
    ax.set(title=f"{name}: {np.mean(right):.0%} found", xticks=[], yticks=[])
