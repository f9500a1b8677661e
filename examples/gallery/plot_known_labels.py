"""
A few labels that are known for sure
====================================

Every row has two candidates, and the wrong one depends on the right one: a label always comes
with the same companion. Neighbours then have the same two candidates, and nothing tells the two
apart. A label that is known for sure is a candidate set with one member, and it decides more
than its own row.
"""

import matplotlib.pyplot as plt
import numpy as np

from gmpll import GMPLL
from gmpll.datasets import cooccurring_candidates, make_partial_label_problem

problem = make_partial_label_problem(500, 6, 5, separation=5.0, random_state=0)
X, truth = problem.data, problem.target
ambiguous = cooccurring_candidates(truth, p=1.0, epsilon=1.0, random_state=0)
order = np.random.RandomState(0).permutation(500)
shares = [0.0, 0.02, 0.05, 0.1, 0.2]
found = []
for share in shares:
    known = order[: int(share * 500)]
    candidates = ambiguous.copy()
    candidates[known] = np.eye(5, dtype=bool)[truth[known]]
    model = GMPLL("local", balance=0.5, random_state=0).fit(X, candidates)
    others = candidates.sum(axis=1) > 1
    found.append(np.mean((model.labels_ == truth)[others]))
    print(f"{share:4.0%} known: {found[-1]:.3f} of the other rows found")

# %%
figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(np.array(shares) * 100, found, "o-")
ax.axhline(0.5, color="k", ls=":", label="chance")
ax.set(xlabel="rows with a known label, %", ylabel="other rows found", ylim=(0.4, 1.02))
ax.legend()
