"""Labels from annotators' votes: the methods of the crowd experiment and the items they meet.

The methods of crowd-kit and CROWDLAB know who voted; where annotators are not named, each column of
votes is taken for one annotator. Our own methods are then given the number of votes instead.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmpll._typing import Integers, Places
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job
from gmpll.candidates import VotedCandidates, candidates_from_votes
from gmpll.datasets import list_datasets
from gmpll.evidence.annotators import aggregate_votes

#: Printed name -> class of crowd-kit, used at its defaults.
_CROWD_KIT = {
    "majority vote": "MajorityVote",
    "Dawid-Skene": "DawidSkene",
    "one-coin Dawid-Skene": "OneCoinDawidSkene",
    "GLAD": "GLAD",
    "MACE": "MACE",
}
_CROWDLAB = "CROWDLAB"
_VOTES_ONLY = "gmpll (votes only)"
#: Methods that find labels from votes, and with the classifier of this library all that there are,
#: with the module that each needs.
AGGREGATIONS = {**dict.fromkeys(_CROWD_KIT, "crowdkit"), _CROWDLAB: "cleanlab", _VOTES_ONLY: ""}
CROWD_METHODS = {**AGGREGATIONS, "gmpll": ""}
#: Less than any difference of probabilities that means something.
_TIES = 1e-9


class Votes(NamedTuple):
    """Annotator ``who[v]`` gave the item in row ``item[v]`` the label ``label[v]``."""

    item: Places  # ascending; every item has a vote
    who: Places
    label: Places
    n_classes: int
    named: bool  # whether ``who`` tells persons apart

    def candidates(self) -> VotedCandidates:
        """Return the votes in the form that classifiers are fitted with."""
        return candidates_from_votes(self.item, self.label, self.who if self.named else None)


def draw_items(job: Job, bunch: Any) -> tuple[Integers, Votes]:
    """Return the rows of a data set that a job is about, and their votes.

    The rows are the first ``job.max_rows`` of ``numpy.random.default_rng(seed).permutation(n)``.
    """
    if bunch.get("votes") is None:
        raise ExperimentError(f"{job.dataset} has no votes of annotators: name a crowd set.")
    rows = np.random.default_rng(job.seed).permutation(len(bunch.data))[: job.max_rows]
    rows = rows[(bunch.votes[rows] >= 0).any(axis=1)]
    return rows, votes_of(job.dataset, bunch, rows)


def votes_of(dataset: str, bunch: Any, rows: Integers) -> Votes:
    """Return the votes on some rows of a data set; every one of them has a vote."""
    votes = bunch.votes[rows]
    item, column = np.nonzero(votes >= 0)
    who = np.unique(column, return_inverse=True)[1]
    label = votes[item, column].astype(np.intp)
    unnamed = {info.name for info in list_datasets() if not info.named_annotators}
    return Votes(item, who, label, len(bunch.target_names), dataset not in unnamed)


class Aggregation:
    """A method that finds labels from votes, and a logistic regression trained on these labels.

    The regression predicts unseen items, about which votes alone say nothing.
    """

    def __init__(self, method: str, random_state: int) -> None:
        self.method, self.random_state = method, random_state

    def fit(self, X: NDArray[Any], votes: Votes) -> Self:
        """Find the labels; CROWDLAB alone looks at the features."""
        if self.method == _CROWDLAB:
            self.labels_ = _crowdlab_labels(X, votes)
        elif self.method == _VOTES_ONLY:
            who = votes.who if votes.named else None
            self.labels_ = aggregate_votes(votes.item, votes.label, who).labels
        else:
            self.labels_ = _crowd_kit_labels(self.method, votes, self.random_state)
        self._X = X
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[np.integer]:
        """Predict the labels of unseen items."""
        learner = one_label_or(_regression(), self.labels_)
        return learner.fit(self._X, self.labels_).predict(X)


def one_label_or(classifier: Any, labels: NDArray[np.integer]) -> Any:
    """Return the classifier, or one that knows a single label where there is no other."""
    return DummyClassifier() if (labels == labels[0]).all() else classifier


def _regression() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def _crowd_kit_labels(method: str, votes: Votes, random_state: int) -> NDArray[np.integer]:
    from crowdkit import aggregation

    model = getattr(aggregation, _CROWD_KIT[method])()
    if hasattr(model, "random_state"):
        model.random_state = random_state
    table = pd.DataFrame({"task": votes.item, "worker": votes.who, "label": votes.label})
    found = model.fit_predict_proba(table).sort_index()
    ties = _TIES * np.random.default_rng(random_state).random(found.shape)
    return found.columns.to_numpy()[(found.to_numpy() + ties).argmax(axis=1)]


def _crowdlab_labels(X: NDArray[Any], votes: Votes) -> NDArray[np.integer]:
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label

    table = np.full((len(X), votes.who.max() + 1), np.nan)
    table[votes.item, votes.who] = votes.label
    majority = get_majority_vote_label(table, verbose=False)
    probabilities = np.zeros((len(X), votes.n_classes))
    probabilities[:, np.unique(majority)] = cross_val_predict(
        _regression(), X, majority, method="predict_proba"
    )
    found = get_label_quality_multiannotator(table, probabilities, verbose=False)
    return found["label_quality"]["consensus_label"].to_numpy()
