"""Both estimators over Dask beside the fit in memory, and on a file larger than a worker.

    python benchmarks/dask_matching.py [--quick] [--data FOLDER] | tee results/dask.txt

The first part fits the same rows in memory and over two workers of one thread each, in the same
process, and compares time, confidences, labels and accuracies; with --data it does so on Lost and
MSRCv2 too. The second part matches a file on disk that is larger than the memory limit
of a worker, which the workers' nannies enforce by killing what exceeds it.

    python benchmarks/dask_matching.py --scale 25000 50000 100000 [--largest 1000000]

matches files of so many rows and 32 features with the approximate search, beside the fit in memory,
and counts the tasks and the bytes between workers beside what the cost model in docs/large.md says.
The last line is the largest size with partitions and groups of the default size. Its output is kept
in results/dask_scale.txt.
"""

import argparse
import logging
import math
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import numpy as np
from dask.distributed import Client, LocalCluster, SchedulerPlugin
from sklearn.base import clone

from gmpll import GMPLL, PartialLabelClassifier
from gmpll.datasets import load_dataset, make_partial_label_problem
from gmpll.engines.dask import as_rows

#: A tenth of the rows is kept apart.
TEST_SHARE = 0.1
MEGABYTE = 10**6
MATCHING = GMPLL("local", balance=0.5, max_iter=20, random_state=0)
#: Of --scale: features, labels, bytes of a worker; rows of a partition and of a group where the
#: model is checked.
FEATURES, LABELS, WORKER_BYTES = 32, 10, 6 * 2**30
PARTITION_ROWS, GROUP_ROWS = 6250, 16384
#: Tasks of an iteration for each partition besides products, and for all of them; measured.
ITERATION_TASKS = 15.5, 3
SHORT = {"GMPLL": "matching", "PartialLabelClassifier": "classifier"}


class TaskCount(SchedulerPlugin):
    """How many tasks were done."""

    n_tasks = 0

    def transition(self, key, start, finish, *args, **kwargs):
        self.n_tasks += (start, finish) == ("processing", "memory")


@contextmanager
def two_workers(memory_limit=0):
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seconds_of_fit(model, X, candidates):
    start = time.perf_counter()
    model.fit(X, candidates)
    return time.perf_counter() - start


