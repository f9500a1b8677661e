"""Do Dask arrays and tensors get the labels that NumPy arrays get?

    SCIPY_ARRAY_API=1 python benchmarks/engines.py --data FOLDER | tee results/engines.txt

Fits both estimators on NumPy arrays, on tensors in the main memory and on Dask arrays of eight
partitions, and prints on which share of the rows the same label is found, and predicted for a tenth
of the rows that was kept apart: on Lost, MSRCv2 and a synthetic problem of 20,000 x 32.
"""

import argparse
import time

import dask
import numpy as np
import sklearn
import torch
from sklearn.base import clone

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.arrays import to_host
from gmpll.datasets import load_dataset, make_partial_label_problem
from gmpll.engines.dask import as_rows

TEST_SHARE = 0.1
N_PARTITIONS = 8
#: Labels of fewer rows than this are not equal.
MIN_EQUAL = 0.995
ESTIMATORS = (GMPLL("local", random_state=0), PartialLabelClassifier(random_state=0))
KINDS = {
    "NumPy": np.asarray,
    "torch": torch.as_tensor,
    "Dask": lambda X: as_rows(X, partition_rows=-(-len(X) // N_PARTITIONS)),
}


def problems(folder):
    for name in ("lost", "msrcv2"):
        yield name, load_dataset(name, data_home=folder)
    yield "20,000 x 32", make_partial_label_problem(20_000, 32, 10, 2.5, random_state=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the data sets")
    options = parser.parse_args()
    for estimator in ESTIMATORS:
        compare(estimator, options.data)


def compare(estimator, folder):
    print(f"{estimator}: equal labels, found and predicted, as on NumPy arrays.")
    print(
        f"{'data':12s} {'rows':>6s} {'arrays':7s} {'seconds':>8s} {'found':>8s} {'predicted':>9s}"
    )
    shares = []
    for name, problem in problems(folder):
        order = np.random.RandomState(0).permutation(len(problem.data))
        test, train = np.split(order, [int(TEST_SHARE * len(order))])
        reference = None
        for kind, made in KINDS.items():
            start = time.perf_counter()
            with sklearn.config_context(array_api_dispatch=True), dask.config.set(scheduler="sync"):
                model = clone(estimator).fit(made(problem.data[train]), problem.candidates[train])
                labels = [to_host(model.labels_), to_host(model.predict(made(problem.data[test])))]
            seconds = time.perf_counter() - start
            reference = reference or labels
            equal = [np.mean(one == other) for one, other in zip(labels, reference, strict=True)]
            shares += equal
            print(
                f"{name:12s} {len(train):6d} {kind:7s} {seconds:8.2f} {equal[0]:8.4f} "
                f"{equal[1]:9.4f}",
                flush=True,
            )
    holds = "on all" if min(shares) >= MIN_EQUAL else "NOT on all"
    print(f"At least {MIN_EQUAL:.1%} of the labels are equal {holds}.")


if __name__ == "__main__":
    main()
