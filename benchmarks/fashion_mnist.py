"""Networks that learn from candidates: Fashion-MNIST, and the field's tables.

    PYTHONPATH=src python benchmarks/fashion_mnist.py --out results/fashion_mnist.jsonl [--jobs 4]
    PYTHONPATH=src python benchmarks/fashion_mnist.py --small --out results/fashion_small.jsonl
    PYTHONPATH=src python benchmarks/fashion_mnist.py --tables --out results/deep_tables.jsonl
    PYTHONPATH=src python benchmarks/fashion_mnist.py --published --out results/deep_published.jsonl
    PYTHONPATH=src python benchmarks/fashion_mnist.py --show results/fashion_mnist.jsonl

Fashion-MNIST (``$GMPLL_DATA/images/fashion-mnist.npz``): the first 60,000 images are for training,
the last 10,000 for testing. Wrong labels become candidates with a probability of .1, .3, .5 or .7,
or depending on the image: a network trained for a few epochs on true labels is asked for its
probabilities, and a wrong label joins with its probability divided by the largest of a wrong one.
All methods, and full supervision beside them, train the same convolutional network in the same way
on the same weak views; PiCO has its strong view in addition. ``--small`` trains on the first 6000
images with a smaller network, which a processor without a GPU does in half a minute.

Tables: ten folds of Lost, MSRCv2 and BirdSong, z-scored; ``auto`` is what the default chooses
between the linear model and the perceptron without labels, and the other model is run beside it.
``--published`` trains on the same sets as published comparisons do: five random splits of 80 to 20,
the rarest labels left out with their rows (the others cover 99 %), features scaled to [0, 1] over
the whole file, and a perceptron of three layers with batch normalisation.

One line of JSON is appended for every finished run; runs that the file has already are skipped, so
that the command can be stopped and started again. ``--jobs`` processes share the device.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch import nn

from gmpll.deep import DEEP_METHODS, MatchingTargets, Objective, Trainer
from gmpll.deep.objectives import Activation, Leverage, Purification, WeightedCandidates
from gmpll.deep.pico import PrototypeContrast
from gmpll.deep.views import weak_images

N_TEST = 10_000
N_LABELS = 10
WORLDS = ("0.1", "0.3", "0.5", "0.7", "instance")
SUPERVISED, TRUE_LABELS = "Full supervision", "true labels"
#: Epochs of the network whose probabilities make the candidates depend on the image.
ANNOTATOR_EPOCHS = 3
TABLES = ("Lost", "MSRCv2", "BirdSong")
N_FOLDS = 10
#: Published comparisons on tables: splits, labels that are kept, and how all methods are trained.
N_SPLITS, TRAIN_PART, COVERED = 5, 0.8, 0.99
PUBLISHED_TRAINING = {
    "module": (300, 300, 300),
    "learning_rate": 1e-2,
    "weight_decay": 1e-4,
    "schedule": "onecycle",
    "batch_size": 16,
    "max_iter": 200,
    "standardize": False,
}
#: On images, the same for all methods; the batches of a small part are smaller.
TRAINING = {"learning_rate": 3e-3, "weight_decay": 1e-5, "batch_size": 1024, "schedule": "onecycle"}
SMALL_ROWS, SMALL_BATCH = 6000, 128


def itself(images):
    return images


def objective_of(method, epochs, seed):
    return {
        SUPERVISED: Objective,
        "CC": Objective,
        "RC": lambda: WeightedCandidates(second_pass=True),
        "PRODEN": WeightedCandidates,
        # The authors' logarithmic loss: with the sigmoid one Adam gets stuck at large sets.
        "LWS": lambda: Leverage(kind="log"),
        "CAVL": lambda: Activation(warmup=1),
        # Few epochs: the first strike after a quarter of them, and a threshold that does grow.
        "POP": lambda: Purification(increment=1.0, warmup=epochs // 4, window=3, interval=1),
        "PiCO": lambda: PrototypeContrast(weak=itself, seed=seed),
        "Deep GM-PLL": MatchingTargets,
    }[method]()


def convolutional_network(small):
    def block(n_in, n_out, stride=1):
        convolution = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(n_out), nn.ReLU()]

    if small:
        layers = [*block(1, 16, 2), *block(16, 32, 2), *block(32, 64)]
    else:
        layers = [*block(1, 32), *block(32, 32), nn.MaxPool2d(2)]
        layers += [*block(32, 64), *block(64, 64), nn.MaxPool2d(2)]
    head = [nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, N_LABELS)]
    return nn.Sequential(*layers, *head)


@cache
def images(path, device, n_rows):
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    X = torch.tensor(X, device=device).float().reshape(-1, 1, 28, 28)
    X = (X - X.mean()) / X.std()
    y = torch.tensor(y, device=device)
    train = slice(n_rows or -N_TEST)
    return (X[train], y[train]), (X[-N_TEST:], y[-N_TEST:])


def new_network(seed, device, small):
    with torch.random.fork_rng(devices=[device] if device == "cuda" else []):
        torch.manual_seed(seed)
        return convolutional_network(small).to(device)


def image_trainer(epochs, seed, small, **settings):
    training = TRAINING | ({"batch_size": SMALL_BATCH} if small else {})
    return Trainer(max_iter=epochs, seed=seed, **training, **settings)


@cache
def candidates(path, device, n_rows, small, world, seed):
    (X, y), _ = images(path, device, n_rows)
    truth = nn.functional.one_hot(y, N_LABELS).bool()
    if world == TRUE_LABELS:
        return truth
    if world == "instance":
        network = new_network(1000 + seed, device, small)
        trainer = image_trainer(ANNOTATOR_EPOCHS, 1000 + seed, small)
        torch.use_deterministic_algorithms(True, warn_only=True)  # the same sets in every process
        trainer.train(network, Objective(), X, truth)
        wrong = torch.softmax(trainer.evaluate(network, X)[0], dim=1).masked_fill(truth, 0.0)
        torch.use_deterministic_algorithms(False)
        flip = wrong / wrong.max(dim=1, keepdim=True).values.clamp(min=1e-30)
    else:
        flip = torch.full(truth.shape, float(world), device=device)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(truth.shape, generator=generator).to(device)
    return truth | (drawn < flip)


def image_run(task):
    device, small, seed = task["device"], task["small"], task["seed"]
    (X, y), (X_test, y_test) = images(task["data"], device, task["rows"])
    mask = candidates(task["data"], device, task["rows"], small, task["world"], seed)
    size = float(mask.sum(dim=1).float().mean())
    began = time.perf_counter()
    network = new_network(seed, device, small).to(memory_format=torch.channels_last)
    objective = objective_of(task["method"], task["epochs"], seed)
    trainer = image_trainer(task["epochs"], seed, small, augment=weak_images)
    trainer.train(network, objective, X, mask)
    with torch.no_grad():
        logits, embeddings = trainer.evaluate(network, X)
        found = objective.confidences(logits, embeddings).argmax(dim=1)
        predicted = trainer.evaluate(network, X_test)[0].argmax(dim=1)
    return {
        "test": float((predicted == y_test).float().mean()),
        "train": float((found == y).float().mean()),
        "candidates": size,
        "seconds": time.perf_counter() - began,
    }


def table_run(task):
    from sklearn.model_selection import KFold

    from gmpll.datasets import load_dataset

    data = load_dataset(task["world"])
    X, mask, truth = data.data, data.candidates, data.target
    folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(X)
    train, test = list(folds)[task["seed"]]

    def fitted(module):
        settings = {"max_iter": task["epochs"]} if task["epochs"] else {}
        model = DEEP_METHODS[task["method"]](
            module, random_state=task["seed"], device=task["device"], **settings
        )
        return model.fit(X[train], mask[train])

    def scores(model):
        return {
            "test": float((model.predict(X[test]) == truth[test]).mean()),
            "train": float((model.labels_ == truth[train]).mean()),
        }

    began = time.perf_counter()
    model = fitted("auto")
    seconds = time.perf_counter() - began
    other = {"linear": "mlp", "mlp": "linear"}[model.module_name_]
    by_module = {model.module_name_: scores(model), other: scores(fitted(other))}
    return {
        **scores(model),
        "chosen": model.module_name_,
        "lifts": model.module_lifts_,
        "modules": by_module,
        "seconds": seconds,
    }


def tasks_of(arguments):
    images = arguments.kind == "images"
    seeds = range(arguments.seeds or KINDS[arguments.kind][1])
    methods = [SUPERVISED, *DEEP_METHODS] if images else list(DEEP_METHODS)
    if arguments.methods:
        methods = [name.strip() for name in arguments.methods.split(",")]
        unknown = set(methods) - {SUPERVISED, *DEEP_METHODS}
        if unknown:
            sys.exit(f"There is no method {min(unknown)!r}; there are {', '.join(DEEP_METHODS)}.")
    worlds = WORLDS if images else TABLES
    if arguments.worlds:
        worlds = [name.strip() for name in arguments.worlds.split(",")]
    for seed in seeds:
        for world in worlds:
            for method in methods:
                if method != SUPERVISED:
                    yield {"method": method, "world": world, "seed": seed}
                elif world == worlds[0]:
                    yield {"method": method, "world": TRUE_LABELS, "seed": seed}


def identity(run):
    return run["method"], run["world"], run["seed"], run["epochs"]


def published_run(task):
    from gmpll.datasets import load_dataset

    data = load_dataset(task["world"])
    labels, column, sizes = np.unique(data.target, return_inverse=True, return_counts=True)
    by_size = np.argsort(-sizes)
    kept = by_size[: 1 + np.searchsorted(sizes[by_size].cumsum(), COVERED * sizes.sum())]
    rows = np.isin(column, kept)
    candidates = data.candidates[rows] & np.isin(data.target_names, labels[kept])
    low, high = data.data.min(axis=0), data.data.max(axis=0)
    X, truth = ((data.data - low) / np.maximum(high - low, 1e-12))[rows], data.target[rows]
    drawn = np.random.RandomState(task["seed"]).permutation(len(X))
    train, test = np.split(drawn, [int(TRAIN_PART * len(X))])
    began = time.perf_counter()
    settings = {"random_state": task["seed"], "device": task["device"], **PUBLISHED_TRAINING}
    settings |= {"max_iter": task["epochs"]} if task["epochs"] else {}
    model = DEEP_METHODS[task["method"]](**settings).fit(X[train], candidates[train])
    return {
        "test": float((model.predict(X[test]) == truth[test]).mean()),
        "train": float((model.labels_ == truth[train]).mean()),
        "seconds": time.perf_counter() - began,
    }


#: What runs a task, and how many seeds it has.
KINDS = {
    "images": (image_run, 3),
    "tables": (table_run, N_FOLDS),
    "published": (published_run, N_SPLITS),
}


def run_one(task):
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic where asked for
    torch.set_num_threads(task["threads"])
    result = KINDS[task["kind"]][0](task)
    return {key: task[key] for key in ("method", "world", "seed", "epochs")} | result


def read_runs(path):
    path = Path(path)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def append(path, line):
    """Append a line in one write, so that a run which is stopped leaves whole lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


