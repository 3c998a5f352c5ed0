"""Fitting a density that is a kernel sum of squares in the MMD geometry (SOS 9, 12-14, 16).

    minimise ‖P(v - w_p)‖² + λ Tr(B K̃)   over   p(x) = k_xᵀ B k_x,  B ≽ 0,  Tr(B W) = 1

with w_p = ∫ p φ dρ the mean embedding of p and v that of the data. P is the projection on the span of the support (SOS
12-14), on a wider span, or the identity: the whole squared MMD of (9), which (16) prints without its square. In
C = R B Rᵀ, W = RᵀR, the constraint is the spectrahedron {C ≽ 0, Tr C = 1}.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, eigvalsh, namespace, norm
from mercer.kernels.integrals import KernelIntegrals
from mercer.kernels.integrals.probes import Probes, SectionProbes
from mercer.linalg.eigen import positive_eigenpairs
from mercer.problems.problem import Problem
from mercer.problems.sum_of_squares_enclosures import Sample, SquaresEnclosures, WholeEnclosures

TRACE = "a trace constraint"
_TRUNCATION = 1e-10


class Spans(NamedTuple):
    """The two subspaces that are part of the programme, by bases: T of shape (m, s) and Ω of shape (m, q)."""

    basis: Array
    whitening: Array


@dataclass(frozen=True)
class Comparison:
    """How the embeddings of densities are compared with the sample's.

    f₀(B) = ‖Ωᵀu(B) - b‖² - 2⟨V, B⟩ + c with u(B)_j = ⟨ψ_j, w_p⟩: the squared distance on the span of the probes ψ with
    b = Ωᵀ⟨ψ, v⟩, V = 0 and c = 0; and the whole one with b = 0, ⟨V, B⟩ = ⟨v, w_p⟩ and c = ‖v‖², where the probes span
    w_p (SOS 9).

    Attributes
    ----------
    probes : Probes
        ψ, N functions.
    whitening : array of shape (N, q)
        Ω: the functions Σ_j Ω_jl ψ_j are orthonormal.
    goal : array of shape (q,)
        b.
    potential : array of shape (m, m), optional
        V.
    offset : float
        c.
    """

    probes: Probes
    whitening: Array
    goal: Array
    potential: Array | None = None
    offset: float = 0.0

    @classmethod
    def on_span(cls, probes: Probes, whitening: Array, target: Array) -> Comparison:
        """On the span of the probes, with ⟨ψ_j, v⟩ of shape (N,) given."""
        return cls(probes, whitening, whitening.T @ target)

    @classmethod
    def whole(cls, probes: Probes, whitening: Array, potential: Array, squared_norm: float) -> Comparison:
        """Of the whole embeddings, whose densities' lie in the span of the probes, with V and ‖v‖² given."""
        goal = namespace(whitening).zeros_like(whitening[0])
        return cls(probes, whitening, goal, potential, squared_norm)

    @property
    def points(self) -> Array | None:
        """Where the probes are sections that are part of the programme; None for those of the support, and for all."""
        return self.probes.points if isinstance(self.probes, SectionProbes) and not self.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the distance is projected away."""
        return self.potential is not None


@final
class SumOfSquares(Problem):
    """The programme in C on the spectrahedron.

    W = QDQᵀ and K̃ = VΛVᵀ are cut off at eigenvalues below ``truncation`` times the largest. With T = QD^{-1/2} the
    functions e_j = Σ_p T_pj k(·, z_p) are orthonormal in L²(ρ), B = T C Tᵀ, and Tr(BW) = Tr C = 1 without any
    renormalisation (SOS Remark 1 adds a jitter to W instead and divides by 1 - jitter·Tr B afterwards). In orthonormal
    coordinates Ω of the span of the probes, Λ^{-1/2}Vᵀ for that of the support, the objective is

        f(C) = ‖A(C) - b‖² + ⟨C, R⟩ + c,   A(C) = Ωᵀu(T C Tᵀ),   R = λ TᵀK̃T - 2 TᵀVT

    with b, V and c of the :class:`Comparison`. Since p is a density, ‖A(C)‖ ≤ ‖w_p‖ ≤ sup √k(x, x) on the
    spectrahedron: the curvature of f does not grow with the condition of W.

    Parameters
    ----------
    integrals : KernelIntegrals
        W, U and its adjoint, scaled.
    gram : array of shape (m, m)
        K̃.
    target : array of shape (m,)
        ⟨v, φ(z_r)⟩ = Σ_i a_i k(x_i, z_r).
    regularization : float, default=0.0
        λ ≥ 0, of the density's own B, not the scaled one.
    truncation : float, default=1e-10
        Where the spectra of W and K̃ end. Below, what rounding leaves of U(B) is amplified: entries of B grow like
        1/truncation, and the errors of U are divided by its root once more.
    sample : Sample, optional
        The data behind ``target``, for the certificate; left out, the target's entries are the programme's own.
    spans : Spans, optional
        T and Ω of an earlier programme with the same support, instead of those that the spectra give.
    comparison : Comparison, optional
        What is minimised; left out, the distance on the span of the support.

    Attributes
    ----------
    size, dimension : int
        m, and the order of C.
    constant : float
        The objective of no density at all: the squared norm of v, projected as it is compared.
    scale : float
        The size of the objective, for tolerances.
    on_support : Comparison
        The distance on the span of the support, whatever is minimised.

    Notes
    -----
    Cost: O(m³) once; the residual and the gradient are some products of m × m matrices each, of N × m and m × m ones
    with N probes. Memory: O(m²), and O(N² + N m).
    """

    def __init__(
        self,
        integrals: KernelIntegrals,
        gram: Array,
        target: Array,
        *,
        regularization: float = 0.0,
        truncation: float = _TRUNCATION,
        sample: Sample | None = None,
        spans: Spans | None = None,
        comparison: Comparison | None = None,
    ) -> None:
        self.integrals = integrals
        self.size = gram.shape[0]
        self.regularization = regularization
        self.spans = spanned(integrals, gram, truncation) if spans is None else spans
        self.basis = self.spans.basis  # T
        self.dimension = int(self.basis.shape[1])
        self.on_support = Comparison.on_span(SectionProbes(integrals), self.spans.whitening, target)
        self.comparison = self.on_support if comparison is None else comparison
        self.whitening, self.goal = self.comparison.whitening, self.comparison.goal  # Ω and b
        self._sample = target if sample is None else sample  # of the whole distance, a sample
        strength = float(np.exp(np.log(regularization) - integrals.log_scale)) if regularization > 0 else 0.0
        self.penalty = _symmetric(strength * (self.basis.T @ gram @ self.basis))
        self.linear = self.penalty  # R
        if self.comparison.potential is not None:
            self.linear = self.penalty - 2.0 * _symmetric(self.basis.T @ self.comparison.potential @ self.basis)

    @property
    def probe_points(self) -> Array | None:
        """Where the probes of the objective are sections that are part of the programme."""
        return self.comparison.points

    @property
    def needs(self) -> frozenset[str]:
        """Tr C = 1."""
        return frozenset({TRACE})

    @cached_property
    def enclosures(self) -> SquaresEnclosures | WholeEnclosures:
        """The programme's numbers with proved errors."""
        if self.comparison.is_whole:
            return WholeEnclosures(self.integrals, self.basis, self._sample, self.regularization)
        probes = self.comparison.probes.enclosures()
        return SquaresEnclosures(self.integrals, self.basis, self.whitening, self._sample, self.regularization, probes)

    @property
    def constant(self) -> float:
        """‖P v‖²."""
        return self.comparison.offset + float(self.goal @ self.goal)

    @cached_property
    def scale(self) -> float:
        """‖P v‖² plus the least eigenvalue of λ TᵀK̃T: the size of the objective, for tolerances."""
        least = eigvalsh(self.penalty, 0, 1)[0] if self.regularization > 0 else 0.0
        return self.constant + max(float(least), 0.0)

    def embed(self, factor: Array, other: Array | None = None) -> Array:
        """A(C) for C = F Fᵀ, or for C = ½(F Gᵀ + G Fᵀ) where another factor is given; both of shape (s, r)."""
        left = self.basis @ factor
        B = left @ (left if other is None else self.basis @ other).T
        return self._embed(B if other is None else (B + B.T) / 2)

    def embed_matrix(self, C: Array) -> Array:
        """A(C) for any symmetric C of order s."""
        return self._embed(self.basis @ C @ self.basis.T)

    def _embed(self, B: Array) -> Array:
        return self.whitening.T @ self.comparison.probes.embed(B)

    def adjoint(self, y: Array) -> Array:
        """A*(y), symmetric of order s."""
        return _symmetric(self.basis.T @ self.comparison.probes.weighted_mass(self.whitening @ y) @ self.basis)

    def residual(self, factor: Array) -> Array:
        """A(C) - b, of C = F Fᵀ."""
        return self.embed(factor) - self.goal

    def squared_distance(self, coefficients: Array) -> float:
        """f without the penalty, for a factor of the scaled B, of shape (m, r)."""
        factor = self.coordinates(coefficients)
        return self.value(factor) - float((factor * (self.penalty @ factor)).sum())

    def distance_on_support(self, coefficients: Array) -> float:
        """‖P_m(v - w_p)‖ for a factor of the scaled B, of shape (m, r)."""
        on = self.on_support
        return norm(on.whitening.T @ on.probes.embed(coefficients @ coefficients.T) - on.goal)

    def value(self, factor: Array, residual: Array | None = None) -> float:
        """f(C) of C = F Fᵀ."""
        residual = self.residual(factor) if residual is None else residual
        return float(residual @ residual) + float((factor * (self.linear @ factor)).sum()) + self.comparison.offset

    def gradient(self, residual: Array) -> Array:
        """∇f(C) = 2 A*(A(C) - b) + R, symmetric of order s."""
        return 2.0 * self.adjoint(residual) + self.linear

    def embed_pairs(self, V: Array) -> Array:
        """A(½(v_i v_jᵀ + v_j v_iᵀ)) for columns i ≤ j of V in the order of ``numpy.triu_indices``, one a column.

        The N × m matrix of v ↦ u(v_i vᵀ) does for all pairs with v_i.
        """
        columns = self.basis @ V
        blocks = [self.comparison.probes.contracted(columns[:, i]) @ columns[:, i:] for i in range(V.shape[1])]
        return self.whitening.T @ namespace(V).concat(blocks, axis=1)

    def tangent(self, factor: Array) -> Tangent:
        """The linear map D ↦ A(½(F Dᵀ + D Fᵀ)) and its transpose, for many products."""
        return Tangent(self, factor)

    def coefficients(self, factor: Array) -> Array:
        """The factor T F of the scaled B, with Tr(B W) = 1 to rounding: B = exp(-log_scale) (TF)(TF)ᵀ."""
        return self.basis @ (factor / norm(factor))

    def coordinates(self, coefficients: Array) -> Array:
        """The F with T F nearest to a factor of the scaled B, of shape (m, r): T has orthogonal columns.

        What T does not span is left out.
        """
        return (self.basis.T @ coefficients) / namespace(coefficients).sum(self.basis**2, axis=0)[:, None]


