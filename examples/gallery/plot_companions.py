"""
A companion that never leaves
=============================

If a wrong label always comes with the same right one, the sets cannot tell the two apart. Here
every label has a companion, which is the wrong candidate with probability ε; the rest is drawn
from the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gmpll import GMPLL, PLKNN
from gmpll.candidates import CandidateStatistics
from gmpll.datasets import cooccurring_candidates

X, truth = load_digits(return_X_y=True)
X, truth = X[:500], truth[:500]
methods = {
    "GMPLL, local graph": GMPLL("local", balance=0.5, random_state=0),
    "PLKNN": PLKNN(random_state=0),
}
epsilons = np.linspace(0.1, 1.0, 7)
found = {name: [] for name in methods}
degrees = []
for epsilon in epsilons:
    candidates = cooccurring_candidates(truth, p=1.0, epsilon=float(epsilon), random_state=0)
    degrees.append(CandidateStatistics.of(candidates).ambiguity_degree)
    for name, method in methods.items():
        found[name].append(np.mean(method.fit(X, candidates).labels_ == truth))
print("ambiguity degrees:", np.round(degrees, 2))

# %%
# Every row has two candidates, so chance is one half.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, accuracies in found.items():
    ax.plot(epsilons, accuracies, "o-", label=name)
ax.axhline(0.5, color="k", ls=":", label="chance")
ax.set(xlabel="ε, probability of the companion", ylabel="labels found", ylim=(0.4, 1.02))
ax.legend()
