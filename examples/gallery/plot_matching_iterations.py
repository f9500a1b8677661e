"""
The matching, iteration by iteration
====================================

Every row starts with all its candidates equal. In each iteration a candidate's probability is
multiplied by its support among the neighbours, and the row's probabilities are normalised. The
pies show them.
"""

import matplotlib.pyplot as plt
import numpy as np

from gmpll.datasets import make_partial_label_problem
from gmpll.graph.local import LocalGraph
from gmpll.matching import LocalAffinity, match, uniform_start

problem = make_partial_label_problem(70, 2, 3, mean_candidates=2.2, separation=5.0, random_state=2)
X, mask = problem.data, problem.candidates
affinity = LocalAffinity(LocalGraph(X, 10).weights, mask)


def draw_pie(ax, x, y, shares):
    """Draw the probabilities of a row as a pie."""
    start = 0.0
    for label, share in enumerate(shares):
        angle = 2 * np.pi * np.linspace(start, start + share, 20)
        slice_ = np.vstack([[0, 0], np.column_stack([np.sin(angle), np.cos(angle)]), [0, 0]])
        if share > 1e-3:
            ax.scatter(x, y, marker=slice_, s=110, lw=0, color=f"C{label}")
        start += share


# %%
# Iteration 0 is the start. Most rows have decided after a few iterations.

figure, axes = plt.subplots(1, 4, figsize=(10, 3), layout="constrained")
for ax, n_iter in zip(axes, (0, 1, 3, 10), strict=True):
    P = uniform_start(mask)
    if n_iter:
        P = match(affinity, mask, max_iter=n_iter).probabilities
    for (x, y), shares in zip(X, P, strict=True):
        draw_pie(ax, x, y, shares)
    decided = np.mean(P.max(axis=1) > 0.9)
    ax.set(title=f"iteration {n_iter}: {decided:.0%} decided", xticks=[], yticks=[])

# %%
# The objective :math:`p^\top K p` never falls.

path = match(affinity, mask, max_iter=30).objective_path
figure, ax = plt.subplots(figsize=(5, 2.8), layout="constrained")
ax.plot(np.arange(len(path)), path, "o-", ms=3)
ax.set(xlabel="iteration", ylabel="objective")
right = match(affinity, mask).probabilities.argmax(axis=1) == problem.target
print(f"labels found: {right.mean():.3f}; the objective rose: {np.all(np.diff(path) > -1e-9)}")
