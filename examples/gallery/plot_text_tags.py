"""
Texts with several tags
=======================

Every message has the tags of the page that it was found on; one of them is its own. A pipeline
makes features of the words, and the classifier finds the tag.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from gmpll import PartialLabelClassifier

WORDS = {
    "garden": "soil seeds rain roses spade compost leaves water sun pots",
    "kitchen": "oven salt flour butter pan recipe sugar knife water leaves",
    "music": "piano strings concert tune notes rhythm choir records strings pan",
    "travel": "train ticket map hotel luggage border coast water sun rain",
}
FILLERS = ["the", "a", "today", "very", "good", "old", "new", "we", "you", "again", "maybe"]
rng = np.random.default_rng(0)
tags = list(WORDS)
truth = rng.integers(4, size=400)
messages = [
    " ".join([*rng.choice(WORDS[tags[t]].split(), 4), *rng.choice(FILLERS, 6)]) for t in truth
]
# A page has two or three topics.
pages = [{tags[t], *rng.choice(tags, rng.integers(1, 3), replace=False).tolist()} for t in truth]
print(messages[0], sorted(pages[0]))

# %%
# Any classifier of the library fits at the end of a pipeline.

model = make_pipeline(
    TfidfVectorizer(), TruncatedSVD(20, random_state=0), PartialLabelClassifier(random_state=0)
).fit(messages, pages)
classifier = model[-1]
right = classifier.labels_ == np.array(tags)[truth]
print(f"tags found: {right.mean():.3f}")
print(model.predict(["seeds and roses in old soil", "a train ticket and a map"]))

# %%
# How the candidates were shared out: rows are the hidden tags, columns the tags found.

confusion = np.zeros((4, 4), dtype=int)
np.add.at(confusion, (truth, np.searchsorted(classifier.classes_, classifier.labels_)), 1)
figure, ax = plt.subplots(figsize=(4, 3.4), layout="constrained")
ax.imshow(confusion, cmap="Blues")
for i, j in np.ndindex(4, 4):
    ax.text(j, i, confusion[i, j], ha="center", va="center",
            color="white" if confusion[i, j] > 50 else "black")  # fmt: skip
ax.set(xticks=range(4), yticks=range(4), xticklabels=tags, yticklabels=tags,
       xlabel="found", ylabel="hidden")  # fmt: skip
