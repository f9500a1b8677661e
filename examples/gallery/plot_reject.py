"""
The reject option
=================

A classifier that may leave its least certain rows to a person makes fewer errors on the rest. Rows
are sorted by the confidence of their label; the curve shows the accuracy of those that are kept.
"""

import matplotlib.pyplot as plt
import numpy as np

from gmpll import PartialLabelClassifier
from gmpll.datasets import make_partial_label_problem

problem = make_partial_label_problem(700, 8, 5, mean_candidates=2.5, separation=3.0, random_state=3)
train, test = slice(0, 500), slice(500, 700)
model = PartialLabelClassifier(random_state=0).fit(problem.data[train], problem.candidates[train])


def kept_accuracy(confidence, right):
    """Return the accuracy of the surest 1, 2, 3, ... rows."""
    order = np.argsort(-confidence)
    return np.cumsum(right[order]) / np.arange(1, len(right) + 1)


# %%
probabilities = model.predict_proba(problem.data[test])
curves = {
    "training rows": kept_accuracy(
        model.label_confidences_.max(axis=1), model.labels_ == problem.target[train]
    ),
    "unseen rows": kept_accuracy(
        probabilities.max(axis=1), model.predict(problem.data[test]) == problem.target[test]
    ),
}
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, curve in curves.items():
    share = np.arange(1, len(curve) + 1) / len(curve)
    ax.plot(share[9:] * 100, curve[9:], label=name)
    half = curve[len(curve) // 2 - 1]
    print(f"{name}: all {curve[-1]:.3f}, the surer half {half:.3f}")
ax.set(xlabel="rows that are kept, %", ylabel="accuracy of the rows kept")
ax.legend()
ax.grid(alpha=0.3)
