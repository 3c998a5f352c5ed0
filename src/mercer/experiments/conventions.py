"""What the paper's own programme does otherwise than our estimators: it stops early, and draws other eigenvectors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.backends.arrays import Array
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.operators import GramOperator

# What appendix C of PSD22 calls convergence, and what the authors' programme does: 5000 power steps at most.
PAPER_STEPS = 5000


def stopped_power_method(
    kernel: Any,
    X: Any,
    *,
    initial_rank: int = 30,
    tol: float = 1e-9,
    max_iter: int = PAPER_STEPS,
    random_state: Any = 0,
) -> SDPEmbedding:
    """The plain projected power method (PSD22 Algorithm 1), stopped as the authors stop it, converged or not.

    The authors stop when a step moves the factor by less than a tolerance, here the row residual must fall below it.
    The certificate says how far from the optimum the run stopped. Cost: ``max_iter`` products with ``initial_rank``
    columns.
    """
    model = SDPEmbedding(
        kernel,
        solver="power",
        initial_rank=min(initial_rank, len(X)),
        max_iter=max_iter,
        tol=tol,
        residual_tol=tol,
        random_state=random_state,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # to stop early is what is asked here
        return model.fit(X)


def symmetric_coordinates(model: DiffusionMaps) -> Array:
    """The coordinates λᵗu of diffusion maps by the eigenvectors u of the symmetric matrix Ā, as in PSD22 section 1.2.

    Our :class:`DiffusionMaps` gives λᵗψ with ψ = u/v₀, the eigenvectors of the Markov matrix; the two differ by the
    stationary density v₀ = √(m/vol) of each point. The paper draws and classifies u.
    """
    return model.embedding_ * np.sqrt(model.stationary_)[:, None]


def extended_symmetric_coordinates(model: DiffusionMaps, training: Array, new: Array) -> Array:
    """The same coordinates at new points, by the Nyström extension; n kernel evaluations a point."""
    degrees = GramOperator(model.kernel_, new, training).row_sums()
    volume = GramOperator(model.kernel_, training[:1], training).row_sums()[0] / model.stationary_[0]
    return model.transform(new) * np.sqrt(degrees / volume)[:, None]


def in_the_plane(coordinates: Array) -> Array:
    """The first two coordinates; the second is zero where there is only one."""
    return np.pad(coordinates, ((0, 0), (0, 1)))[:, :2]


def proved_gap(model: SDPEmbedding) -> float:
    """The certified relative gap of a model, NaN where none was asked for."""
    return float("nan") if model.certificate_ is None else model.certificate_.relative_gap


def spectrum_text(eigenvalues: Array, count: int = 4) -> str:
    """Eigenvalues in one line, such as ``.963, .017, .007``."""
    return ", ".join(f"{value:.4f}".lstrip("0") for value in eigenvalues[:count])
