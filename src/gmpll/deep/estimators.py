"""The methods as scikit-learn estimators: scaling, choice of the model, training, prediction."""

# Annotations are kept as types: the parameters that the subclasses inherit are read from them.

import copy
import inspect
from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.utils import check_random_state
from torch import Tensor, nn

from gmpll._columns import check_same_labels, sets_of_known_labels, unique_labels
from gmpll._parameters import Count, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import Integral, Interval, Real, StrOptions, fit_context
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, ProbabilityMixin
from gmpll.candidates import as_candidates
from gmpll.deep.matching import MatchingTargets
from gmpll.deep.models import build_module
from gmpll.deep.objectives import (
    Activation,
    Leverage,
    Objective,
    Purification,
    WeightedCandidates,
    posterior,
)
from gmpll.deep.pico import PrototypeContrast
from gmpll.deep.trainer import SCHEDULES, Trainer, seeded
from gmpll.graph.views import Scaling
from gmpll.metrics import chance_of_covering, row_lifts

__all__ = ["CAVL", "CC", "LWS", "POP", "PRODEN", "RC", "DeepGMPLL", "PartialLabelNetwork", "PiCO"]

#: Scaled features are cut here: outliers of tables would blow the logits up.
MAX_SCORE = 10.0
#: The model is chosen by folds over so many rows at most; fewer rows than the minimum are no ground
#: for a choice, and get the linear model.
N_FOLDS, CHOICE_ROWS, MIN_CHOICE_ROWS = 3, 3000, 100
#: Learning rate and weight decay of the linear model and of all others, as their authors' lists
#: of tuned values have them.
LINEAR_TRAINING = {"learning_rate": 1e-2, "weight_decay": 1e-2}
OTHER_TRAINING = {"learning_rate": 1e-3, "weight_decay": 1e-5}
#: Largest seed that is handed to PyTorch.
MAX_SEED = 2**31 - 1

Fraction = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
NotNegativeCount = Annotated[int, Interval(Integral, 0, None, closed="left")]
OptionalCallable = Annotated[Callable[[Tensor], Tensor] | None, None, callable]


