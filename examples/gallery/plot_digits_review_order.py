"""
Which rows to ask a person about
================================

``gmpll review`` asks about rows that are in doubt and whose neighbours are in doubt too. A
simulated person who knows the truth answers some rows; the rows are matched again with the
answers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gmpll import GMPLL
from gmpll.apps.review.ordering import Similarity, doubt, propose_order
from gmpll.datasets import random_candidates

X, truth = load_digits(return_X_y=True)
X, truth = X[:500], truth[:500]
candidates = random_candidates(truth, p=1.0, r=7, random_state=1)


def matched(sets):
    """Return the model of some candidate sets."""
    return GMPLL("local", balance=0.5, random_state=0).fit(X, sets)


before = matched(candidates)
ambiguous = candidates.sum(axis=1) > 1
doubts = doubt(before.label_support_, before.labels_)
orders = {
    "proposed order": propose_order(doubts, ambiguous, Similarity(X)),
    "random rows": np.random.RandomState(0).permutation(len(X)),
}

# %%
# Accuracy of all labels after so many answers, the answered rows included.

numbers = [0, 10, 20, 40, 60, 80]
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, order in orders.items():
    accuracies = []
    for n in numbers:
        answered = candidates.copy()
        answered[order[:n]] = np.eye(10, dtype=bool)[truth[order[:n]]]
        accuracies.append(np.mean(matched(answered).labels_ == truth))
    ax.plot(numbers, accuracies, "o-", label=name)
    print(name, np.round(accuracies, 3))
ax.set(xlabel="rows that a person answered", ylabel="labels found")
ax.legend()
ax.grid(alpha=0.3)