def show(runs):
    """Print mean and standard deviation of the accuracy on unseen rows, and within candidates."""
    methods = list(dict.fromkeys(run["method"] for run in runs))
    worlds = list(dict.fromkeys(run["world"] for run in runs))
    for part in ("test", "train"):
        print(f"\n| {part} | " + " | ".join(worlds) + " | seconds |")
        print("|---" * (len(worlds) + 2) + "|")
        for method in methods:
            cells, seconds = [], []
            for world in worlds:
                found = [r for r in runs if r["method"] == method and r["world"] == world]
                values = [r[part] for r in found]
                seconds += [r["seconds"] for r in found]
                cell = f"{np.mean(values):.3f} ({np.std(values):.3f})" if values else ""
                for module in ("linear", "mlp"):
                    of_module = [r["modules"][module][part] for r in found if "modules" in r]
                    cell += f" {module} {np.mean(of_module):.3f}" if of_module else ""
                cells.append(cell)
            print(f"| {method} | " + " | ".join(cells) + f" | {np.mean(seconds):.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    data_home = Path(os.environ.get("GMPLL_DATA", "."))
    parser.add_argument("--data", default=str(data_home / "images" / "fashion-mnist.npz"))
    parser.add_argument("--out", default=None)
    parser.add_argument("--methods", default="", help="separated by commas")
    parser.add_argument("--worlds", default="", help="separated by commas")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--seeds", type=int, help="by default 3 of images, 10 folds, 5 splits")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for kind in ("tables", "published"):
        parser.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, default="images"
        )
    parser.add_argument("--small", action="store_true", help="6000 images, a smaller network")
    parser.add_argument("--smoke", action="store_true", help="few rows, one epoch, one seed")
    parser.add_argument("--show", metavar="FILE", help="print the table of a file, run nothing")
    arguments = parser.parse_args()
    if arguments.show:
        return show(read_runs(arguments.show))
    out = arguments.out or f"results/deep_{arguments.kind}.jsonl"
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    # 0: as the methods, or the published comparisons, have it.
    epochs = arguments.epochs or (15 if arguments.kind == "images" else 0)
    if arguments.smoke:
        epochs, arguments.seeds = 1, 1
    common = {
        "epochs": epochs,
        "device": arguments.device,
        "data": arguments.data,
        "rows": 600 if arguments.smoke else SMALL_ROWS * arguments.small,
        "small": arguments.small,
        "kind": arguments.kind,
        "threads": arguments.threads,
    }
    done = {identity(run) for run in read_runs(out)}
    tasks = [task | common for task in tasks_of(arguments)]
    tasks = [task for task in tasks if identity(task) not in done]
    began = time.perf_counter()
    print(f"{len(tasks)} runs to do, {len(done)} there already", flush=True)
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for number, future in enumerate(as_completed([pool.submit(run_one, t) for t in tasks])):
            run = future.result()
            append(out, run)
            print(
                f"{number + 1}/{len(tasks)} {time.perf_counter() - began:.0f} s: {run['method']}, "
                f"{run['world']}, seed {run['seed']}: test {run['test']:.4f}, "
                f"train {run['train']:.4f}, {run['seconds']:.1f} s",
                flush=True,
            )
    show(read_runs(out))
    return None


if __name__ == "__main__":
    main()