@with_parameters
class _Network(ProbabilityMixin, BasePartialLabelClassifier):
    """What the methods share; a method says which objective it trains by.

    Parameters
    ----------
    module : "auto", "linear", "mlp", tuple, torch.nn.Module or callable, default="auto"
        What is trained. ``"mlp"`` has a hidden layer of 500 units. ``"auto"`` takes one of the two:
        that whose predictions of held-out rows have the larger candidate lift
        (:func:`gmpll.metrics.candidate_lift`), which takes no true label. A tuple such as
        ``(300, 300, 300)`` holds the widths of hidden layers, each with batch normalisation after
        its ReLU, as published comparisons on tables have them. A module is copied, never
        trained in place, and returns a score for every label that occurs; a callable gets the
        numbers of features and of these labels and returns a module.
    optimizer : {"adam", "sgd"}, default="adam"
        SGD has momentum 0.9.
    learning_rate, weight_decay : float or "auto", default="auto"
        Of the optimizer; ``"auto"``: 0.01 and 0.01 for the linear model, 1e-3 and 1e-5 for others.
    batch_size : int, default=256
        Rows of a step.
    max_iter : int, default=250
        Epochs.
    schedule : {"constant", "cosine", "exponential", "onecycle"}, default="constant"
        How the learning rate changes.
    early_stopping : bool, default=False
        Whether to stop when the loss of the candidates of held-out rows has not improved for
        ``n_iter_no_change`` epochs, and to go back to the best epoch.
    validation_fraction : float, default=0.1
        Part of the rows that is held out for it.
    n_iter_no_change : int, default=10
        Epochs to wait for an improvement.
    augment : callable, default=None
        Changes a batch of inputs, a tensor, before every step.
    image_shape : tuple of (channels, height, width), default=None
        Rows are images, which the module gets in this shape.
    standardize : bool, default=True
        Whether features are z-scored with the statistics of the training rows and cut at +-10; an
        image as a whole.
    device : str, default="auto"
        Where to train: any name that PyTorch knows; ``"auto"`` is CUDA where there is some.
    verbose : bool, default=False
        Whether to print a line for every epoch.
    random_state : int, RandomState instance or None, default=None
        Order of the rows, start of the weights, and ties. The same seed on the same device gives
        the same model; PyTorch's own random numbers are left as they were.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained module, in the main memory.
    module_name_ : str
        ``"linear"``, ``"mlp"`` (also for widths) or ``"own"``.
    module_lifts_ : dict
        Candidate lift of either model on held-out rows where ``module="auto"`` chose.
    loss_curve_, validation_curve_ : list of float
        Loss of every epoch; held-out loss of the candidates with ``early_stopping``.
    n_iter_, best_iter_ : int
        Epochs made, and the epoch whose weights were kept.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Those of the final model within the candidates.
    """

    module: Annotated[Any, StrOptions({"auto", "linear", "mlp"}), tuple, nn.Module, callable] = (
        field(default="auto", kw_only=False)
    )
    optimizer: Annotated[str, StrOptions({"adam", "sgd"})] = "adam"
    learning_rate: Annotated[str, StrOptions({"auto"})] | Positive = "auto"
    weight_decay: Annotated[str, StrOptions({"auto"})] | NotNegative = "auto"
    batch_size: Count = 256
    max_iter: Count = 250
    schedule: Annotated[str, StrOptions(set(SCHEDULES))] = "constant"
    early_stopping: Switch = False
    validation_fraction: Fraction = 0.1
    n_iter_no_change: Count = 10
    augment: OptionalCallable = None
    image_shape: Annotated[tuple[int, int, int] | None, None, tuple, list] = None
    standardize: Switch = True
    device: Annotated[str, str] = "auto"
    verbose: Switch = False
    random_state: Seed = None

    #: What partial_fit goes on with: trainer, module, objective, optimizer, random numbers.
    _stream: ClassVar[Any] = None
    #: Makes the objective of the parameters that a method has in addition to those above.
    _make_objective: ClassVar[Callable[..., Objective]]

    def _objective(self, seed: int) -> Objective:
        """Return a new objective."""
        shared = inspect.signature(_Network).parameters
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in shared}
        objective = type(self)._make_objective(**own)
        objective.seed = seed
        return objective

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        self.__dict__.pop("_stream", None)
        inputs, candidates = self._first_inputs(X), self._tensor(mask)
        seed = int(rng.randint(MAX_SEED))
        module = self._chosen_module(inputs, candidates, mask, seed)
        trainer, objective = self._trainer(seed, self.module_name_), self._objective(seed)
        history = trainer.train(module, objective, inputs, candidates)
        logits, embeddings = trainer.evaluate(module, inputs)
        with torch.no_grad():
            confidences = posterior(logits.double(), candidates)
            rows = history.rows
            trained = objective.confidences(logits[rows].double(), embeddings[rows])
            confidences[rows] = trained.double()
        self.module_ = module.cpu()
        self.loss_curve_, self.validation_curve_ = history.loss_curve, history.validation_curve
        self.n_iter_, self.best_iter_ = len(history.loss_curve), history.best_iter
        found = np.where(mask, confidences.cpu().numpy(), 0.0)
        return found / found.sum(axis=1, keepdims=True)

    def _scores(self, X: Floats) -> Floats:
        # In double precision a row's answer does not depend on its batch; a user's own module may
        # have no double precision.
        precision = torch.float32 if self.module_name_ == "own" else torch.float64
        module = copy.deepcopy(self.module_).to(self._device, precision)
        logits, _ = Trainer().evaluate(module, self._inputs(X).to(precision))
        return torch.softmax(logits.double(), dim=1).cpu().numpy()

    # Inputs

    def _first_inputs(self, X: Floats) -> Tensor:
        shape = self.image_shape
        if shape is not None and (len(shape) != 3 or int(np.prod(shape)) != X.shape[1]):
            raise ValueError(
                f"image_shape={tuple(shape)} does not fit rows of {X.shape[1]} features: it must "
                "be (channels, height, width), whose product is the number of features."
            )
        if shape is None:
            self._scaling: Any = Scaling(X, standardize=self.standardize)
        else:
            whole = (float(X.mean()), float(X.std()) or 1.0)
            self._scaling = whole if self.standardize else (0.0, 1.0)
        return self._inputs(X)

    def _inputs(self, X: Floats) -> Tensor:
        """Return scaled rows, in single precision, where the module is trained."""
        if self.image_shape is None:
            scaled = self._scaling.transform(X)
        else:
            mean, deviation = self._scaling
            scaled = (X - mean).reshape(len(X), *self.image_shape) / deviation
        limit = MAX_SCORE if self.standardize else float(np.finfo(np.float32).max)
        return self._tensor(np.clip(scaled, -limit, limit).astype(np.float32))

    def _tensor(self, values: Any) -> Tensor:
        return torch.tensor(values, device=self._device)

    @property
    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        device = torch.device(self.device)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device={self.device!r}, but PyTorch finds no CUDA device here.")
        return device

    # Training

    def _trainer(self, seed: int, name: str) -> Trainer:
        settings = {s.name: getattr(self, s.name) for s in fields(Trainer) if s.name != "seed"}
        chosen = LINEAR_TRAINING if name == "linear" else OTHER_TRAINING
        settings |= {name: value for name, value in chosen.items() if settings[name] == "auto"}
        return Trainer(seed=seed, **settings)

    def _build(self, module: Any, inputs: Tensor, n_labels: int, seed: int) -> nn.Module:
        with seeded(seed, inputs.device):
            built = build_module(module, int(np.prod(inputs.shape[1:])), n_labels)
        if isinstance(module, str | tuple) and inputs.ndim > 2:
            built = nn.Sequential(nn.Flatten(), built)
        return built.to(inputs.device)

    def _chosen_module(self, inputs: Tensor, mask: Tensor, sets: Mask, seed: int) -> nn.Module:
        """Build the module; which of the two default ones is decided by held-out candidates."""
        name = self.module
        self.module_lifts_: dict[str, float] = {}
        if isinstance(name, str) and name == "auto":
            name = "linear"
            if len(inputs) >= MIN_CHOICE_ROWS:
                self.module_lifts_ = self._lifts(inputs, mask, sets, seed)
                name = max(self.module_lifts_, key=lambda key: self.module_lifts_[key])
        built_in = "mlp" if isinstance(name, tuple) else "own"
        self.module_name_ = name if isinstance(name, str) else built_in
        return self._build(name, inputs, mask.shape[1], seed)

    def _lifts(self, inputs: Tensor, mask: Tensor, sets: Mask, seed: int) -> dict[str, float]:
        """Return the candidate lift of either default model, trained without the rows it scores."""
        drawn = np.random.RandomState(seed).permutation(len(sets))[:CHOICE_ROWS]
        folds = np.array_split(drawn, N_FOLDS)
        lifts = {}
        for name in ("linear", "mlp"):
            trainer, of_folds = self._trainer(seed, name), []
            trainer.verbose = False
            for fold in folds:
                rows = self._tensor(np.setdiff1d(drawn, fold))
                module = self._build(name, inputs, mask.shape[1], seed)
                trainer.train(module, self._objective(seed), inputs[rows], mask[rows])
                probabilities = posterior(trainer.evaluate(module, inputs[rows])[0], mask[rows])
                prior = probabilities.mean(dim=0).double().cpu().numpy()
                predicted = trainer.evaluate(module, inputs[self._tensor(fold)])[0].argmax(dim=1)
                chance = chance_of_covering(sets[fold].mean(axis=0), prior)
                of_folds.append(row_lifts(sets[fold], predicted.cpu().numpy(), chance).mean())
            lifts[name] = float(np.mean(of_folds))
        return lifts

    # Data larger than the memory

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from one batch of rows, or from all batches of a loader, once.

        No row is remembered: what a method believes of it comes from the model as it is when the
        row arrives. Features are scaled by the statistics of the first batch, which also chooses
        between the default models; the optimizer goes on from batch to batch. The schedule of the
        learning rate, early stopping and POP's strikes belong to epochs of ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or iterable of pairs
            Features; or, without y, batches ``(X, y)`` as a ``torch.utils.data.DataLoader`` gives
            them.
        y : candidate sets, default=None
            In any form that ``fit`` takes.
        classes : array-like of shape (n_classes,), default=None
            All labels, in the first call, unless its y is a matrix with a column for each or has
            them all. The columns of a matrix are these labels.

        Returns
        -------
        self
            ``labels_`` and ``label_confidences_`` are those of the last batch.
        """
        if y is not None:
            return self._learn_batch(X, y, classes)
        for batch in X:
            self._learn_batch(batch[0], batch[1], classes)
        return self

    def _learn_batch(self, X: Any, y: Any, classes: Any) -> Self:
        X, y = (v.numpy(force=True) if isinstance(v, Tensor) else v for v in (X, y))
        first = self._stream is None
        features = self._check_X(X, reset=first)
        if hasattr(self, "classes_"):
            check_same_labels(classes, self.classes_)
        if first:
            self._begin_stream(features, y, classes)
        sets = sets_of_known_labels(y, self.classes_, n_samples=len(features))
        inputs, candidates = self._inputs(features), self._tensor(sets.mask)
        trainer, module, objective, optimizer, rng = self._stream
        module.to(inputs.device)
        for rows in trainer.batches(torch.arange(len(inputs), device=inputs.device)):
            known = None if self.n_iter_ == 0 else trainer.evaluate(module, inputs[rows])[0]
            objective.next_rows(candidates[rows], known)
            with seeded(int(rng.randint(MAX_SEED)), inputs.device):
                module.train()
                numbers = torch.arange(len(rows), device=inputs.device)
                trainer.step(module, objective, inputs[rows], numbers, optimizer)
            self.n_iter_ += 1
        logits, _ = trainer.evaluate(module, inputs)
        module.eval()
        self.module_ = copy.deepcopy(module).cpu()
        self.n_samples_seen_ += len(inputs)
        confidences = posterior(logits.double(), candidates).cpu().numpy()
        return self._with_confidences(confidences, sets.mask, rng)

    def _begin_stream(self, X: Floats, y: Any, classes: Any) -> None:
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(MAX_SEED))
        if hasattr(self, "module_"):  # goes on from what fit has learned
            if not self._seen.all():
                raise ValueError(
                    "The model was fitted on rows without some of its labels, for which it has no "
                    "outputs: begin with partial_fit and name all labels in classes."
                )
            module = copy.deepcopy(self.module_).to(self._device)
            inputs, n_labels = self._inputs(X), len(self.classes_)
        else:
            labels = unique_labels(classes)
            self.classes_ = as_candidates(y).classes if labels is None else labels
            n_labels = len(self.classes_)
            self._library, self._seen = "numpy", np.ones(n_labels, dtype=bool)
            self._priority = rng.permutation(n_labels)
            sets = sets_of_known_labels(y, self.classes_, n_samples=len(X)).mask
            inputs = self._first_inputs(X)
            module = self._chosen_module(inputs, self._tensor(sets), sets, seed)
        trainer, objective = self._trainer(seed, self.module_name_), self._objective(seed)
        every = torch.ones(len(inputs), n_labels, dtype=torch.bool, device=inputs.device)
        with seeded(seed, inputs.device):
            optimizer = trainer.begin(module, objective, inputs, every)
        stream = trainer, module, objective, optimizer, rng
        self.__dict__["_stream"] = stream
        self.n_iter_ = self.n_samples_seen_ = 0


@with_parameters
class PartialLabelNetwork(_Network):
    """A network trained by an objective of your own.

    Parameters
    ----------
    objective : callable
        Returns a new :class:`gmpll.deep.Objective`: its class, for instance.

    Notes
    -----
    An epoch costs a forward and a backward pass over all rows; weights of candidates take m x q
    numbers. A choice of the model costs four more fits on at most 3000 rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gmpll.deep import MatchingTargets, PartialLabelNetwork
    >>> X, species = load_iris(return_X_y=True)
    >>> candidates = [{s, (s + row % 3) % 3} for row, s in enumerate(species)]
    >>> model = PartialLabelNetwork("linear", objective=MatchingTargets, random_state=0)
    >>> model.fit(X, candidates).score(X, species) > 0.8
    True
    """

    objective: Annotated[Any, callable] = Objective

    @staticmethod
    def _make_objective(objective: Callable[[], Any]) -> Objective:
        made = objective()
        if not isinstance(made, Objective):
            raise ValueError(
                f"objective={objective!r} returned {type(made).__name__}: it must return a "
                "gmpll.deep.Objective."
            )
        return made


@with_parameters
class CC(_Network):
    r"""Classifier-consistent learning (CC): the likelihood of the candidate sets.

    .. math:: L = -\frac{1}{m} \sum_i \log \sum_{c \in S_i} p_c(x_i)

    See Also
    --------
    RC, PRODEN : The same likelihood by generalised EM.

    References
    ----------
    .. [1] L. Feng et al., "Provably consistent partial-label learning", NeurIPS 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gmpll.deep import CC
    >>> X, species = load_iris(return_X_y=True)
    >>> candidates = [{s, (s + row % 3) % 3} for row, s in enumerate(species)]
    >>> model = CC("linear", learning_rate=0.05, max_iter=50, random_state=0).fit(X, candidates)
    >>> float((model.labels_ == species).mean()) > 0.9
    True
    """

    _make_objective = Objective


@with_parameters
class RC(_Network):
    r"""Risk-consistent learning (RC): cross-entropy against weights of the candidates.

    .. math:: L = -\frac{1}{m} \sum_i \sum_{c \in S_i} w_{ic} \log p_c(x_i)

    After every step a second pass over the batch sets w to the model's posterior within the
    candidates. The gradient for such weights is that of :class:`CC`: with all rows in one batch
    the two follow the same path, in minibatches RC lags by an epoch.

    References
    ----------
    .. [1] L. Feng et al., "Provably consistent partial-label learning", NeurIPS 2020.

    Examples
    --------
    >>> from gmpll.deep import RC
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> RC("linear", max_iter=50, random_state=0).fit(X, y).labels_
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    """

    _make_objective = partial(WeightedCandidates, second_pass=True)


@with_parameters
class PRODEN(_Network):
    """Progressive identification of true labels (PRODEN).

    The loss of :class:`RC`; the weights are the posterior from the logits before the step, so that
    no second pass is needed.

    References
    ----------
    .. [1] J. Lv et al., "Progressive identification of true labels for partial-label learning",
       ICML 2020.

    Examples
    --------
    >>> from gmpll.deep import PRODEN
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> PRODEN("linear", max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _make_objective = WeightedCandidates


@with_parameters
class LWS(_Network):
    r"""Leveraged weighted loss (LWS).

    .. math:: L = \frac{1}{m} \sum_i \Bigl[ \sum_{c \in S_i} w_{ic}\, \psi(z_{ic})
              + \beta \sum_{c \notin S_i} w_{ic}\, \psi(-z_{ic}) \Bigr], \qquad
              \psi(t) = \frac{1}{1 + e^t}

    with z the logits; the weights are a softmax over the candidates and another one over all other
    labels, from a second pass after every step.

    Parameters
    ----------
    leverage : float, default=1.0
        :math:`\beta`, the weight of the labels that are no candidates. The authors take 1 or 2.
    loss : {"sigmoid", "log"}, default="sigmoid"
        :math:`\psi`, or the logarithmic loss of the softmax in its place.

    Notes
    -----
    The sigmoid loss saturates: with small learning rates and large features nothing moves.

    References
    ----------
    .. [1] H. Wen et al., "Leveraged weighted loss for partial label learning", ICML 2021.

    Examples
    --------
    >>> from gmpll.deep import LWS
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> LWS("linear", max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    leverage: NotNegative = 1.0
    loss: Annotated[str, StrOptions({"sigmoid", "log"})] = "sigmoid"

    @staticmethod
    def _make_objective(leverage: float, loss: str) -> Objective:
        return Leverage(leverage=leverage, kind=loss)


@with_parameters
class CAVL(_Network):
    """Class activation value learning (CAVL).

    Cross-entropy against a single label: the candidate with the largest activation value
    ``|1 - z| z`` of its logit z, from a second pass after every step; at first all candidates count
    alike. Early mistakes are locked in, so that it often trails :class:`PRODEN`.

    Parameters
    ----------
    label_smoothing : float, default=0.0
        Share of the weight that is spread equally over the candidates.
    warmup : int, default=1
        Epochs in which all candidates count alike; 0: until a row is met for the second time.

    References
    ----------
    .. [1] F. Zhang et al., "Exploiting class activation value for partial-label learning",
       ICLR 2022.

    Examples
    --------
    >>> from gmpll.deep import CAVL
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> CAVL("linear", max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    label_smoothing: Share = 0.0
    warmup: NotNegativeCount = 1

    _make_objective = Activation


@with_parameters
class POP(_Network):
    """Progressive purification (POP): :class:`PRODEN` that strikes candidates out for good.

    Parameters
    ----------
    theta : float, default=1e-3
        A candidate is struck if its mean weight is below theta times that of the row's best one.
    increment : float, default=1e-3
        Theta grows by this share when hardly anything was struck, while below ``max_theta``. At
        the published 1e-3 it stays where it is for hundreds of epochs; 0.1 is a real schedule.
    max_theta : float, default=0.4
        Where theta stops growing.
    warmup, window, interval : int, default=20, 5 and 5
        Epochs before the first strike, epochs whose weights are averaged, and epochs between two
        strikes.

    References
    ----------
    .. [1] N. Xu et al., "Progressive purification for instance-dependent partial label learning",
       ICML 2023.

    Examples
    --------
    >>> from gmpll.deep import POP
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> POP("linear", theta=0.1, max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    theta: Share = 1e-3
    increment: NotNegative = 1e-3
    max_theta: Share = 0.4
    warmup: NotNegativeCount = 20
    window: Count = 5
    interval: Count = 5

    _make_objective = Purification


@with_parameters
class PiCO(_Network):
    """Contrastive label disambiguation (PiCO).

    The classifier is trained beside a contrastive loss, in which rows of the same pseudo-label
    belong together, between a view of a row and another view seen by a slowly following copy of
    the network. Prototypes of the labels in that space decide what the classifier is trained on.
    The space is made from what goes into the last linear layer of the module.

    Parameters
    ----------
    embedding : int, default=128
        Dimensions in which rows are contrasted.
    queue : int, default=8192
        Number of earlier keys that a batch is compared with, at most the number of rows.
    key_momentum, prototype_momentum : float, default=0.999 and 0.99
        How slowly the copy of the network and the prototypes move.
    confidence_momentum : tuple of two floats, default=(0.95, 0.8)
        How slowly the targets move, in the first and in the last epoch.
    temperature, contrast_weight : float, default=0.07 and 0.5
        Of the contrastive loss.
    warmup : int, default=1
        Epochs in which a row belongs to its own other view alone, and the targets stay.
    weak, strong : callable, default=None
        Views of a batch, a tensor, for the network and for its copy. None: with ``image_shape``
        crops, flips and changes of brightness, in the strong view rotation, shear and a cut-out as
        well; for tables the row itself and, strong, the row with normal noise.

    References
    ----------
    .. [1] H. Wang et al., "PiCO: Contrastive label disambiguation for partial label learning",
       ICLR 2022.

    Examples
    --------
    >>> from gmpll.deep import PiCO
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> PiCO("linear", max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    embedding: Count = 128
    queue: Count = 8192
    key_momentum: Share = 0.999
    prototype_momentum: Share = 0.99
    confidence_momentum: Annotated[tuple[float, float], tuple, list] = (0.95, 0.8)
    temperature: Positive = 0.07
    contrast_weight: NotNegative = 0.5
    warmup: NotNegativeCount = 1
    weak: OptionalCallable = None
    strong: OptionalCallable = None

    _make_objective = PrototypeContrast


@with_parameters
class DeepGMPLL(_Network):
    """Matching inside training: targets by graph matching on the network's own embeddings.

    See :class:`gmpll.deep.MatchingTargets` for the idea. What goes into the last linear layer of
    the module is the embedding.

    Parameters
    ----------
    interval, n_neighbors, balance, exponent, start_exponent
        See :class:`gmpll.deep.MatchingTargets`; ``exponent=0`` is :class:`PRODEN` after the
        first hundredth of the epochs.

    Examples
    --------
    >>> from gmpll.deep import DeepGMPLL
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> DeepGMPLL("linear", max_iter=50, random_state=0).fit(X, y).predict([[0.2], [4.0]])
    array(['a', 'b'], dtype='<U1')
    """

    interval: Count = 3
    n_neighbors: Count = 20
    balance: NotNegative = 0.5
    exponent: NotNegative = 0.25
    start_exponent: NotNegative = 0.25

    _make_objective = MatchingTargets
