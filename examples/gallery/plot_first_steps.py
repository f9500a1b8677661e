"""
First steps: handwritten digits with wrong labels beside the right one
======================================================================

Four of five digits get three wrong labels beside the right one.
:class:`gmpll.PartialLabelClassifier` finds the right one, and says how sure it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gmpll import PartialLabelClassifier
from gmpll.datasets import random_candidates

X, truth = load_digits(return_X_y=True)
X, truth = X[:900], truth[:900]
candidates = random_candidates(truth, p=0.8, r=3, random_state=0)
print("candidates of the first digit:", np.flatnonzero(candidates[0]), "truth:", truth[0])

# %%
# The first 600 are for training. No true label reaches ``fit``.

model = PartialLabelClassifier(random_state=0).fit(X[:600], candidates[:600])
right = model.labels_ == truth[:600]
print(f"labels found among the candidates: {right.mean():.3f}")
print(f"labels of unseen digits: {model.score(X[600:], truth[600:]):.3f}")

# %%
# The eight labels of least confidence. A cross marks those that are wrong.

confidence = model.label_confidences_.max(axis=1)
doubtful = np.argsort(confidence)[:8]
figure, axes = plt.subplots(1, 8, figsize=(9, 2), layout="constrained")
for ax, row in zip(axes, doubtful, strict=True):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()
    mark = "" if right[row] else "  ✗"
    ax.set_title(f"{model.labels_[row]} ({confidence[row]:.0%}){mark}", fontsize=9)
