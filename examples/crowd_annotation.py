"""Crowd annotation: short messages, and the topics that workers of unequal care gave them.

python examples/crowd_annotation.py           # generate, resolve, print the accuracy
python examples/crowd_annotation.py FOLDER    # also write the data, for the command line
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll.apps.tables import disambiguate

TOPICS = {
    "billing": "invoice charged refund payment card price twice discount receipt bank",
    "delivery": "parcel courier late tracking shipped address box lost arrived depot",
    "account": "password login email locked username reset profile sign verify code",
    "quality": "broken scratched faulty seam torn loose noisy cracked defect cheap",
    "advice": "recommend size compare which better suits colour fit choose model",
    "praise": "great thanks lovely happy excellent friendly fast perfect love recommend",
}
#: Words that say nothing about the topic.
FILLER = ("please", "could", "you", "the", "my", "order", "with", "about", "again", "still", "shop")
#: Topics that hurried workers take for each other.
CONFUSED = {"billing": "account", "account": "billing", "quality": "delivery", "praise": "advice"}
#: Share of answers that the five workers get right.
CARE = (0.9, 0.75, 0.65, 0.55, 0.5)
VOTES_PER_ITEM = 3


def generate(n_items=900, seed=0):
    """Return messages, votes and the hidden truth."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    truth = rng.choice(names, n_items)
    messages = [_message(TOPICS[topic].split(), rng) for topic in truth]
    items = pd.DataFrame({"id": [f"m{i:04d}" for i in range(n_items)], "message": messages})
    votes = [
        (identity, _answer(topic, CARE[worker], names, rng), f"worker {worker}")
        for identity, topic in zip(items["id"], truth, strict=True)
        for worker in rng.choice(len(CARE), VOTES_PER_ITEM, replace=False)
    ]
    return items, pd.DataFrame(votes, columns=["item", "label", "annotator"]), truth


def _message(words, rng):
    telling = rng.choice(words, rng.integers(2, 5), replace=False)
    return " ".join(rng.permutation([*telling, *rng.choice(FILLER, rng.integers(4, 9))]))


def _answer(topic, care, names, rng):
    if rng.random() < care:
        return topic
    likely = CONFUSED.get(topic, topic)
    wrong = [name for name in names if name != topic]
    return likely if likely != topic and rng.random() < 0.5 else str(rng.choice(wrong))


def majority_vote(items, votes, seed=0):
    """Return the label most workers gave, a tie decided at random."""
    rng = np.random.default_rng(seed)
    counts = votes.groupby(["item", "label"]).size().unstack(fill_value=0).loc[items["id"]]
    noisy = counts.to_numpy() + rng.random(counts.shape) * 0.5
    return counts.columns.to_numpy()[noisy.argmax(axis=1)]


def write_data(folder):
    """Write the files that the command line takes."""
    items, votes, _ = generate()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    items.to_csv(folder / "messages.csv", index=False)
    votes.to_csv(folder / "votes.csv", index=False)


def main(folder=None):
    """Resolve the scene and print how much of the hidden truth was found."""
    items, votes, truth = generate()
    if folder:
        write_data(folder)
    resolved = disambiguate(items, votes=votes)
    accuracy = float((resolved["label"] == truth).mean())
    print(f"majority vote: {np.mean(majority_vote(items, votes) == truth):.3f}")
    print(f"gmpll:         {accuracy:.3f} of {len(items)} messages")
    sure = ~resolved["review"]
    among_sure = np.mean(resolved["label"][sure] == truth[sure])
    print(f"               {among_sure:.3f} of the {sure.sum()} that are not flagged for review")
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
