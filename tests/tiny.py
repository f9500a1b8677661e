"""A problem of six rows whose solution by four methods was computed by an independent program."""

import numpy as np
import scipy.optimize

from problems import random_problem

X = np.array([[1, 0], [2, 1], [0, 1], [-1, 1], [-2, -1], [0, -2]], dtype=float)
MASK = np.zeros((6, 3), dtype=bool)
for row, labels in enumerate([(0, 1), (0, 2), (1, 2), (1,), (0, 2), (2,)]):
    MASK[row, list(labels)] = True
UNSEEN = np.array([[1.0, 1.0], [-1.0, 0.0]])


def fit(method, **parameters):
    """Fit a method to the six rows as they are; every iteration is made."""
    return method(standardize=False, tol=0.0, random_state=0, **parameters).fit(X, MASK)


def literal_regression(rows, targets, ridge):
    """Kernel, width, coefficients, intercept and fitted values of the regression, by loops."""
    m = len(rows)
    distance = np.array([[np.linalg.norm(a - b) for b in rows] for a in rows])
    width = np.mean([distance[i, j] for i in range(m) for j in range(i)])
    kernel = np.exp(-(distance**2) / (2 * width**2))
    # The stationary point of |T - K A - 1 b|^2 + ridge tr(A' K A), as one linear system.
    system = np.block([[kernel + ridge * np.eye(m), np.ones((m, 1))], [np.ones(m), np.zeros(1)]])
    solved = np.linalg.solve(system, np.vstack([targets, np.zeros(targets.shape[1])]))
    return kernel, width, solved[:-1], solved[-1], kernel @ solved[:-1] + solved[-1]


def literal_projection(values, mask):
    """Nearest point of the simplex over the candidates, by trying every support."""
    result = np.zeros(values.shape)
    for row, (value, inside) in enumerate(zip(values, mask, strict=True)):
        places = np.flatnonzero(inside)
        places = places[np.argsort(-value[places])]
        for n in range(1, len(places) + 1):
            threshold = (value[places[:n]].sum() - 1) / n
            if n == len(places) or value[places[n]] <= threshold:
                break
        result[row, places[:n]] = value[places[:n]] - threshold
    return result


def literal_graph(rows, near, confidences, feature_weight=1.0, label_weight=1.0):
    """Weights on the simplex over the neighbours, row by row, by a generic solver."""
    graph = np.zeros((len(rows), len(rows)))
    for i, others in enumerate(near):
        G = (rows[i] - rows[others]) @ (rows[i] - rows[others]).T
        H = (confidences[i] - confidences[others]) @ (confidences[i] - confidences[others]).T
        M = feature_weight * G + label_weight * H
        k = len(others)
        found = scipy.optimize.minimize(
            lambda w, M=M: w @ M @ w,
            np.full(k, 1 / k),
            jac=lambda w, M=M: 2 * M @ w,
            method="SLSQP",
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"maxiter": 500, "ftol": 1e-15},
        )
        graph[i, others] = found.x
    return graph


def literal_confidences(graph, mask, weight, target, start):
    """Plain projected gradients with one safe step for all rows, many of them."""
    deviation = np.eye(len(graph)) - graph
    step = 1 / (np.linalg.norm(deviation, 2) ** 2 + weight)
    P = start
    for _ in range(1000):
        P = literal_projection(
            P - step * (deviation.T @ deviation @ P + weight * (P - target)), mask
        )
    return P


def z_scored(seed=0, m=40, d=5, q=4):
    """A random problem and its z-scored rows."""
    features, mask, _ = random_problem(seed, m=m, d=d, q=q)
    return features, mask, (features - features.mean(axis=0)) / features.std(axis=0)
