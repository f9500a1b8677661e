"""
All methods on one problem
==========================

All methods have the same interface, so comparing them is a loop. One problem says little about
the methods; the measured results are on the page about results.
"""

import matplotlib.pyplot as plt
import numpy as np

from gmpll.datasets import make_partial_label_problem
from gmpll.methods import METHODS

problem = make_partial_label_problem(600, 8, 5, mean_candidates=2.5, separation=3.5, random_state=1)
train, test = slice(0, 400), slice(400, 600)
figures = {}
for name, method in METHODS.items():
    settings = {"random_state": 0} if "random_state" in method().get_params() else {}
    model = method(**settings).fit(problem.data[train], problem.candidates[train])
    figures[name] = (
        np.mean(model.labels_ == problem.target[train]),
        model.score(problem.data[test], problem.target[test]),
    )
    print(f"{name:8} training rows {figures[name][0]:.3f}   unseen rows {figures[name][1]:.3f}")

# %%
# Training rows are easier: only their candidates have to be told apart.

order = sorted(figures, key=figures.get)
place = np.arange(len(order))
figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
ax.barh(place + 0.2, [figures[name][0] for name in order], 0.4, label="training rows")
ax.barh(place - 0.2, [figures[name][1] for name in order], 0.4, label="unseen rows")
ax.set(yticks=place, yticklabels=order, xlabel="accuracy", xlim=(0, 1))
figure.legend(loc="outside upper center", ncols=2)
