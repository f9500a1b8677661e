"""
Labels with an order: ages
==========================

People who guess an age are wrong by a few years. The candidates of a row then lie close
together, and neighbouring ages should support each other.
:class:`gmpll.PartialLabelClassifier` recognises this; here it is compared with itself without it.
"""

import matplotlib.pyplot as plt
import numpy as np

from gmpll import PartialLabelClassifier

rng = np.random.RandomState(0)
n_rows = 500
age = rng.randint(20, 50, n_rows)
X = np.column_stack(
    [np.cos(age / 10), np.sin(age / 10), age / 15] + [rng.randn(n_rows) * 0.3 for _ in range(4)]
) + 0.15 * rng.randn(n_rows, 7)
guesses = [set((a + rng.randint(-3, 4, size=5)).tolist()) | {int(a)} for a in age]

# %%
# The labels are numbers and the sets gather along the number line, so labels that share many
# sets are taken for similar.

errors = {}
for name, similarity in {"ordered (default)": "auto", "all labels different": None}.items():
    model = PartialLabelClassifier(label_similarity=similarity, random_state=0).fit(
        X[:400], guesses[:400]
    )
    errors[name] = np.abs(model.predict(X[400:]) - age[400:])
    print(f"{name}: mean error {errors[name].mean():.2f} years")

# %%
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, error in errors.items():
    years = np.arange(0, 16)
    ax.step(years, [(error <= y).mean() for y in years], where="post", label=name)
ax.set(xlabel="error of at most so many years", ylabel="share of unseen rows", ylim=(0, 1.02))
ax.legend()
