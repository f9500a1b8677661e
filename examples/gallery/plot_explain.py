"""
Why a row got its label
=======================

:func:`gmpll.explain` replays the matching for a row: who its neighbours are, what they vote
for, how the iterations went, and what would have tipped the decision.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from gmpll import GMPLL, PartialLabelClassifier, explain
from gmpll.datasets import random_candidates

iris = load_iris()
names = iris.target_names
candidates = random_candidates(iris.target, p=0.8, r=1, random_state=0)
sets = [set(names[row].tolist()) for row in candidates]
matching = GMPLL("local", n_graph_neighbors=12, balance=0.5)
model = PartialLabelClassifier(matching, random_state=0).fit(iris.data, sets)

# %%
# The ambiguous row with the smallest support for its label:

ambiguous = candidates.sum(axis=1) > 1
support = model.label_support_.max(axis=1)
row = int(np.argmin(np.where(ambiguous, support, np.inf)))
why = explain(model, row)
print(why)
print("the truth:", names[iris.target[row]])

# %%
# Its neighbours in two of the four features; the larger the disc, the heavier the vote.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for k, name in enumerate(names):
    rows = model.labels_ == name
    ax.scatter(*iris.data[rows][:, 2:].T, s=8, color=f"C{k}", alpha=0.5, label=name)
for near in why.neighbors:
    color = f"C{list(names).index(near.label)}"
    ax.scatter(*iris.data[near.row, 2:], s=300 * near.weight, color=color, alpha=0.4)
ax.scatter(*iris.data[row, 2:], marker="*", s=220, color="k", label="the row")
ax.set(xlabel=iris.feature_names[2], ylabel=iris.feature_names[3])
ax.legend()
