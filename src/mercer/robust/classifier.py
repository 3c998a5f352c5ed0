"""The estimator: classification with a convex loss against the worst distribution on candidate pairs (SOS 17)."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_X_y

from mercer.backends.arrays import Array, Labels, is_tensor, namespace, special, taken, to_numpy
from mercer.backends.balls import Ball
from mercer.estimator import Classifier, by_rows
from mercer.problems.losses import HingeLoss, LogisticLoss, Loss
from mercer.robust.candidates import MorePairs
from mercer.robust.machine import RobustMachine
from mercer.robust.shared_words import with_shared_words
from mercer.validation import checked_points, declared, of_labels, one_of, true_or_false


def _share(value: Any, name: str) -> None:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (real and 0 <= value < 1):
        raise ValueError(f"{name}={value!r} must be a number of at least 0 and below 1.")


def _is_logistic(model: Any) -> bool:
    if model.loss != "logistic":
        raise AttributeError(f"loss={model.loss!r} has no probabilities: use loss='logistic', or decision_function.")
    return True


@final
@with_shared_words
class RobustKernelClassifier(Classifier, RobustMachine):
    """Binary classification that prepares for the worst distribution near the sample.

        min_f max_μ  Σ_j μ_j ℓ(y_j f(x_j)) + λ‖f‖²      over weights μ of candidate pairs with MMD(μ, sample) ≤ ε

    with y = ±1. The candidates are the pairs of the sample and what ``candidates`` and ``label_flips`` add. f may be
    any function of the kernel's Hilbert space; there is no intercept. The MMD is that of the kernel k(x, x') of pairs
    with one label, times ``label_similarity`` for two. For more classes wrap it in scikit-learn's
    ``OneVsRestClassifier``.

    Parameters
    ----------
    $KERNEL
    loss : {"logistic", "hinge"}, default="logistic"
        log(1 + exp(-y f)), or the positive part of 1 - y f: logistic regression, or a support vector machine.
    $RADIUS
    regularization : float, default=1e-3
        λ > 0; scikit-learn's C is 1/(2λn).
    candidates : array of shape (m, d), pair of arrays (inputs, labels), or None, default=None
        Pairs besides the sample; inputs alone may have either label.
    label_flips : bool, default=False
        Whether every input may have the other label too.
    label_similarity : float, default=0.0
        From 0 to below 1: the larger, the less a change of label costs.
    $SOLVER

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; f is positive for the second.
    $FUNCTION
    candidate_index_, candidate_targets_, adversary_weights_ : arrays of shape (N,)
        The candidates, by rows of ``inputs_`` and labels, and the worst distribution on them.
    $GAME
    kernel_, sample_weight_ : Kernel and array or None
        With its parameters fixed, and the weights of the fit.
    $RUN

    Examples
    --------
    >>> from mercer import RobustKernelClassifier
    >>> from mercer.datasets import two_moons
    >>> X, y = two_moons(n_points=60, noise=0.1)
    >>> model = RobustKernelClassifier(radius=0.05).fit(X, y)
    >>> model.certificate_.holds(1e-6), bool(model.score(X, y) > 0.9)
    (True, True)
    """

    classes_: Labels
    _checks = declared(
        **RobustMachine._checks,
        loss=one_of("logistic", "hinge"),
        label_flips=true_or_false,
        label_similarity=_share,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        loss: str = "logistic",
        radius: float = 0.1,
        regularization: float = 1e-3,
        candidates: Any = None,
        label_flips: bool = False,
        label_similarity: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 300,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.radius = radius
        self.regularization = regularization
        self.candidates = candidates
        self.label_flips = label_flips
        self.label_similarity = label_similarity
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def decision_function(self, X: Any) -> Array:
        """f at the rows of X, positive for the second of ``classes_``."""
        return self._values(X)

    def predict(self, X: Any) -> Array:
        """The labels of the rows of X."""
        second = to_numpy(self._values(X)) > 0
        return self.classes_[second.astype(int)]

    @available_if(_is_logistic)
    @by_rows
    def predict_proba(self, X: Any) -> Array:
        """The probabilities 1/(1 + exp(±f)) of both labels, of shape (n, 2); of the logistic loss alone."""
        f = self._values(X)
        share = special("expit", f)
        return namespace(f).stack([special("expit", -f), share], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _checked_data(self, X: Any, y: Any, *, fitting: bool, least: int = 2) -> tuple[Any, Array]:
        """Points and labels, which stay NumPy's."""
        with self._arithmetic():
            X = checked_points(self, X, fitting=fitting, least=least)
        plain = to_numpy(y) if is_tensor(y) else y
        _, y = check_X_y(to_numpy(X), plain, dtype=np.float64, estimator=self)
        return X, np.asarray(y)

    def _chosen_loss(self) -> Loss:
        return LogisticLoss() if self.loss == "logistic" else HingeLoss()

    def _of_targets(self, y: Array, weights: Array) -> dict[str, Any]:
        of_labels(check_classification_targets, y)
        classes = np.unique(y)
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {of_labels(type_of_target, y)}: "
                "wrap the model in sklearn.multiclass.OneVsRestClassifier."
            )
        if classes.size < 2:
            raise ValueError(f"y has one class, {classes.tolist()[0]!r}: a classifier needs two.")
        return {"classes_": classes}

    def _coded(self, y: Array) -> Array:
        strange = ~np.isin(y, self.classes_)
        if np.any(strange):
            found = np.asarray(y)[strange].tolist()[0]
            raise ValueError(f"{found!r} is not one of the classes {self.classes_.tolist()!r}.")
        return np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)

    def _shown(self, targets: Array, X: Any) -> Array:
        return self.classes_[(targets > 0).astype(int)]

    def _unit(self, targets: Array, weights: Array) -> float:
        return 1.0

    def _more_pairs(self, X: Any, targets: Array) -> MorePairs:
        given, inputs, labels = self.candidates, X[:0], np.empty(0)
        if isinstance(given, tuple):
            inputs, own = self._given_pair(given, X)
            labels = self._coded(np.asarray(to_numpy(own) if is_tensor(own) else own))
            if labels.shape != (inputs.shape[0],):
                raise ValueError(f"candidates has {inputs.shape[0]} inputs and labels of shape {labels.shape}.")
        elif given is not None:
            inputs = self._given_inputs(given, X)
            inputs = taken(inputs, np.repeat(np.arange(inputs.shape[0]), 2))
            labels = np.tile([1.0, -1.0], inputs.shape[0] // 2)
        if not self.label_flips:
            return MorePairs(inputs, labels)
        return MorePairs(namespace(X).concat([inputs, X, inputs]), np.concatenate([labels, -targets, -labels]))

    def _similarity(self, one: Array, other: Array | None, unit: float) -> Ball:
        other = one if other is None else other
        return Ball(np.where(one[:, None] == other, 1.0, float(self.label_similarity)))
