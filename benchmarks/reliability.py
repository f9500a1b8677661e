"""How far the default's confidences can be believed, before and after calibration without labels.

    python benchmarks/reliability.py [--datasets lost,digits] [--folds 2] [--out CSV] [--figure PNG]
    python benchmarks/reliability.py --draw CSV --figure PNG

Needs the data sets (environment variable GMPLL_DATA) but for digits. Protocol: KFold(5,
shuffle=True, random_state=0) over all rows, the rows of the folds that are run pooled; truth is
used for scoring alone, but for the conformal mode "known", whose calibration rows have their true
labels. "as they are" is PartialLabelClassifier(calibrate=False), "by itself"
PartialLabelClassifier(), "temperature" and "corrected" CalibratedPartialClassifier around the
former. ECE: 15 bins of equal width on the confidence in the predicted label.
Candidates of UCI sets and digits: "random" adds r wrong labels to a share p of the rows,
"companion" prefers one fixed wrong label for each (r 1, p 0.7, epsilon 0.7), "doubt" adds the
labels that a weak model confuses (mean size 2).
"""

import argparse
import csv
import itertools
import os
import sys
from collections import defaultdict

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import KFold

from gmpll import (
    CalibratedPartialClassifier,
    ConformalPartialClassifier,
    PartialLabelClassifier,
    RejectingClassifier,
)
from gmpll.datasets import (
    cooccurring_candidates,
    instance_dependent_candidates,
    load_real_world,
    load_uci,
    random_candidates,
)
from gmpll.uncertainty.reliability import (
    accuracy_coverage_curve,
    expected_calibration_error,
    reliability_curve,
)

FIELDS = ("dataset", "part", "setting", "at", "measure", "value")
#: What the wrappers calibrate; they fit copies of it.
UNCALIBRATED = PartialLabelClassifier(calibrate=False, random_state=0)
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)
LEVELS = (0.8, 0.9)
ASKED_COVERAGE = 0.8
REAL = ("lost", "msrcv2", "fg-net", "birdsong")


def random(p, r):
    return lambda X, y: random_candidates(y, p, r, random_state=0)


def companion(X, y):
    return cooccurring_candidates(y, 0.7, 1, epsilon=0.7, random_state=0)


def doubt(X, y):
    return instance_dependent_candidates(X, y, mean_candidates=2, random_state=0)


CORRUPTED = {
    "digits random": ("digits", random(0.8, 3)),
    "digits doubt": ("digits", doubt),
    "glass random": ("glass", random(0.7, 3)),
    "ecoli random": ("ecoli", random(0.7, 2)),
    "vehicle random": ("vehicle", random(0.7, 2)),
    "vehicle companion": ("vehicle", companion),
    "vehicle doubt": ("vehicle", doubt),
    "segment random": ("segment", random(0.7, 3)),
}


def load(name):
    if name in REAL:
        data = load_real_world(name)
        return data.data, np.asarray(data.candidates, dtype=bool), data.target
    source, corrupt = CORRUPTED[name]
    if source == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = load_uci(source)
        X, y = data.data, data.target
    return X, corrupt(X, y), y


def stated_confidences(X, mask, truth, train, test):
    """Yield (setting, probabilities, truth, rows counted) before and after calibration."""
    ambiguous = mask[train].sum(axis=1) > 1
    everybody = np.ones(len(test), dtype=bool)
    default = PartialLabelClassifier(random_state=0).fit(X[train], mask[train])
    yield "unseen rows, by itself", default.predict_proba(X[test]), truth[test], everybody
    yield "training rows, by itself", default.label_confidences_, truth[train], ambiguous
    for method in ("temperature", "corrected"):
        model = CalibratedPartialClassifier(UNCALIBRATED, method, random_state=0)
        model.fit(X[train], mask[train])
        if method == "temperature":
            before, own = model.estimator_.predict_proba(X[test]), model.estimator_
            yield "unseen rows, as they are", before, truth[test], everybody
            yield "training rows, as they are", own.label_confidences_, truth[train], ambiguous
            yield "training rows, label_support_", own.label_support_, truth[train], ambiguous
        after = model.predict_proba(X[test])
        yield f"unseen rows, {method}", after, truth[test], everybody
        yield f"training rows, {method}", model.label_confidences_, truth[train], ambiguous


def conformal_sets(X, mask, truth, train, test):
    """Yield (mode, level, does the set contain the truth, size of the set)."""
    model = ConformalPartialClassifier(UNCALIBRATED, random_state=0)
    model.fit(X[train], mask[train])
    rows = train[model.calibration_rows_]
    known = np.eye(mask.shape[1], dtype=bool)[truth[rows]]
    for mode in ("guaranteed", "approximate", "optimistic", "known"):
        model.set_params(mode="guaranteed" if mode == "known" else mode)
        model.calibrate(X[rows], known if mode == "known" else mask[rows])
        yield from set_facts(mode, model, X[test], truth[test])
    crossed = ConformalPartialClassifier(
        UNCALIBRATED,
        mode="approximate",
        cv=3,
        random_state=0,
    )
    crossed.fit(X[train], mask[train])
    yield from set_facts("approximate, cross", crossed, X[test], truth[test])


