"""What is given, what the matching makes of it, and what is true."""

import matplotlib.pyplot as plt
import numpy as np
from pies import bare, draw_pies

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.datasets import make_partial_label_problem

problem = make_partial_label_problem(90, 2, 3, mean_candidates=1.9, separation=4.5, random_state=5)
X, candidates, truth = problem.data, problem.candidates, problem.target
given = candidates / candidates.sum(axis=1, keepdims=True)
matching = GMPLL("local", n_graph_neighbors=12, balance=0.5)
model = PartialLabelClassifier(matching, random_state=0).fit(X, candidates)
right = np.mean(model.labels_ == truth)

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.3), layout="constrained")
titles = ("given: candidate sets", f"found: {right:.0%} right", "hidden: the truth")
for ax, shown, title in zip(
    axes, (given, model.label_confidences_, np.eye(3)[truth]), titles, strict=True
):
    draw_pies(ax, X, shown)
    bare(ax, title)
