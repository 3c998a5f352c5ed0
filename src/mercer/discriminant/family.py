"""What the estimators of the Roweis family share: the fit, the projection, and what can be predicted from it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, Labels, like, to_numpy
from mercer.discriminant.class_posterior import ClassPosterior
from mercer.discriminant.fitting import FoundDirections, Sample, find_directions
from mercer.discriminant.labels import Targets, no_targets, read_targets
from mercer.discriminant.least_squares import LeastSquares
from mercer.discriminant.penalty import Mixture
from mercer.discriminant.projection import Projection
from mercer.estimator import FitInput, KernelEstimator, by_rows, keeps_earlier_fit, scored
from mercer.kernels import Kernel, Linear
from mercer.progress import Phases
from mercer.validation import at_least, declared, optional, true_or_false

_WITHOUT_LABELS = 2  # components, where the labels do not say how many there are


def _has_classes(model: Any) -> bool:
    if getattr(model, "_kind", "classes") != "classes":
        raise AttributeError("There are no probabilities: y of the fit was not classes.")
    return True


def _can_predict(model: Any) -> bool:
    if getattr(model, "_kind", "classes") in ("none", "objects"):
        raise AttributeError("Nothing can be predicted: y of the fit was neither classes nor numbers.")
    return True


class RoweisFamily(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """An estimator of the family; a subclass says which one in ``_mixture``."""

    n_components: int | None
    landmarks: Any
    random_state: Any
    components_: Array | None
    eigenvalues_: Array
    regularization_: float
    classes_: Labels
    class_means_: Array
    y_kernel_: Kernel | None
    sample_weight_: Array | None
    _projection: Projection
    _kind: str
    _answer: Any
    _wide_targets: bool
    _sometimes: ClassVar[frozenset[str]] = frozenset({"classes_", "class_means_", "_wide_targets"})
    verbose: bool
    _checks = declared(n_components=optional(at_least(1)), verbose=true_or_false)

    @abstractmethod
    def _mixture(self) -> tuple[float, float]:
        """r₁ and r₂."""

    def _check_targets(self, y: Any) -> None:
        """Refuse targets that a subclass cannot use."""

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RoweisFamily:
        """Find the directions; a row of weight two counts as the same row twice."""
        self._check_parameters()
        r1, r2 = self._mixture()
        if y is None and (r1 or r2):
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        given = self._begin_fit(X, sample_weight=sample_weight)
        phases = Phases("reading the points", shown=bool(self.verbose))
        sample = self._sample(given, y)
        self.kernel_, self.y_kernel_, self.sample_weight_ = given.kernel, sample.targets.kernel, given.weights
        count = self.n_components or self._as_many_as_labels(sample.targets)
        phases.begin("finding the directions")
        found = find_directions(sample, Mixture(r1, r2, count, getattr(self, "smoothing", 0.0)))
        self._store(found, sample)
        return self

    def transform(self, X: Any) -> Array:
        """The coordinates of points along the directions, about the mean of the training points."""
        values = self._coordinates(X)
        return values if self._fitted_like is None else like(values, self._fitted_like)

    @available_if(_can_predict)
    @by_rows
    def predict(self, X: Any) -> Array:
        """The class of largest probability; labels and numbers by linear regression on the coordinates."""
        coordinates = self._coordinates(X)
        if self._kind == "classes":
            return self.classes_[np.argmax(self._answer.scores(coordinates), axis=1)]
        values = self._answer(coordinates)
        if self._kind == "labels":
            return (values > 0.5).astype(int)
        return values if self._wide_targets else values[:, 0]

    @available_if(_has_classes)
    @by_rows
    def predict_proba(self, X: Any) -> Array:
        """The probabilities of ``classes_``: normal distributions about their means with one covariance."""
        coordinates = self._coordinates(X)
        return self._answer.probabilities(coordinates)

    @available_if(_has_classes)
    @by_rows
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities of the classes."""
        coordinates = self._coordinates(X)
        return self._answer.log_probabilities(coordinates)

    @available_if(_can_predict)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The part of the rows whose class or labels are right, or R² of numbers."""
        measure = r2_score if getattr(self, "_kind", None) == "numbers" else accuracy_score
        return scored(measure, y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.required = any(self._mixture())
        except (TypeError, ValueError):
            tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.eigenvalues_.shape[0])

    @staticmethod
    def _default_kernel() -> Kernel:
        """The points themselves."""
        return Linear()

    def _coordinates(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._projection(self._new_points(X))

    def _sample(self, given: FitInput, y: Any) -> Sample:
        shares = np.asarray(to_numpy(given.shares), np.float64)
        if y is None:
            targets = no_targets(shares.size)
        else:
            targets = read_targets(y, getattr(self, "y_kernel", None), shares, given.rng)
            self._check_targets(y)
        regularization = getattr(self, "regularization", None)
        if isinstance(regularization, str) and regularization == "cv" and targets.values is None:
            raise ValueError("regularization='cv' predicts y, which are neither classes nor numbers: pass a number.")
        root = np.sqrt(shares)
        return Sample(given.kernel, given.points, root, targets, self.landmarks, regularization, given.rng)

    @staticmethod
    def _as_many_as_labels(targets: Targets) -> int:
        if targets.kind == "classes":
            return targets.features.shape[1] - 1
        return targets.features.shape[1] if targets.kind == "labels" else _WITHOUT_LABELS

    def _store(self, found: FoundDirections, sample: Sample) -> None:
        targets, count = sample.targets, int(found.values.size)
        if count < (self.n_components or 1):
            raise ValueError(
                f"n_components={self.n_components}, but these points and labels have {count} directions: ask for fewer."
                if count
                else "No direction tells the labels apart: all points are equal, or their means are."
            )
        self.eigenvalues_, self.regularization_ = found.values, found.part
        self._projection, self._kind = found.projection, targets.kind
        self.components_ = found.projection.coefficients.T if found.projection.sections is None else None
        self._answer = None
        if targets.kind == "classes":
            assert targets.classes is not None
            extra = found.penalty * found.lengths
            self._answer = ClassPosterior(found.scaled, sample.root, targets.features, extra)
            self.classes_, self.class_means_ = targets.classes, self._answer.means
        elif targets.values is not None:
            self._answer = LeastSquares(found.scaled, sample.root, targets.values)
            self._wide_targets = targets.wide
