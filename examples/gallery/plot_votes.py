"""
Votes of workers of unequal care
================================

Three workers label every item, and some of them guess. The majority is one way to decide. Another
is to keep every label that somebody gave as a candidate, and to let similar items decide. The third
also learns how good every worker is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from gmpll import PartialLabelClassifier, candidates_from_votes

X, truth = load_wine(return_X_y=True)
rng = np.random.RandomState(0)
care = {"Ada": 0.9, "Ben": 0.6, "Cleo": 0.5, "Dan": 0.45}
items, labels, workers = [], [], []
for row, label in enumerate(truth):
    for worker in rng.choice(list(care), 3, replace=False):
        items.append(row)
        labels.append(label if rng.rand() < care[worker] else rng.randint(3))
        workers.append(worker)

voted = candidates_from_votes(items, labels, workers)
print("candidates per item:", round(voted.candidates.statistics().mean_size, 2))

# %%
# Given the votes themselves, ``fit`` learns how every worker votes.

model = PartialLabelClassifier(random_state=0).fit(X, voted)
joint = np.mean(model.labels_ == truth)
print(model.annotators_.to_frame(confusion=False).round(2))

# %%
# Where the majority ties, one of the tied labels is drawn.

votes = voted.weights + 1e-6 * rng.rand(*voted.weights.shape)
majority = np.mean(votes.argmax(axis=1) == truth)
share = np.linspace(0.0, 0.6, 5)
found = []
for least in share:
    sets = candidates_from_votes(items, labels, workers, min_share=float(least)).candidates
    found.append(np.mean(PartialLabelClassifier(random_state=0).fit(X, sets).labels_ == truth))

# %%
# For the sets, it matters which labels are candidates.
# Dropping labels of few votes makes the sets smaller, and loses the right label where the
# minority was right. With a share of 0.6 little more than the majority is left.

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(share, found, "o-", label="gmpll on the sets")
ax.axhline(joint, color="C1", ls="--", label="gmpll on the votes")
ax.axhline(majority, color="k", ls=":", label="majority")
ax.set(xlabel="smallest share of votes of a candidate (min_share)", ylabel="labels found")
ax.legend()
