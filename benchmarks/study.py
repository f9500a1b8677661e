"""Every setting of the default on every data set: true accuracy beside label-free criteria.

    python benchmarks/study.py --out results/study/settings.csv [--device cuda] [--folds 5]
    python benchmarks/study.py --prepare FOLDER        # only write the problems, for a machine
    python benchmarks/study.py --problems FOLDER ...   # ... that has no data sets

The question is which setting of graph, balance, views and regression is best where, and whether a
criterion that sees candidate sets alone would have found it. So each setting is fitted on every
training fold and scored with the true labels; beside that it is fitted three times on two thirds
of (at most 1500 rows of) the training fold, small ones repeatedly, and its predictions for the rest
are scored by each criterion. The true labels enter the columns ``unseen`` and ``training`` alone.

Two kinds of criteria look beyond the predicted label. The *set likelihood* asks how much likelier
the sets of held-out rows are than they would be without features, under the model of
``gmpll.evidence.set_model``: a label that is given to most rows gains little, even if most sets
contain it. *Hidden singles* are held-out rows with one candidate, put behind each set of the fitted
rows that contains it, and the share of these sets in which the candidate is found again.

The computation is that of ``gmpll.evidence.pipeline`` with the exact kernel, written in PyTorch so
that the thousands of fits are a matter of minutes on a GPU; ``--check`` compares it with the
library's own. ``benchmarks/criteria.py`` makes the tables.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import KFold
from study_problems import problems

from gmpll.graph.views import CosineView, EuclideanView, RankView
from gmpll.matching.feedback import FLOOR

SCALE_NEIGHBOR = 7
DISTANCE_SAMPLE = 500
#: How the default's views are written here.
VIEWS = {"cosine": "z", "rank": "r", "euclidean": "p"}
CRITERIA = ("covering rate", "candidate lift", "lift with prior", "approximated accuracy",
            "partial likelihood", "expected lift", "set likelihood",
            "set likelihood, own balance", "hidden singles")  # fmt: skip
#: What the set likelihood compares: exponents of the class prior, and scales of the scores.
TAUS = (0.0, 0.5, 1.0)
SCALES = (0.0, *np.geomspace(0.25, 64.0, 33))


SPACES = {"z": CosineView, "r": RankView, "p": EuclideanView}


@dataclass(frozen=True)
class Setting:
    """What a fit depends on; several regressions (width, ridge) are averaged."""

    views: str = "zr"
    neighbors: int = 40
    balance: float = 0.5
    regressions: tuple = ((0.5, 0.1),)
    iterations: int = 10
    sharpness: float = 2.0


def settings():
    """The grid: views, balance and regression crossed, the rest one at a time."""
    base = Setting()
    grid = [
        replace(base, views=views, balance=balance, regressions=((width, ridge),))
        for views in ("zr", "zrp")
        for balance in (0.25, 0.5, 0.75)
        for width in (0.25, 0.5, 1.5, 5.0)
        for ridge in (0.01, 0.1, 1.0)
    ]
    middle = replace(base, regressions=((1.5, 0.1),))
    for around in (base, middle):
        grid += [replace(around, views=views) for views in ("z", "r", "p", "zp", "rp")]
        grid += [replace(around, neighbors=k) for k in (10, 20, 80)]
        grid += [replace(around, iterations=n) for n in (0, 1, 3, 30)]
        grid += [replace(around, sharpness=s) for s in (1.0, 1.5, 3.0)]
        grid += [replace(around, balance=b) for b in (0.0, 1.0)]
    mixtures = [((0.5, 0.1), (1.5, 0.1)), ((0.5, 0.01), (0.5, 0.1), (1.5, 0.1)),
                ((0.5, 0.1), (1.5, 0.1), (5.0, 0.1))]  # fmt: skip
    grid += [replace(base, views=v, regressions=m) for v in ("zr", "zrp") for m in mixtures]
    return list(dict.fromkeys(grid))


def choices():
    """Nine alternatives: two views and three regressions, three views and six."""
    pairs = [(width, ridge) for width in (0.5, 1.5, 5.0) for ridge in (0.1, 0.01)]
    two = [Setting("zr", regressions=(pair,)) for pair in pairs[:3]]
    return two + [Setting("zrp", regressions=(pair,)) for pair in pairs]


def balances():
    """Settings between which accuracy changes much and the candidate lift hardly."""
    return [
        Setting(balance=balance, regressions=((width, 0.1),))
        for balance in (0.0, 0.25, 0.5, 0.75, 1.0)
        for width in (0.5, 1.5)
    ]


GRIDS = {"settings": settings, "choices": choices, "balances": balances}

# --------------------------------------------------------------------------------- the problems


def saved_problems(folder):
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as file:
            yield str(file["name"]), tuple(file[key] for key in ("X", "mask", "truth", "ordered"))


def save_problems(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, (name, (X, mask, truth, ordered)) in enumerate(problems()):
        np.savez_compressed(Path(folder) / f"{number:02d}.npz", name=name, X=X.astype(np.float32),
                            mask=mask, truth=truth, ordered=ordered)  # fmt: skip


# ------------------------------------------------------------------------------------- the fits


class Learner:
    """The matching of some rows and regressions on it, for any setting; shares what it can."""

    def __init__(self, X, mask, similarity, device):
        self.X, self.device = X, device
        self.mask = torch.as_tensor(mask, device=device)
        self.similarity = None if similarity is None else self.tensor(similarity)
        self._spaces, self._squared, self._graphs, self._matched, self._inverses = (
            {},
            {},
            {},
            {},
            {},
        )

    def tensor(self, values):
        return torch.as_tensor(
            np.ascontiguousarray(values), dtype=torch.float64, device=self.device
        )

    def space(self, view):
        if view not in self._spaces:
            self._spaces[view] = SPACES[view](self.X)
        return self._spaces[view]

    def squared(self, view):
        if view not in self._squared:
            rows = self.tensor(self.space(view).rows)
            squared = squared_distances(rows, rows)
            squared.fill_diagonal_(0.0)
            sample = np.random.RandomState(0).permutation(len(rows))[:DISTANCE_SAMPLE]
            part = squared[sample][:, sample]
            off = ~torch.eye(len(sample), dtype=torch.bool, device=self.device)
            median = float(np.median(part[off].cpu().numpy())) if len(sample) > 1 else 0.0
            self._squared[view] = rows, squared, median if median > 0 else 1.0
        return self._squared[view]

    def graph(self, views, k):
        if (views, k) not in self._graphs:
            self._graphs[views, k] = sum(self.view_graph(view, k) for view in views)
        return self._graphs[views, k]

    def view_graph(self, view, k):
        if (view, k) not in self._graphs:
            squared = self.squared(view)[1].clone()
            squared.fill_diagonal_(torch.inf)
            near, index = squared.topk(min(k, len(squared) - 1), largest=False)
            near = near.clamp_min(0.0)
            scale = near[:, min(SCALE_NEIGHBOR, near.shape[1]) - 1].sqrt()
            spread = scale[:, None] * scale[index]
            values = torch.where(near == 0, 1.0, torch.where(
                spread == 0, 0.0, torch.exp(-near / spread.clamp_min(1e-300))))  # fmt: skip
            weights = torch.zeros_like(squared).scatter_(1, index, values)
            self._graphs[view, k] = torch.maximum(weights, weights.T)
        return self._graphs[view, k]

    def matched(self, views, k, balance):
        key = views, k, balance
        if key not in self._matched:
            weights, mask = self.graph(views, k), self.mask.double()
            P = mask / mask.sum(1, keepdim=True)
            for _ in range(100):
                support = weights @ P
                if self.similarity is not None:
                    support = support @ self.similarity
                support = P * support / P.sum(0).clamp_min(1e-300) ** balance
                total = support.sum(1, keepdim=True)
                new = torch.where(total > 0, support / total.clamp_min(1e-300), P)
                done = torch.linalg.norm(new - P) < 1e-4
                P = new
                if done:
                    break
            self._matched[key] = P
        return self._matched[key]

    def inverse(self, views, width, ridge):
        """(K + ridge I)^-1 and the leverages of the regression."""
        key = views, width, ridge
        if key not in self._inverses:
            kernel = sum(
                torch.exp(-width / median * squared)
                for _, squared, median in map(self.squared, views)
            ) / len(views)
            kernel.diagonal().add_(ridge)
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel))
            self._inverses = {key: (ridge, inverse)}  # one at a time: they are large
        return self._inverses[key]

    def spread(self, scores):
        if self.similarity is None:
            return scores
        return scores @ (self.similarity / self.similarity.sum(0))

    def fit(self, setting):
        """Confidences of the rows, and the coefficients of the regressions."""
        P = self.matched(setting.views, setting.neighbors, setting.balance)
        several = len(setting.regressions) > 1
        inverses = [self.inverse(setting.views, *pair) for pair in setting.regressions]
        for _ in range(setting.iterations):
            predicted = self.spread(
                sum(leave_one_out(P, *pair) for pair in inverses) / len(inverses)
            )
            support = predicted.clamp_min(0.0) ** setting.sharpness + FLOOR
            support = support / P.sum(0).clamp_min(1e-300) ** setting.balance * self.mask
            P = support / support.sum(1, keepdim=True)
        if several:
            self._inverses = {}
        return P, [inverse @ P for _, inverse in inverses]

    def score(self, setting, coefficients, X):
        scores = 0.0
        for (width, _), weights in zip(setting.regressions, coefficients, strict=True):
            kernel = 0.0
            for view in setting.views:
                rows, _, median = self.squared(view)
                queries = self.tensor(self.space(view).transform(X))
                kernel = kernel + torch.exp(-width / median * squared_distances(queries, rows))
            scores = scores + kernel / len(setting.views) @ weights
        return self.spread(scores / len(setting.regressions))


def squared_distances(first, second):
    product = first @ second.T
    return (first.square().sum(1)[:, None] + second.square().sum(1) - 2.0 * product).clamp_min(0.0)


def leave_one_out(P, ridge, inverse):
    # With A = (K + ridge I)^-1: fitted = P - ridge A P, leverage = 1 - ridge diag(A).
    return P - (inverse @ P) / inverse.diagonal()[:, None]


def criteria(mask_train, mask_held_out, confidences, scores, balance):
    """Score predictions of held-out rows with the candidate sets alone; one value per row each."""
    likelihoods = set_log_likelihood(mask_held_out, confidences, scores, (*TAUS, balance))
    likeliest = likelihoods[:-1].mean(1).argmax()
    rows = torch.arange(len(scores), device=scores.device)
    predicted = scores.argmax(1)
    hit = mask_held_out[rows, predicted].double()
    frequency = mask_train.double().mean(0)
    prior = confidences.mean(0).clamp_max(1 - 1e-9)
    chance = ((frequency - prior) / (1 - prior)).clamp(0.0, 1.0)
    p = scores.clamp_min(0.0) + 1e-9
    p = p / p.sum(1, keepdim=True)
    inside = (p * mask_held_out).sum(1)
    sharp = p.square() / p.square().sum(1, keepdim=True)
    worth = torch.where(mask_held_out, 1.0, -chance / (1 - chance).clamp_min(0.02))
    return torch.stack([
        hit,
        lift(hit, frequency[predicted]),
        lift(hit, chance[predicted]),
        p[rows, predicted] * hit / inside.clamp_min(1e-12),
        inside.clamp_min(1e-9).log(),
        (sharp * worth).sum(1),
        likelihoods[likeliest],
        likelihoods[-1],
        hidden_singles(mask_train, mask_held_out, scores),
    ])  # fmt: skip


def set_log_likelihood(mask, confidences, scores, taus):
    """log P(S | x) / P(S) of rows with these scores, for every exponent; 0 if no member is known.

    The scale of the scores is the likeliest for one half of the rows where the other is judged.
    """
    half = 0.5  # a row that every label has beforehand
    shares = (confidences.sum(0) + half) / (len(confidences) + half * mask.shape[1])
    beforehand = torch.stack([torch.where(mask, shares ** (1.0 - tau), 0.0) for tau in taus])
    beforehand = beforehand / beforehand.sum(2, keepdim=True).clamp_min(1e-300)
    scales = torch.as_tensor(SCALES, dtype=scores.dtype, device=scores.device)
    ratios = torch.exp(scales[:, None, None] * (scores - scores.amax(1, keepdim=True)))
    ratios = ratios / (ratios @ shares)[:, :, None]
    likelihood = torch.einsum("tnl,snl->tsn", beforehand, ratios).clamp_min(1e-9).log()
    likelihood = torch.where(mask.any(1), likelihood, 0.0)
    judged = torch.empty_like(likelihood[:, 0])
    for side in (0, 1):
        scale = likelihood[:, :, 1 - side :: 2].mean(2).argmax(1)
        judged[:, side::2] = likelihood[torch.arange(len(taus), device=mask.device), scale, side::2]
    return judged


def hidden_singles(mask_train, mask_held_out, scores):
    """How often a lone candidate is found behind the sets that contain it; NaN for other rows.

    All sets of the fitted rows that contain the candidate and another label are tried, which is the
    expectation over draws of such a set.
    """
    label = mask_held_out.double().argmax(1)
    sets = mask_train[mask_train.sum(1) > 1].double()
    ahead = (scores >= scores.gather(1, label[:, None])).double().scatter_(1, label[:, None], 0.0)
    behind = sets.T[label]
    found = (behind * (ahead @ sets.T == 0)).sum(1) / behind.sum(1)
    return torch.where(mask_held_out.sum(1) == 1, found, torch.nan)


def lift(hit, chance):
    return torch.where(chance < 1 - 1e-9, (hit - chance) / (1 - chance).clamp_min(1e-9), 0.0)


def cooccurrence(mask):
    from gmpll.ordinal import cooccurrence_similarity

    return cooccurrence_similarity(mask)


def parts(n_rows, rng):
    """Cut at most 1500 rows into three folds, few rows again and again."""
    for _ in range(min(5, max(1, 1500 // n_rows))):
        rows = rng.permutation(n_rows)[:1500]
        for fitted, held_out in KFold(3).split(rows):
            yield rows[fitted], rows[held_out]


def run_problem(problem, grid, folds, device):
    """Yield (fold, setting, unseen, training, criteria...) for every fold and setting."""
    X, mask, truth, ordered = problem
    X = np.asarray(X, dtype=np.float64)
    splits = KFold(10, shuffle=True, random_state=0).split(X)

    def learner(rows):
        seen = mask[rows].any(axis=0)
        part = np.ascontiguousarray(mask[rows][:, seen])
        return Learner(X[rows], part, cooccurrence(part) if ordered else None, device), seen

    for fold, (train, test) in enumerate(itertools.islice(splits, folds)):
        outer, seen = learner(train)
        columns = np.flatnonzero(seen)
        inner = [
            (*learner(train[fitted]), train[held_out])
            for fitted, held_out in parts(len(train), np.random.RandomState(fold))
        ]
        for setting in grid:
            P, coefficients = outer.fit(setting)
            scores = outer.score(setting, coefficients, X[test])
            unseen = (columns[scores.argmax(1).cpu().numpy()] == truth[test]).mean()
            best = torch.where(outer.mask, P, -1.0).argmax(1).cpu().numpy()
            training = (columns[best] == truth[train]).mean()
            scored = []
            for part, labels, held_out in inner:
                P, coefficients = part.fit(setting)
                sets = torch.as_tensor(mask[held_out][:, labels], device=device)
                scores = part.score(setting, coefficients, X[held_out])
                scored.append(criteria(part.mask, sets, P, scores, setting.balance))
            values = torch.cat(scored, dim=1).nanmean(1).cpu().tolist()
            yield fold, setting, unseen, training, values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="CSV file of all fits; what it holds already is not run")
    parser.add_argument("--prepare", metavar="FOLDER", help="write the problems here and stop")
    parser.add_argument("--problems", metavar="FOLDER", help="read the problems from here")
    parser.add_argument("--only", default="", help="only problems whose name contains this")
    parser.add_argument("--shard", default="0/1", help="i/n: only every n-th problem from i on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--grid", choices=sorted(GRIDS), default="settings")
    parser.add_argument("--folds", type=int, default=5, help="how many of the ten folds")
    options = parser.parse_args()
    if options.prepare:
        return save_problems(options.prepare)
    source = saved_problems(options.problems) if options.problems else problems()
    first, step = map(int, options.shard.split("/"))
    wanted = (
        pair for pair in itertools.islice(source, first, None, step) if options.only in pair[0]
    )
    if not options.out:
        parser.error("--out says where the results go")
    grid = GRIDS[options.grid]()
    path = Path(options.out)
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {row["dataset"] for row in csv.DictReader(file)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        names = [field.name for field in fields(Setting)]
        if not done:
            writer.writerow(["dataset", "fold", *names, "unseen", "training", *CRITERIA])
        for name, problem in wanted:
            if name in done:
                continue
            start = time.perf_counter()
            rows = [
                [name, fold, *astuple(setting), f"{unseen:.4f}", f"{training:.4f}",
                 *(f"{value:.5f}" for value in values)]
                for fold, setting, unseen, training, values in run_problem(
                    problem, grid, options.folds, options.device)
            ]  # fmt: skip
            writer.writerows(rows)  # a data set at a time, so that a stopped run can go on
            file.flush()
            print(f"{name}: {len(rows)} fits in {time.perf_counter() - start:.0f} s", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