def set_facts(mode, model, X, truth):
    for level in LEVELS:
        sets = model.set_params(confidence_level=level).predict_set(X)
        yield mode, level, sets[np.arange(len(X)), truth], sets.sum(axis=1)


def measure(name, folds):
    X, mask, truth = load(name)
    stated, sets, answers = defaultdict(list), defaultdict(list), []
    splits = KFold(5, shuffle=True, random_state=0).split(X)
    for train, test in itertools.islice(splits, folds):
        for setting, probabilities, labels, counted in stated_confidences(
            X, mask, truth, train, test
        ):
            stated[setting].append((probabilities[counted], labels[counted]))
        for mode, level, hit, size in conformal_sets(X, mask, truth, train, test):
            sets[mode, level].append((hit, size))
        rejecting = RejectingClassifier(
            UNCALIBRATED,
            coverage=ASKED_COVERAGE,
            reject_label=-1,
            random_state=0,
        ).fit(X[train], mask[train])
        predicted = rejecting.predict(X[test])
        answers.append((predicted != -1, predicted == truth[test]))
    yield from confidence_rows(stated)
    for (mode, level), parts in sets.items():
        hit, size = (np.concatenate(part) for part in zip(*parts, strict=True))
        yield "conformal", mode, level, "coverage", hit.mean()
        yield "conformal", mode, level, "mean size", size.mean()
    answered, right = (np.concatenate(part) for part in zip(*answers, strict=True))
    yield "rejection", "asked", ASKED_COVERAGE, "coverage", answered.mean()
    yield "rejection", "asked", ASKED_COVERAGE, "accuracy", right[answered].mean()


def confidence_rows(stated):
    for setting, parts in stated.items():
        probabilities, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
        confidence = probabilities.max(axis=1)
        right = probabilities.argmax(axis=1) == labels
        yield "confidence", setting, "", "rows", len(right)
        yield "confidence", setting, "", "accuracy", right.mean()
        yield "confidence", setting, "", "mean confidence", confidence.mean()
        yield "confidence", setting, "", "ECE", expected_calibration_error(confidence, right)
        codes = range(probabilities.shape[1])
        brier = brier_score_loss(labels, probabilities, labels=codes, scale_by_half=False)
        yield "confidence", setting, "", "Brier", brier
        for said, share, n_rows in zip(*reliability_curve(confidence, right), strict=True):
            yield "curve", setting, round(said, 4), "accuracy", share
            yield "curve", setting, round(said, 4), "rows", n_rows
        if setting in ("unseen rows, as they are", "unseen rows, temperature"):
            curve = accuracy_coverage_curve(confidence, right)
            for coverage in COVERAGES:
                index = int(np.ceil(coverage * len(right))) - 1
                yield "answered", setting, coverage, "accuracy", curve.accuracy[index]


def curve_points(rows, name, setting):
    """Return (mean confidence, accuracy, rows) of every bin."""
    bins = defaultdict(dict)
    for dataset, part, where, at, what, value in rows:
        if (dataset, part, where) == (name, "curve", setting):
            bins[float(at)][what] = float(value)
    return [(said, facts["accuracy"], facts["rows"]) for said, facts in sorted(bins.items())]


def draw(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row[0] for row in rows))
    columns = 4
    lines = -(-len(names) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3 * columns, 3 * lines), squeeze=False, layout="constrained"
    )
    for axis, name in itertools.zip_longest(axes.flat, names):
        if name is None:
            axis.axis("off")
            continue
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for setting, label in (("as they are", "before"), ("temperature", "after")):
            points = curve_points(rows, name, f"unseen rows, {setting}")
            said, share, n_rows = (np.array(part) for part in zip(*points, strict=True))
            (line,) = axis.plot(said, share, linewidth=0.8, label=label)
            axis.scatter(said, share, s=200 * n_rows / n_rows.sum(), color=line.get_color())
        axis.set(title=name, xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes[0, 0].legend(frameon=False)
    figure.supxlabel("confidence in the predicted label of unseen rows")
    figure.supylabel("share of right labels")
    figure.savefig(path, dpi=110)


def read(path):
    with open(path, newline="") as file:
        return [tuple(row[field] for field in FIELDS) for row in csv.DictReader(file)]


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join([*REAL, *CORRUPTED]))
    parser.add_argument("--folds", type=int, default=2, help="how many of the five folds to run")
    parser.add_argument("--out", help="write to this CSV file; other sets' rows in it stay")
    parser.add_argument("--figure", help="draw reliability curves into this file")
    parser.add_argument("--draw", help="measure nothing, draw from this CSV file")
    options = parser.parse_args()
    rows = read(options.draw) if options.draw else []
    names = [] if options.draw else options.datasets.split(",")
    if options.out and os.path.exists(options.out):
        rows = [row for row in read(options.out) if row[0] not in names]
    for name in names:
        if name not in (*REAL, *CORRUPTED):
            sys.exit(f"{name!r} is none of {', '.join([*REAL, *CORRUPTED])}.")
        for part, setting, at, what, value in measure(name, options.folds):
            rows.append((name, part, setting, at, what, f"{value:.4f}"))
            if part != "curve":
                print(f"{name:18s} {part:10s} {setting:30s} {at!s:4} {what:16s} {value:.3f}")
        sys.stdout.flush()
        if options.out:
            write(options.out, rows)
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
