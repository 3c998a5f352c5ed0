"""Methods kernelised with the linear kernel beside the methods themselves (RKHS section 8.2, Remark 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer.backends.arrays import Array
from mercer.datasets import standardized, wine
from mercer.embedding import KernelPCA
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Linear
from mercer.plots import new_figure, plot_points

_EQUAL = 1e-6  # 1 - correlation of two coordinates that are the same but for rounding


@dataclass(frozen=True)
class LinearKernelMethods(Experiment):
    """Projections of one sample by principal components and by Fisher's discriminants, plain and kernelised."""

    labels: Array
    penalty: float  #: of the discriminants that are regularised
    projections: dict[str, Array]  #: by method, two coordinates of the sample

    def apart(self, one: str, other: str) -> float:
        """How far two projections are from being equal up to signs and scales: the largest 1 - correlation."""
        return max(
            1 - abs(float(np.corrcoef(x, y)[0, 1]))
            for x, y in zip(self.projections[one].T, self.projections[other].T, strict=True)
        )

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The kernel trick leaves a method as it is, as the remark says; so does the representation of its solution."""
        return (
            self._of("PCA", "kernel PCA", "the kernel trick", "equivalent"),
            self._of("FDA", "kernel FDA", "representation", "not equivalent"),
            self._of("penalised FDA", "kernel FDA, penalty on the norm", "representation", "not equivalent"),
            self._of("penalised FDA", "kernel FDA, penalty on the coefficients", "representation", "not equivalent"),
        )

    def _of(self, plain: str, kernelised: str, way: str, paper: str) -> Comparison:
        apart = self.apart(plain, kernelised)
        same = apart < _EQUAL
        why = (
            "directions Φ(X)α are all that matter to the criterion, which is the same: what makes kernel FDA another "
            "method is where a penalty is put"
        )
        return claim(
            f"{plain} and {kernelised}, linear kernel, by {way}",
            paper,
            f"1 - correlation {apart:.0e}",
            same == (paper == "equivalent"),
            why if paper != "equivalent" and same else "",
        )

    def figure(self) -> Any:
        """The projections by discriminants."""
        shown = [name for name in self.projections if "FDA" in name]
        figure, axes = new_figure(len(shown), panel_inches=3.4)
        turned = self.projections["penalised FDA"]
        for ax, name in zip(axes, shown, strict=True):
            points = self.projections[name]
            points = points / points.std(axis=0) * np.sign(np.sum(points * turned, axis=0))
            plot_points(ax, points, self.labels, title=name.replace(", ", ",\n"))
            ax.title.set_fontsize(10)
        return figure


@experiment("rkhs-remark9", place=8.2, seconds=1)
def linear_kernel_methods(penalty: float = 10.0) -> LinearKernelMethods:
    """PCA and Fisher's discriminants kernelised with the linear kernel (RKHS Remark 9).

    The sample is the wine data, standardised: 178 points of three classes.

    Parameters
    ----------
    penalty : float, default=10.0
        ε of the penalised discriminants: S_W + εI, N + εK and N + εI.
    """
    X, labels = wine()
    X = standardized(X)
    K, n = X @ X.T, len(X)
    fisher = LinearDiscriminantAnalysis()
    pulled = KernelPCA(Linear(), n_components=X.shape[1], random_state=0).fit(X).embedding_  # all that Φ(X)α can reach
    projections = {
        "PCA": PCA(2).fit_transform(X),
        "kernel PCA": pulled[:, :2],
        "FDA": fisher.fit(X, labels).transform(X),
        "kernel FDA": fisher.fit(pulled, labels).transform(pulled),
        "penalised FDA": discriminants(X.T, labels, penalty * np.eye(X.shape[1])),
        "kernel FDA, penalty on the norm": discriminants(K, labels, penalty * K + 1e-9 * np.eye(n)),
        "kernel FDA, penalty on the coefficients": discriminants(K, labels, penalty * np.eye(n)),
    }
    return LinearKernelMethods(labels, penalty, projections)


def discriminants(data: Array, labels: Array, penalty: Array) -> Array:
    """Coordinates of a sample along the directions of largest scatter between classes over that within, penalised.

    With the points as columns of ``data`` this is Fisher's method; with a kernel matrix in their place, Mika's.
    """
    classes = [data[:, labels == label] for label in np.unique(labels)]
    means = np.column_stack([part.mean(axis=1) for part in classes]) - data.mean(axis=1)[:, None]
    between = means * [part.shape[1] for part in classes] @ means.T
    within = sum((part - part.mean(axis=1)[:, None]) @ (part - part.mean(axis=1)[:, None]).T for part in classes)
    directions = eigh(between, within + penalty)[1][:, ::-1][:, : len(classes) - 1]
    return np.asarray((data - data.mean(axis=1)[:, None]).T @ directions)
