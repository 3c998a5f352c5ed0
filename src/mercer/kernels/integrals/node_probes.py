"""Sections at some nodes of a quadrature as probes: those of all nodes span the embedding of every density."""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array, as_double, namespace
from mercer.kernels.integrals.integral_enclosures import ProbeEnclosures
from mercer.kernels.integrals.probes import Probes
from mercer.kernels.integrals.quadrature import NodeIntegrals


@final
class NodeProbes(Probes):
    """φ(y_j) for N points y, by values at the nodes: w_p = Σ_q w_q p(x_q) φ(x_q).

    Cost: Q N m operations a product at most, Q N memory.
    """

    def __init__(self, integrals: NodeIntegrals, points: Array) -> None:
        self._integrals, self._points = integrals, points
        self._towards = as_double(integrals.kernel(integrals.nodes, points))

    def gram(self) -> Array:
        return as_double(self._integrals.kernel(self._points))

    def embed(self, B: Array) -> Array:
        K, w = self._integrals.values, self._integrals.weights
        return self._towards.T @ (w * namespace(K).einsum("qp,qp->q", K @ B, K))

    def weighted_mass(self, c: Array) -> Array:
        K, w = self._integrals.values, self._integrals.weights
        return (K.T * (w * (self._towards @ c))) @ K

    def contracted(self, c: Array) -> Array:
        K, w = self._integrals.values, self._integrals.weights
        return (self._towards.T * (w * (K @ c))) @ K

    def enclosures(self) -> ProbeEnclosures:
        raise NotImplementedError("The whole distance is proved without its probes.")
