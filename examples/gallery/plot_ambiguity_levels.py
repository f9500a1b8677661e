"""
How much ambiguity can be borne
===============================

Every row gets r wrong candidates of nine possible ones. The more there are, the less the sets
say; with nine they say nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gmpll import GMPLL, IPAL, PLKNN
from gmpll.datasets import random_candidates

X, truth = load_digits(return_X_y=True)
X, truth = X[:500], truth[:500]
methods = {
    "GMPLL, local graph": GMPLL("local", balance=0.5, random_state=0),
    "IPAL": IPAL(random_state=0),
    "PLKNN": PLKNN(random_state=0),
}
extra = np.arange(1, 10)
found = {name: [] for name in methods}
for r in extra:
    candidates = random_candidates(truth, p=1.0, r=int(r), random_state=0)
    for name, method in methods.items():
        found[name].append(np.mean(method.fit(X, candidates).labels_ == truth))

# %%
# Choosing a candidate by chance would be right in one of r + 1 cases.

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, accuracies in found.items():
    ax.plot(extra, accuracies, "o-", label=name)
ax.plot(extra, 1 / (extra + 1), "k:", label="chance")
ax.set(xlabel="wrong candidates of every row", ylabel="labels found", ylim=(0, 1.02))
ax.legend()
ax.grid(alpha=0.3)
