"""What a sparsifier does with a stream: reductions by sparsifiers of its own kind, and what it stores in the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, is_tensor
from mercer.backends.fingerprint import DataSeen, finished, mixed_in
from mercer.certificates.stream import StreamCertificate, certify_stream
from mercer.kernels.integrals.measures import DiscreteMeasure
from mercer.problems import Discrepancy
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.request import Claim, nodes_asked
from mercer.quadrature.sample import discrepancy_kernel, make_problem, make_sample
from mercer.quadrature.selection import heaviest_first
from mercer.quadrature.stream import BLOCK, MeasureStream, Reduced, Reduction
from mercer.solvers import Status
from mercer.validation import is_precomputed

_ONLY_NODES = ("trace_fraction", "alpha", "merge", "max_increase", "max_weight", "ridge", "measure", "penalty")


def require_wishes(model: Any, X: Any) -> None:
    """Refuse wishes that a stream cannot keep to, and rows that are not points of this process."""
    for name in _ONLY_NODES:
        if getattr(model, name) is not None:
            raise ValueError(f"{name} needs all rows at once, and a stream has n_nodes alone: leave {name} out.")
    if model.solver != "auto" or model.reweight is False:
        raise ValueError("A stream is reduced by solver='auto', with the best weights: leave solver and reweight out.")
    if is_precomputed(model.kernel) or is_tensor(X):
        raise TypeError("A stream has points that are NumPy arrays: of a kernel matrix or a tensor use fit.")


def reduction_of(model: Any) -> Reduction:
    """Reductions by the same kind of sparsifier, with the kernel of the stream."""
    kind, kernel = type(model), discrepancy_kernel(model.kernel_, model.discrepancy)

    def reduced(points: Array, weights: Array, n_nodes: int) -> Reduced:
        part = kind(model.kernel_, n_nodes=n_nodes, discrepancy=model.discrepancy, max_iter=model.max_iter)
        part.fit(points, sample_weight=weights)
        return Reduced(part.indices_, part.weights_, math.sqrt(2 * part.certificate_.upper), part.n_columns_)

    def roots(points: Array) -> Array:
        return as_double(kernel.diag(points)) ** 0.5

    return Reduction(reduced, roots)


def grown(model: Any, stream: MeasureStream, X: Array, weights: Array | None) -> MeasureStream:
    """The stream with further rows, their trace and their digits."""
    given = np.ones(X.shape[0]) if weights is None else weights
    trace = stream.trace + float(given @ as_double(model.kernel_.diag(X)))
    digits = stream.digits + mixed_in(X, stream.n_seen * X.shape[1])
    more = stream.grown(X, given, nodes_asked(model), reduction_of(model))
    return MeasureStream(more.summaries, more.n_seen, more.n_columns, trace, digits)


def of_source(model: Any, rows: Any, weights: Array | None) -> MeasureStream:
    """The rows of a source as a stream."""
    stream = MeasureStream()
    for where, block in rows.blocks(BLOCK):
        stream = grown(model, stream, block, None if weights is None else weights[where])
    return stream


def store(model: Any, stream: MeasureStream) -> None:
    """What is known of the rows so far; the rows themselves are gone."""
    model._stream = stream
    model.indices_, points, model.weights_, proof = settled(model, stream)
    digits = finished(stream.digits, (stream.n_seen, points.shape[1]))
    model._data_seen = DataSeen(stream.n_seen, int(points.shape[1]), digits)
    model.certificate_, model.discrepancy_, model.margin_ = proof, proof.discrepancy, proof.margin
    model.kappa_, model.trace_fraction_ = proof.trace, proof.trace * stream.mass / stream.trace
    model.alpha_, model.slacks_, model.reduction_, model.measure_, model.sample_weight_ = 0.0, None, None, None, None
    model.history_, model.status_, model.n_iter_ = (), Status.CONVERGED, 1
    model.n_columns_, model._n_rows, model._claim = proof.n_products, stream.n_seen, Claim(0.0, None, True)
    nodes = np.arange(points.shape[0])
    model._points, model._weights, model._rows = points, model.weights_, nodes
    model._features = NystromFeatures(model.kernel_, points, nodes)
    model.components_, model._n_features_out = model._features.components, int(nodes.size)
    model.__dict__.pop("path_", None)


def settled(model: Any, stream: MeasureStream) -> tuple[Array, Array, Array, StreamCertificate]:
    """Rows, points and weights of the nodes, the heaviest first, and the proof, of the stream as it is."""
    if not stream.summaries:
        raise ValueError("No row of the stream has any weight: there is nothing to stand for.")
    last, spent = stream.collapsed(nodes_asked(model), reduction_of(model))
    mass, values = stream.mass, last.weights / stream.mass
    order = heaviest_first(values, last.points)
    rows, points, values = last.rows[order], last.points[order], values[order]
    trace = float(values @ as_double(model.kernel_.diag(points)))
    proof = certify_stream(last.blocks / mass, last.reductions / mass, trace, stream.n_columns + spent)
    return rows, points, values, proof


def problem_on(model: Any, X: Any) -> Discrepancy:
    """The programme on the nodes of a stream, for all rows of it as the law."""
    law = DiscreteMeasure(X, np.full(int(X.shape[0]), 1 / int(X.shape[0])))
    sample = make_sample(model.components_, model.kernel_)
    return make_problem(model.components_, model.kernel_, sample, discrepancy=model.discrepancy, law=law)
