"""
Choosing a setting without true labels
======================================

The *candidate lift* of held-out rows stands in for the accuracy that nobody can measure. Here
the truth is known, so the two can be compared.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from gmpll import PLSVM
from gmpll.datasets import make_partial_label_problem
from gmpll.model_selection import candidate_lift_scorer, covering_rate_scorer

problem = make_partial_label_problem(
    500, 20, 6, mean_candidates=3.0, separation=4.0, random_state=0
)
train, test = slice(0, 350), slice(350, 500)
settings = np.logspace(-4, 2, 7)
search = GridSearchCV(
    PLSVM(random_state=0),
    {"regularization": settings},
    scoring={"lift": candidate_lift_scorer, "covering": covering_rate_scorer},
    refit="lift",
    cv=3,
).fit(problem.data[train], problem.candidates[train])
print(f"chosen: {search.best_params_['regularization']:g}")

# %%
# The accuracy on unseen rows is drawn for comparison; the search has not seen it.

accuracy = [
    PLSVM(regularization=value, random_state=0)
    .fit(problem.data[train], problem.candidates[train])
    .score(problem.data[test], problem.target[test])
    for value in settings
]
figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.semilogx(settings, search.cv_results_["mean_test_covering"], "s--", label="covering rate")
ax.semilogx(settings, search.cv_results_["mean_test_lift"], "o-", label="candidate lift")
ax.semilogx(settings, accuracy, "k^:", label="accuracy (hidden)")
ax.axvline(search.best_params_["regularization"], color="0.7", zorder=0)
ax.set(xlabel="regularization of PL-SVM", ylabel="held-out score")
ax.legend()
