"""Algorithm 1 of the paper, word for word: K is u x u, dense, and rewritten in every turn.

Slow on purpose. What the library computes is compared with this.
"""

import numpy as np


def standardize_features(X, reference=None):
    reference = X if reference is None else reference
    mean, std = reference.mean(axis=0), reference.std(axis=0)
    constant = std <= 1e-12 * np.maximum(np.abs(mean), 1)
    Z = np.where(constant, 0.0, (X - mean) / np.where(constant, 1.0, std))
    Z[np.linalg.norm(Z, axis=1) < 1e-10] = 0.0
    return Z


def similarity(Z):
    m = len(Z)
    A = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            norms = np.linalg.norm(Z[i]) * np.linalg.norm(Z[j])
            cosine = Z[i] @ Z[j] / norms if norms > 0 else 0.0
            A[i, j] = min(max((1 + cosine) / 2, 0.0), 1.0)
    A[np.isclose(A, 1.0, rtol=0, atol=1e-12)] = 1.0
    A[np.isclose(A, 0.0, rtol=0, atol=1e-12)] = 0.0
    np.fill_diagonal(A, 1.0)
    return A


def assignments(mask):
    return [(i, label) for i in range(mask.shape[0]) for label in np.flatnonzero(mask[i])]


def affinity(Z, mask, alpha=0.0, beta=0.6, A2=None):
    A = similarity(Z)
    A2 = np.eye(mask.shape[1]) if A2 is None else A2
    pairs = assignments(mask)
    u = len(pairs)
    K = np.zeros((u, u))
    for a, (i, la) in enumerate(pairs):
        for b, (j, lb) in enumerate(pairs):
            K[a, b] = A2[la, lb] * A[i, j] + (1 - A2[la, lb]) * (1 - A[i, j])
    n = (K > 0).sum(axis=1)
    for a in range(u):
        for b in range(u):
            K[a, b] *= 1 + alpha * np.log2(n[a] + n[b])
    if K.std() > 1e-10:
        K = (K - K.mean()) / K.std()
    K[max(beta, 1e-10) > K] = 0.0
    return K


def algorithm_1(Z, mask, alpha=0.0, beta=0.6, A2=None, balance=0.0, max_iter=100, tol=1e-4):
    K = affinity(Z, mask, alpha, beta, A2)
    pairs = assignments(mask)
    instance = np.array([i for i, _ in pairs])
    label = np.array([c for _, c in pairs])
    p = 1.0 / mask.sum(axis=1)[instance]
    for _ in range(max_iter):
        q = K @ p
        if balance:
            mass = np.array([p[label == c].sum() for c in range(mask.shape[1])])
            q = q / np.where(mass > 0, mass, 1.0)[label] ** balance
        new = p.copy()
        for i in range(mask.shape[0]):
            mine = instance == i
            if q[mine].sum() > 0:
                new[mine] = q[mine] / q[mine].sum()
        ratio = np.divide(new, p, out=np.zeros_like(p), where=p > 0)
        K = K * ratio[:, None]
        moved = np.linalg.norm(new - p)
        p = new
        if moved < tol:
            break
    P = np.zeros(mask.shape)
    P[instance, label] = p
    return P
