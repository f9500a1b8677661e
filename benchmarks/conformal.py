"""Conformal sets beside those of MAPIE, which is fed the worst or the best candidate of each row.

    pip install mapie
    python benchmarks/conformal.py [--datasets lost,msrcv2,birdsong] [--level 0.9]

Needs the data sets (environment variable GMPLL_DATA). One PL-KNN is fitted on 60 percent of the
rows, calibrated on 20 and asked for sets on the others. MAPIE's score "lac" is the one of
ConformalPartialClassifier. "aps" is another; its sets never hold a label of probability zero, which
candidates of calibration rows may well have, so that nothing is promised for it here.

What MAPIE cannot be fed: the approximate mode, in which several candidates of a row count in part,
and cross-conformal sets, where the one label per row would be used for fitting as well. Too few
calibration rows, for which all labels are the valid set, are an error there.
"""

import argparse
from time import perf_counter

import numpy as np
from mapie.classification import SplitConformalClassifier

from gmpll import PLKNN, ConformalPartialClassifier
from gmpll.datasets import load_real_world


def extreme_candidate(model, X, mask, mode):
    """The candidate with the least (guaranteed) or the largest (optimistic) probability."""
    probabilities = model.predict_proba(X)
    if mode == "guaranteed":
        return np.where(mask, probabilities, np.inf).argmin(axis=1)
    return np.where(mask, probabilities, -np.inf).argmax(axis=1)


def compare(name, level):
    data = load_real_world(name)
    order = np.random.RandomState(0).permutation(len(data.data))
    train, calibration, test = np.split(order, [int(0.6 * len(order)), int(0.8 * len(order))])
    X, mask, truth = data.data[calibration], data.candidates[calibration], data.target[test]
    for mode in ("guaranteed", "optimistic"):
        own = ConformalPartialClassifier(PLKNN(random_state=0), level, mode=mode, random_state=0)
        own.fit(data.data[train], data.candidates[train])
        started = perf_counter()
        sets = {"own": own.calibrate(X, mask).predict_set(data.data[test])}
        seconds = {"own": perf_counter() - started}
        columns = extreme_candidate(own.estimator_, X, mask, mode)
        for score in ("lac", "aps"):
            started = perf_counter()
            mapie = SplitConformalClassifier(
                own.estimator_, level, conformity_score=score, random_state=0
            ).conformalize(X, own.classes_[columns])
            sets[score] = mapie.predict_set(data.data[test])[1][:, :, 0]
            seconds[score] = perf_counter() - started
        for which, found in sets.items():
            covered = found[np.arange(len(truth)), truth].mean()
            same = (found == sets["own"]).all(axis=1).mean()
            print(
                f"{name:9s} {mode:11s} {which:4s} coverage {covered:.3f} labels "
                f"{found.sum(axis=1).mean():6.2f} same sets {same:.3f} {seconds[which]:6.3f} s"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="lost,msrcv2,birdsong")
    parser.add_argument("--level", type=float, default=0.9)
    options = parser.parse_args()
    for name in options.datasets.split(","):
        compare(name, options.level)


if __name__ == "__main__":
    main()
