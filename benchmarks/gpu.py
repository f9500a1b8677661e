"""The matching on a GPU, beside the same in plain PyTorch and the results of the CPU.

    PYTHONPATH=src python benchmarks/gpu.py [--out results/gpu] [--small]

Needs PyTorch with CUDA and Triton. Problems are made on the device: a Gaussian cluster per label,
seeded. "Plain" is what one writes first: the m x m matrix of thresholded affinities in single
precision with TF32 products, kept where it fits and made anew in tiles where it does not, and
neighbours by `topk` over all scores; it runs in the same process. Kernels are compiled in the first
calls, on few rows, with an empty cache: what these calls take is reported beside them, and nothing
else includes it. Every timing waits for the device at both ends. The CPU's results are those of the
NumPy classes in double precision.
"""

import argparse
import csv
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from gmpll.arrays import to_host
from gmpll.engines import torch as engine
from gmpll.graph.local import LocalGraph
from gmpll.graph.views import CosineView
from gmpll.matching import LocalAffinity, full_affinity, match, uniform_start

DEVICE = "cuda"
ITERATIONS = 50
BETA = 0.6
NEIGHBORS = 40
BALANCE = 0.5
#: rows, features, labels, mean candidates, seconds aimed at.
FULL = {
    "Soccer Player": (17472, 279, 171, 2.09, 0.1),
    "Yahoo! News": (22991, 163, 219, 1.91, 0.15),
    "100,000 x 128": (100_000, 128, 20, 3.0, 5.0),
}
MILLION = (1_000_000, 128, 20, 3.0)
SWEEP_TARGET, LOCAL_TARGET = 4.0, 20.0
#: Rows on which the CPU is asked as well.
CPU_ROWS, CPU_LOCAL_ROWS = 4000, 40_000
#: How far apart the clusters are, in deviations per feature.
SEPARATION = 0.35
PLAIN_TILE_BYTES = 2**31


def make_problem(m, d, q, candidates, seed=0):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    centers = SEPARATION * torch.randn(q, d, generator=generator, device=DEVICE)
    truth = torch.randint(q, (m,), generator=generator, device=DEVICE)
    X = centers[truth] + torch.randn(m, d, generator=generator, device=DEVICE)
    mask = torch.rand(m, q, generator=generator, device=DEVICE) < (candidates - 1) / (q - 1)
    mask[torch.arange(m, device=DEVICE), truth] = True
    return X, mask, truth


def timed(function, repeats=3):
    """Return the result and the median of the seconds."""
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds)


def labels_of(P, mask):
    return P.masked_fill(~mask, -1.0).argmax(dim=1)


def compared(P, expected, mask):
    """Largest difference of probabilities and share of equal labels."""
    expected = torch.as_tensor(expected, device=P.device)
    return {
        "max_abs_difference": float((P - expected).abs().max()),
        "equal_labels": float((labels_of(P, mask) == labels_of(expected, mask)).double().mean()),
    }


def full_matching(rows, mask, **options):
    affinity = full_affinity(rows, mask, beta=BETA, **options)
    start = uniform_start(mask, rows.dtype)
    return match(affinity, mask, max_iter=ITERATIONS, tol=0.0, start=start).probabilities


