"""A problem of six rows whose solution by four methods was computed by an independent program."""

import numpy as np

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


def z_scored(seed=0, m=40, d=5, q=4):
    """A random problem and its z-scored rows."""
    features, mask, _ = random_problem(seed, m=m, d=d, q=q)
    return features, mask, (features - features.mean(axis=0)) / features.std(axis=0)
