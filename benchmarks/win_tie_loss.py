"""A method's new scores against stored ones of other methods: wins, ties, losses.

    gmpll reproduce --only controlled --datasets glass,ecoli,dermatology,vehicle --methods gmpll
                    --out runs/small
    python benchmarks/win_tie_loss.py runs/small/scores.csv results/controlled/scores.csv

Both files are ``scores.csv`` of the same experiment: same data sets, candidates and folds. For
every configuration the ten folds are compared by a paired t-test at 0.05, as in the report of a
run; a difference that is the same in all folds is a tie.
"""

import argparse

import pandas as pd
from scipy.stats import ttest_rel

CONFIGURATION = ["dataset", "p", "r"]
LEVEL = 0.05


def compared(ours, others, measure):
    """Yield (configuration, method, mean difference, -1, 0 or 1)."""
    stored = dict(list(others.groupby([*CONFIGURATION, "method"])))
    methods = [name for name in others["method"].unique() if name not in set(ours["method"])]
    for configuration, rows in ours.groupby(CONFIGURATION):
        mine = rows.set_index("fold")[measure]
        for method in methods:
            theirs = stored.get((*configuration, method))
            if theirs is None or theirs[measure].isna().all():
                continue
            difference = mine - theirs.set_index("fold")[measure].reindex(mine.index)
            mean = difference.mean()
            sure = difference.std() > 0 and ttest_rel(difference, 0 * difference).pvalue < LEVEL
            yield configuration, method, mean, (1 if mean > 0 else -1) if sure else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("others")
    options = parser.parse_args()
    ours, others = pd.read_csv(options.ours), pd.read_csv(options.others)
    for measure, rows in (("inductive", "unseen rows"), ("transductive", "training rows")):
        found = list(compared(ours, others, measure))
        counts = [sum(sign == value for *_, sign in found) for value in (1, 0, -1)]
        print(f"{rows}: {counts[0]} won, {counts[1]} equal, {counts[2]} lost of {len(found)}")
        for (dataset, p, r), method, mean, sign in found:
            if sign < 0:
                print(f"  {dataset}, p {p}, r {r}: {100 * mean:+.1f} points to {method}")


if __name__ == "__main__":
    main()
