"""The problems on which choices without true labels are studied."""

import numpy as np
from sklearn import datasets as bundled

from gmpll.datasets import (
    cooccurring_candidates,
    instance_dependent_candidates,
    load_real_world,
    load_uci,
    random_candidates,
)


def problems():
    """Name -> (X, mask, truth, ordered): real sets as they are, the others corrupted."""
    for name in ("lost", "msrcv2", "birdsong", "fg-net"):
        data = load_real_world(name)
        mask = data.candidates
        mask = mask.toarray() if hasattr(mask, "toarray") else mask
        yield name, (data.data, np.asarray(mask, dtype=bool), data.target, name == "fg-net")

    def clean():
        for name in ("glass", "ecoli", "dermatology", "vehicle", "segment", "abalone", "letter",
                     "satimage", "pendigits"):  # fmt: skip
            data = load_uci(name)
            yield name, data.data, data.target
        for name in ("digits", "wine", "breast_cancer", "iris"):
            yield name, *getattr(bundled, f"load_{name}")(return_X_y=True)

    for name, X, target in clean():
        truth = np.unique(target, return_inverse=True)[1]
        X = np.asarray(X, dtype=np.float64)[:5000]
        truth = np.unique(truth[:5000], return_inverse=True)[1]
        labels = int(truth.max()) + 1
        for p, r in ((0.3, 1), (0.7, 3)):
            if r < labels:
                made = random_candidates(truth, p=p, r=r, random_state=0)
                yield f"{name} p={p} r={r}", (X, as_mask(made), truth, False)
        if labels == 3:
            made = random_candidates(truth, p=0.7, r=1, random_state=0)
            yield f"{name} p=0.7 r=1", (X, as_mask(made), truth, False)
        if name in ("segment", "digits", "letter"):
            yield f"{name} cooccurring", (
                X, as_mask(cooccurring_candidates(truth, epsilon=0.7, p=0.9, random_state=0)),
                truth, False)  # fmt: skip
            yield f"{name} instance", (
                X, as_mask(instance_dependent_candidates(X, truth, random_state=0)),
                truth, False)  # fmt: skip


def as_mask(candidates):
    candidates = getattr(candidates, "mask", candidates)
    candidates = candidates.toarray() if hasattr(candidates, "toarray") else candidates
    return np.asarray(candidates, dtype=bool)