def row_tiles(rows):
    height = max(1, PLAIN_TILE_BYTES // (4 * len(rows)))
    for start in range(0, len(rows), height):
        block = slice(start, start + height)
        yield block, ((1.0 + rows[block] @ rows.T) / 2).clamp(0.0, 1.0)


def plain_thresholds(A, mean, std):
    F, G = (A - mean) / std, (1.0 - A - mean) / std
    return F * (F >= BETA), G * (G >= BETA)


def plain_full_matching(rows, mask):
    sets, sizes = mask.float(), mask.sum(dim=1).float()
    total = squares = 0.0
    for block, A in row_tiles(rows):
        same = sets[block] @ sets.T
        different = sizes[block, None] * sizes - same
        total += (same * A + different * (1.0 - A)).sum(dtype=torch.float64)
        squares += (same * A**2 + different * (1.0 - A) ** 2).sum(dtype=torch.float64)
    entries = float(mask.sum()) ** 2
    mean = float(total) / entries
    std = (float(squares) / entries - mean**2) ** 0.5
    difference = torch.empty((len(rows), len(rows)), device=rows.device)
    base = torch.empty(len(rows), 1, device=rows.device)
    for block, A in row_tiles(rows):
        F, G = plain_thresholds(A, mean, std)
        difference[block] = F - G
        base[block] = G.sum(dim=1, keepdim=True)
    P = sets / sizes[:, None]
    for _ in range(ITERATIONS):
        support = P * (difference @ P + base)
        total = support.sum(dim=1, keepdim=True)
        P = torch.where(total > 0, support / total, P)
    return P


def plain_sweep(rows, P, statistics_of_k):
    support = torch.empty_like(P)
    for block, A in row_tiles(rows):
        F, G = plain_thresholds(A, statistics_of_k.mean, statistics_of_k.std)
        support[block] = (F - G) @ P + G.sum(dim=1, keepdim=True)
    return support


def variants(rows, mask):
    """Our ways to run, the default first."""
    kept = full_affinity(rows, mask).stored
    yield f"default (high, {'kept' if kept else 'fused'})", {}
    if kept:
        yield "high, fused", {"precision": "high", "store_bytes": 0}
    else:
        yield "high, kept", {"precision": "high", "store_bytes": 2**40}
    yield "half, kept", {"precision": "half", "store_bytes": 2**40}
    yield "half, fused", {"precision": "half", "store_bytes": 0}
    if len(rows) <= 30_000:
        yield "highest (float32), kept", {"precision": "highest", "store_bytes": 2**40}


def measure_full(name, record):
    m, d, q, candidates, target = FULL[name]
    X, mask, truth = make_problem(m, d, q, candidates)
    rows = CosineView(X).rows
    exact = None
    if m <= 30_000:
        exact = full_matching(rows.double(), mask, store_bytes=2**36)
    with tf32():
        plain, plain_seconds = timed(lambda: plain_full_matching(rows, mask))
    record(
        task=f"full graph, {ITERATIONS} iterations",
        shape=name,
        variant="plain PyTorch, TF32",
        seconds=plain_seconds,
        accuracy=accuracy(plain, mask, truth),
        **(compared(plain, exact, mask) if exact is not None else {}),
        against="double precision on the device" if exact is not None else "",
    )
    reference = exact if exact is not None else plain
    against = "double precision on the device" if exact is not None else "plain PyTorch, TF32"
    torch.cuda.empty_cache()
    for variant, options in variants(rows, mask):
        torch.cuda.reset_peak_memory_stats()
        full_matching(rows, mask, **options)
        P, seconds = timed(lambda o=options: full_matching(rows, mask, **o))
        record(
            task=f"full graph, {ITERATIONS} iterations",
            shape=name,
            variant=variant,
            seconds=seconds,
            target=target,
            plain_over_ours=plain_seconds / seconds,
            peak_gib=torch.cuda.max_memory_allocated() / 2**30,
            accuracy=accuracy(P, mask, truth),
            **compared(P, reference, mask),
            against=against,
        )
        del P
        torch.cuda.empty_cache()


def accuracy(P, mask, truth):
    return float((labels_of(P, mask) == truth).double().mean())


def compare_full_with_cpu(name, record):
    """The same problem with fewer rows, on the GPU and by the NumPy classes."""
    _, d, q, candidates, _ = FULL[name]
    X, mask, _ = make_problem(CPU_ROWS, d, q, candidates)
    space = CosineView(X.double())
    host_rows, host_mask = to_host(space.rows), to_host(mask)
    affinity = full_affinity(host_rows, host_mask, beta=BETA, precision="highest")
    start = time.perf_counter()
    expected = match(affinity, host_mask, max_iter=ITERATIONS, tol=0.0).probabilities
    cpu_seconds = time.perf_counter() - start
    single = space.rows.float()
    ways = [(single, *way) for way in variants(single, mask)]
    for rows, variant, options in [*ways, (space.rows, "highest (float64), kept", {})]:
        _, first = timed(lambda r=rows, o=options: full_matching(r, mask, **o), 1)
        P, seconds = timed(lambda r=rows, o=options: full_matching(r, mask, **o))
        record(
            task="full graph, against the CPU",
            shape=f"{name}, {CPU_ROWS} rows",
            variant=variant,
            seconds=seconds,
            first_call_seconds=first,
            cpu_seconds=cpu_seconds,
            **compared(P.double(), expected, mask),
            against="NumPy, double precision",
        )


def measure_sweep(record, m):
    """One product with the affinity of a million rows, its row sums on the way."""
    _, d, q, candidates = MILLION
    X, mask, _ = make_problem(m, d, q, candidates)
    rows = CosineView(X).rows
    P = uniform_start(mask, rows.dtype)
    sample = torch.arange(0, m, max(1, m // 512), device=DEVICE)
    for precision in ("high", "half"):
        small = full_affinity(rows[:4096], mask[:4096], precision=precision, store_bytes=0)
        for _ in range(2):  # with and without the row sums
            small.apply(P[:4096])
        affinity = full_affinity(rows, mask, beta=BETA, precision=precision, store_bytes=0)
        support, with_base = timed(lambda a=affinity: a.apply(P), 1)
        _, seconds = timed(lambda a=affinity: a.apply(P), 1)
        double = full_affinity(rows.double(), mask, beta=BETA, precision="highest", store_bytes=0)
        exact = double.to_queries(rows[sample].double(), P.double())
        inside = mask[sample]
        error = ((support[sample] - exact).abs() / exact)[inside]
        if precision == "high":
            with tf32():
                found = affinity.statistics
                plain_sweep(rows[:4096], P[:4096], found)
                _, plain_seconds = timed(lambda s=found: plain_sweep(rows, P, s), 1)
            record(
                task="full graph, one sweep",
                shape=f"{m:,} x {d}",
                variant="plain PyTorch, TF32",
                seconds=plain_seconds,
            )
        for variant, took in (("first iteration", with_base), ("later iteration", seconds)):
            record(
                task="full graph, one sweep",
                shape=f"{m:,} x {d}",
                variant=f"{precision}, fused, {variant}",
                seconds=took,
                target=SWEEP_TARGET,
                plain_over_ours=plain_seconds / took,
                max_relative_difference=float(error.max()),
                against="double precision on the device, 512 rows",
            )


def local_matching(host_X, host_mask, stages, grouped_rows):
    """Features on the host -> labels on the host."""

    def step(name, function):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        stages[name] = time.perf_counter() - start
        return result

    engine.MIN_GROUPED_ROWS = grouped_rows
    X, mask = step("to the device", lambda: (host_X.to(DEVICE), host_mask.to(DEVICE)))
    rows = step("directions", lambda: CosineView(X).rows)
    graph = step("graph", lambda: LocalGraph(rows, NEIGHBORS))
    affinity = LocalAffinity(graph.weights, mask)
    P = step(
        "matching",
        lambda: match(affinity, mask, balance=BALANCE, max_iter=ITERATIONS, tol=0.0).probabilities,
    )
    labels = step("labels to the host", lambda: labels_of(P, mask).cpu())
    return P, labels


def measure_local(record, m):
    _, d, q, candidates = MILLION
    X, mask, truth = make_problem(m, d, q, candidates)
    host_X, host_mask, truth = X.cpu(), mask.cpu(), truth.cpu()
    engine.TorchEngine().nearest_neighbors(CosineView(X[:40_000]).rows, NEIGHBORS)
    del X, mask
    torch.cuda.empty_cache()
    found = {}
    for variant, grouped in (("default", engine.MIN_GROUPED_ROWS), ("plain search", m + 1)):
        stages = {}
        torch.cuda.reset_peak_memory_stats()
        (P, labels), seconds = timed(
            lambda s=stages, g=grouped: local_matching(host_X, host_mask, s, g), 1
        )
        found[variant] = (P, labels, seconds, stages)
        record(
            task=f"local graph, {ITERATIONS} iterations, host to host",
            shape=f"{m:,} x {d}",
            variant=variant,
            seconds=seconds,
            target=LOCAL_TARGET if variant == "default" else None,
            peak_gib=torch.cuda.max_memory_allocated() / 2**30,
            accuracy=float((labels == truth).double().mean()),
            stages={name: round(value, 4) for name, value in stages.items()},
        )
    P, labels, seconds, stages = found["default"]
    plain = found["plain search"]
    record(
        task=f"local graph, {ITERATIONS} iterations, host to host",
        shape=f"{m:,} x {d}",
        variant="default over plain search",
        plain_over_ours=plain[2] / seconds,
        graph_ratio=plain[3]["graph"] / stages["graph"],
        max_abs_difference=float((P - plain[0]).abs().max()),
        equal_labels=float((labels == plain[1]).double().mean()),
        against="plain search, single precision",
    )


def compare_local_with_cpu(record):
    _, d, q, candidates = MILLION
    X, mask, _ = make_problem(CPU_LOCAL_ROWS, d, q, candidates)
    rows = CosineView(X).rows
    start = time.perf_counter()
    host_mask = to_host(mask)
    graph = LocalGraph(to_host(rows).astype(np.float64), NEIGHBORS, n_jobs=-1)
    expected = match(
        LocalAffinity(graph.weights, host_mask),
        host_mask,
        balance=BALANCE,
        max_iter=ITERATIONS,
        tol=0.0,
    ).probabilities
    cpu_seconds = time.perf_counter() - start

    def ours():
        graph = LocalGraph(rows, NEIGHBORS)
        affinity = LocalAffinity(graph.weights, mask)
        return match(affinity, mask, balance=BALANCE, max_iter=ITERATIONS, tol=0.0).probabilities

    _, first = timed(ours, 1)
    P, seconds = timed(ours)
    record(
        task="local graph, against the CPU",
        shape=f"{CPU_LOCAL_ROWS:,} x {d}",
        variant="default",
        seconds=seconds,
        first_call_seconds=first,
        cpu_seconds=cpu_seconds,
        **compared(P.double(), expected, mask),
        against="NumPy, double precision",
    )


class tf32:
    """Let products of single-precision matrices use TF32, for the plain versions only."""

    def __enter__(self):
        torch.set_float32_matmul_precision("high")

    def __exit__(self, *_):
        torch.set_float32_matmul_precision("highest")


class Recorder:
    """Prints results as they come and keeps them for the files."""

    def __init__(self):
        self.results = []

    def __call__(self, **result):
        result = {key: value for key, value in result.items() if value not in (None, "")}
        self.results.append(result)
        shown = [result["task"], result["shape"], result["variant"]]
        for key, value in result.items():
            if isinstance(value, float):
                shown.append(f"{key} {value:.4g}")
            elif isinstance(value, dict):
                shown.append(f"{key} {value}")
        print(" | ".join(shown), flush=True)

    def write(self, folder):
        import triton

        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cuda": torch.version.cuda,
        }
        text = json.dumps({"environment": environment, "results": self.results}, indent=1)
        (folder / "gpu.json").write_text(text + "\n")
        columns = list(dict.fromkeys(key for result in self.results for key in result))
        with (folder / "gpu.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            for result in self.results:
                writer.writerow(
                    {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in result.items()}
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    parser.add_argument("--small", action="store_true", help="100,000 rows for the million")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a CUDA device, and PyTorch sees none.")
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()  # so that compiling is seen
    million = 100_000 if options.small else MILLION[0]
    record = Recorder()
    for name in FULL:
        compare_full_with_cpu(name, record)
    compare_local_with_cpu(record)
    for name in FULL:
        measure_full(name, record)
        record.write(options.out)
    measure_sweep(record, million)
    record.write(options.out)
    measure_local(record, million)
    record.write(options.out)


if __name__ == "__main__":
    main()