def _symmetric(M: Array) -> Array:
    return (M + M.T) / 2


def spanned(integrals: KernelIntegrals, gram: Array, truncation: float = _TRUNCATION) -> Spans:
    """QD^{-1/2} and VΛ^{-1/2} of the leading eigenvectors of W and K̃."""
    return Spans(orthonormal_basis(integrals.mass(), truncation), orthonormal_basis(gram, truncation))


def orthonormal_basis(matrix: Array, truncation: float = _TRUNCATION) -> Array:
    """QD^{-1/2} of the leading eigenvectors of W, or of another positive semi-definite matrix."""
    if not bool(namespace(matrix).isfinite(matrix).all()):
        raise ValueError(
            "The integrals of the sections leave the range of double precision: remove rows that are very far out, or "
            "bring the features to a scale near one."
        )
    masses, Q = positive_eigenpairs(matrix, truncation / matrix.shape[0])
    if masses.shape[0] == 0:
        raise ValueError(
            "The kernel's sections have no mass under the reference measure, to double precision: take a reference "
            "nearer to the points, or a wider kernel."
        )
    return Q / namespace(matrix).sqrt(masses)


@final
class Tangent:
    """D ↦ A(½(F Dᵀ + D Fᵀ)) as matrices: r of N × m entries each, N probes, then r N m operations a product."""

    def __init__(self, problem: SumOfSquares, factor: Array) -> None:
        self._problem = problem
        columns = problem.basis @ factor
        self._blocks = [problem.comparison.probes.contracted(column) for column in columns.T]

    def apply(self, D: Array) -> Array:
        """A(½(F Dᵀ + D Fᵀ)), of as many entries as the span has dimensions."""
        columns = self._problem.basis @ D
        total = sum(block @ column for block, column in zip(self._blocks, columns.T, strict=True))
        return self._problem.whitening.T @ total

    def transpose(self, y: Array) -> Array:
        """A*(y) F, of shape (s, r)."""
        weights = self._problem.whitening @ y
        return self._problem.basis.T @ namespace(y).stack([block.T @ weights for block in self._blocks], axis=1)