def beside_memory(name, X, candidates, truth, n_partitions=8):
    order = np.random.RandomState(0).permutation(len(X))
    test, train = np.split(order, [int(TEST_SHARE * len(X))])
    rows = -(-len(train) // n_partitions)
    partitions = as_rows(X[train], partition_rows=rows)
    unseen = as_rows(X[test], partition_rows=rows)
    for estimator in (MATCHING, PartialLabelClassifier(random_state=0)):
        in_memory, over_dask = clone(estimator), clone(estimator)
        alone = seconds_of_fit(in_memory, X[train], candidates[train])
        dask_seconds = seconds_of_fit(over_dask, partitions, candidates[train])
        found = over_dask.labels_.compute()
        predicted = over_dask.predict(unseen).compute()
        confidences = over_dask.label_confidences_.compute()
        difference = np.abs(confidences - in_memory.label_confidences_).max()
        same = np.mean(np.r_[found == in_memory.labels_, predicted == in_memory.predict(X[test])])
        print(
            f"{name:10s} {SHORT[type(estimator).__name__]:10s} {len(train):5d} {alone:9.2f} "
            f"{dask_seconds:8.2f} {dask_seconds / alone:6.1f} {difference:11.1e} {same:6.4f} "
            f"{np.mean(in_memory.labels_ == truth[train]):7.3f} "
            f"{np.mean(found == truth[train]):6.3f} "
            f"{np.mean(in_memory.predict(X[test]) == truth[test]):9.3f} "
            f"{np.mean(predicted == truth[test]):6.3f}",
            flush=True,
        )


def write_rows(file, problem, copies):
    """Write every feature many times: a large file of known neighbours."""
    n_rows, n_features = problem.data.shape
    X = np.lib.format.open_memmap(
        file, mode="w+", dtype=np.float64, shape=(n_rows, n_features * copies)
    )
    for start in range(0, n_rows, 100):
        X[start : start + 100] = np.tile(problem.data[start : start + 100], copies)
    X.flush()
    return X.nbytes


def beyond_memory(n_rows, copies, partition_rows, limit):
    problem = make_partial_label_problem(n_rows, 40, 10, 2.5, random_state=0)
    with tempfile.TemporaryDirectory() as folder, two_workers(limit) as client:
        n_bytes = write_rows(Path(folder) / "X.npy", problem, copies)
        assert n_bytes > limit
        before = set(client.run(os.getpid).values())
        rows = as_rows(Path(folder) / "X.npy", partition_rows=partition_rows)
        model = clone(MATCHING)
        seconds = seconds_of_fit(model, rows, problem.candidates)
        confidences = model.label_confidences_.compute()
        survived = set(client.run(os.getpid).values()) == before
    # Copies of features change no neighbour, so the small problem has the same answer.
    reference = clone(MATCHING).fit(problem.data, problem.candidates)
    difference = np.abs(confidences - reference.label_confidences_).max()
    print(
        f"{n_rows} rows x {40 * copies} features, {n_bytes / MEGABYTE:.0f} MB on disk; limit of a "
        f"worker {limit / MEGABYTE:.0f} MB;\npartitions of {partition_rows} rows, "
        f"{partition_rows * 40 * copies * 8 / MEGABYTE:.0f} MB; {seconds:.0f} s; "
        f"{'no worker' if survived else 'A WORKER'} was killed; largest difference of a "
        f"confidence from the fit in memory {difference:.1e}"
    )


def modelled(n_rows, partition_rows, group_rows, n_workers=2, n_rounds=3):
    """Return the tasks and the bytes between workers that the cost model expects."""
    k, iterations = MATCHING.n_graph_neighbors, MATCHING.max_iter
    n_partitions, n_groups = math.ceil(n_rows / partition_rows), math.ceil(n_rows / group_rows)
    n_rounds = n_rounds if n_groups > 1 else 1
    reads = n_groups * (math.ceil(n_partitions / 16) + 1)
    search = n_rounds * (reads + n_partitions * n_groups + 3 * n_partitions)
    graph = n_partitions**2 + 3 * n_partitions
    parts = min(n_partitions, math.ceil(n_rows / 2**17))
    for_each, for_all = ITERATION_TASKS
    tasks = search + graph + iterations * (n_partitions * (for_each + parts) + for_all)
    elsewhere = (n_workers - 1) / n_workers
    kept = 12 * k * n_rounds + 24 * k + 4 * FEATURES * n_rounds
    of_row = 8 * LABELS * iterations * (n_workers - 1) + elsewhere * kept
    return tasks, n_rows * of_row


def received_bytes(client):
    found = client.run(
        lambda dask_worker: sum(e["total"] for e in dask_worker.transfer_incoming_log)
    )
    return sum(found.values())


def at_scale(client, n_rows, partition_rows, group_rows):
    made = make_partial_label_problem(n_rows, FEATURES, LABELS, 2.5, random_state=0)
    in_memory, over_dask = (
        clone(MATCHING).set_params(neighbor_search="approximate") for _ in range(2)
    )
    in_memory.fit(made.data[:2000], made.candidates[:2000])  # loads compiled code
    alone = seconds_of_fit(in_memory, made.data, made.candidates)
    count = TaskCount()
    client.cluster.scheduler.add_plugin(count, name=str(n_rows * group_rows))
    before = received_bytes(client)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", made.data)
        rows = as_rows(Path(folder) / "X.npy", partition_rows=partition_rows)
        with dask.config.set({"gmpll.search-rows": group_rows}):
            seconds = seconds_of_fit(over_dask, rows, made.candidates)
        found = over_dask.labels_.compute()
    moved = received_bytes(client) - before
    tasks, n_bytes = modelled(n_rows, partition_rows, group_rows)
    print(
        f"{n_rows:7d} {-(-n_rows // partition_rows):10d} {-(-n_rows // group_rows):6d} "
        f"{alone:9.1f} {seconds:6.1f} {seconds / alone:5.1f} {in_memory.neighbor_recall_:9.3f} "
        f"{over_dask.neighbor_recall_:6.3f} {np.mean(in_memory.labels_ == made.target):9.4f} "
        f"{np.mean(found == made.target):6.4f} {count.n_tasks:6d} {tasks:6.0f} "
        f"{moved / MEGABYTE:8.0f} {n_bytes / MEGABYTE:5.0f}",
        flush=True,
    )


def scale(sizes, largest):
    dask.config.set({"distributed.admin.low-level-log-length": 10**6})
    print(f"{MATCHING}, approximate search, {FEATURES} features, {LABELS} labels.")
    print(
        "Two workers of one thread and 6 GiB each. Seconds of a fit and their ratio, recall of the"
    )
    print(
        "neighbours, accuracy of the labels found, tasks and megabytes between workers, each beside"
    )
    print("the cost model.")
    print(
        f"{'rows':>7s} partitions groups in memory   Dask ratio    recall   Dask  accuracy   Dask "
        f"{'tasks':>6s}  model {'MB':>8s} model"
    )
    with two_workers(WORKER_BYTES) as client:
        for n_rows in sizes:
            at_scale(client, n_rows, PARTITION_ROWS, GROUP_ROWS)
        at_scale(client, largest, 2**15, 2**17)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--scale", nargs="+", type=int, metavar="ROWS", help="only these sizes")
    parser.add_argument("--largest", type=int, metavar="ROWS", help="of --scale, by itself at last")
    options = parser.parse_args()
    if options.scale or options.largest:
        scale(options.scale or [], options.largest or max(options.scale))
        return
    print(f"matching: {MATCHING}; classifier: PartialLabelClassifier().")
    print("Two workers of one thread each; 8 partitions. Seconds of a fit, their ratio, largest")
    print("difference of a confidence, share of equal labels, accuracy on the training rows and on")
    print("a tenth of the rows kept apart, in memory and over Dask.")
    print(
        f"{'data':10s} {'estimator':10s} {'rows':>5s} {'in memory':>9s} {'Dask':>8s} {'ratio':>6s} "
        f"{'difference':>11s} {'equal':>6s} {'found':>7s} {'Dask':>6s} {'predicted':>9s} "
        f"{'Dask':>6s}"
    )
    with two_workers():
        for n_rows in (2000,) if options.quick else (2000, 6000):
            made = make_partial_label_problem(n_rows, 40, 10, 2.5, random_state=0)
            beside_memory("synthetic", made.data, made.candidates, made.target)
        for name in ("lost", "msrcv2") if options.data else ():
            stored = load_dataset(name, data_home=options.data)
            beside_memory(name, stored.data, stored.candidates, stored.target)
    print("\nA file larger than the memory of a worker")
    if options.quick:
        beyond_memory(1100, 1250, 70, 420 * MEGABYTE)
    else:
        beyond_memory(2200, 1250, 110, 500 * MEGABYTE)


if __name__ == "__main__":
    main()
