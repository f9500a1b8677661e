"""How good the estimates of the time left are.

    python benchmarks/progress.py [--shapes 700x100x10,5000x64x10,100000x32x10] [--out FILE]

For every shape (rows x features x labels) a table is resolved as ``gmpll disambiguate`` does. Two
tables are printed. The first has what every stage was planned to cost beside the seconds that it
took, and those of the processor: with OMP_NUM_THREADS=1 these are what costs are, however busy the
machine. The second has the seconds that were said to be left when a tenth, a quarter, a half, three
quarters and nine tenths of the time were over, beside those that were left; ``--out`` writes it as
CSV. A bar that is right within a factor of 1.5 is a good one: machines differ, and what a fit
chooses is not known before.
"""

import argparse
import csv
import itertools
import multiprocessing
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll import PartialLabelClassifier
from gmpll._progress import Outlook, listening, plan
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_folder
from gmpll.apps.tables.resolving import prepare, resolve_decided
from gmpll.apps.tables.steps import disambiguation_steps
from gmpll.apps.tables.tables import read_table
from gmpll.datasets import make_partial_label_problem

SHAPES = "700x100x10,5000x64x10,100000x32x10"
MOMENTS = (0.1, 0.25, 0.5, 0.75, 0.9)
SECONDS_BETWEEN_LOOKS = 0.05


def write_problem(shape, file):
    """Write a problem as a table."""
    rows, features, labels = map(int, shape.split("x"))
    problem = make_partial_label_problem(rows, features, labels, 3.0, random_state=0)
    frame = pd.DataFrame(problem.data.round(4), columns=[f"f{i}" for i in range(features)])
    names = np.array([f"label {i}" for i in range(labels)])
    frame["tags"] = ["|".join(names[row]) for row in problem.candidates]
    frame.to_csv(file, index=False)


class Watch:
    """Looks at an outlook now and then, and notes when which stage ran."""

    def __init__(self):
        self.outlook = Outlook()
        self.looks, self.stages, self.planned = [], [], {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __call__(self, standing):
        self.outlook(standing)
        if not self.stages or self.stages[-1][0] != standing.stages:
            self.stages.append((standing.stages, self.outlook.seconds, time.process_time()))
            self.planned[standing.stages] = standing.running

    def _look(self):
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            found = self.outlook.look()
            self.looks.append((self.outlook.seconds, None if found is None else found[1]))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self.seconds = self.outlook.seconds
        self.stages.append(((), self.seconds, time.process_time()))


def watched(file, folder):
    """Resolve a table under a watch."""
    table = read_table(file)
    options = Options()
    prepared = prepare(table, guess_roles(table, options), options)
    with Watch() as watch, listening(watch), plan(disambiguation_steps(*table.frame.shape)):
        write_folder(resolve_decided(prepared, {}), folder)
    return watch


def measured(shape):
    """Resolve a table of a shape in a process of its own; return what is printed, and the lines."""
    warm = make_partial_label_problem(500, 10, 5, 2.0, random_state=0)
    PartialLabelClassifier(random_state=0).fit(warm.data, warm.candidates)  # loads what is compiled
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        write_problem(shape, file)
        watch = watched(file, Path(folder) / "out")
    text = f"\n{shape}: {watch.seconds:.1f} s\n\n{'stage':55}{'planned':>8}{'took':>8}{'cpu':>8}\n"
    for (stages, start, cpu), (_, end, later) in itertools.pairwise(watch.stages):
        if stages:
            took = f"{end - start:8.2f}{later - cpu:8.2f}"
            text += f"{': '.join(stages):55}{watch.planned[stages]:8.2f}{took}\n"
    text += f"\n{'over':>6}{'said':>8}{'left':>8}\n"
    lines = []
    for moment in MOMENTS:
        now, said = min(watch.looks, key=lambda look: abs(look[0] - moment * watch.seconds))
        left = watch.seconds - now
        lines.append((shape, moment, "" if said is None else round(said, 2), round(left, 2)))
        text += f"{moment:6.0%}{'?' if said is None else f'{said:.1f}':>8}{left:8.1f}\n"
    return text, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    every = []
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as pool:
        for text, lines in pool.map(measured, arguments.shapes.split(",")):
            print(text, flush=True)
            every += lines
    if arguments.out:
        with arguments.out.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(("problem", "over", "said to be left", "left"))
            writer.writerows(every)


if __name__ == "__main__":
    main()
