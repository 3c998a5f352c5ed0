"""What a sparsifier does with a stream: reductions by sparsifiers of its own kind, and what it stores in the end."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, dtype_name, is_source, is_tensor
from mercer.backends.fingerprint import DataSeen, finished, mixed_in
from mercer.backends.rounding import UNIT
from mercer.certificates.stream import StreamCertificate, certify_stream
from mercer.journal import entry, without_journal
from mercer.kernels.integrals.measures import DiscreteMeasure
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.request import Claim, nodes_asked
from mercer.quadrature.sample import (
    discrepancy_kernel,
    make_problem,
    make_sample,
    require_nonnegative,
    require_semidefinite,
)
from mercer.quadrature.selection import heaviest_first
from mercer.quadrature.stream import BLOCK, MeasureStream, Reduced, Reduction, Summary, Waiting
from mercer.solvers import Status
from mercer.validation import checked_weights, is_precomputed

SETTLED = frozenset(
    {
        "indices_",
        "weights_",
        "certificate_",
        "discrepancy_",
        "margin_",
        "kappa_",
        "trace_fraction_",
        "alpha_",
        "slacks_",
        "reduction_",
        "measure_",
        "sample_weight_",
        "history_",
        "status_",
        "n_iter_",
        "n_columns_",
        "components_",
        "_data_seen",
        "_n_rows",
        "_claim",
        "_points",
        "_weights",
        "_rows",
        "_features",
        "_n_features_out",
    }
)
_DIVISIONS = 4.0  # roundings of a weight that is divided by the mass of the stream
_ONLY_NODES = ("trace_fraction", "alpha", "merge", "max_increase", "max_weight", "ridge", "measure", "penalty")


def require_wishes(model: Any, X: Any) -> None:
    """Refuse wishes that a stream cannot keep to, and rows that are not points of this process."""
    for name in _ONLY_NODES:
        if getattr(model, name) is not None:
            raise ValueError(f"{name} needs all rows at once, and a stream has n_nodes alone: leave {name} out.")
    if model.solver != "auto" or model.reweight is False:
        raise ValueError("A stream is reduced by solver='auto', with the best weights: leave solver and reweight out.")
    if model.evenness > 0 or model.potential == "sampled":
        raise ValueError("A stream is reduced with all pairs of a block: leave evenness and potential='sampled' out.")
    if is_precomputed(model.kernel) or is_tensor(X):
        raise TypeError("A stream has points that are NumPy arrays: of a kernel matrix or a tensor use fit.")


def begun(model: Any) -> MeasureStream:
    """The stream of a model, or a new one; refused where its distances are not those that the model asks for now."""
    stream: MeasureStream = vars(model).get("_stream") or MeasureStream(model.discrepancy)
    if stream.discrepancy != model.discrepancy:
        raise ValueError(
            f"The stream was begun with discrepancy={stream.discrepancy!r}, and its bound is of that: set it again, or "
            "begin a new model."
        )
    return stream


def its_arithmetic(model: Any) -> AbstractContextManager[Any]:
    """The configuration, with the arithmetic of the first rows: no node is rounded that was none of theirs."""
    stream: MeasureStream | None = vars(model).get("_stream")
    return nullcontext() if stream is None else config_context(dtype=dtype_name(stream.dtype))


def reduction_of(model: Any, stream: MeasureStream) -> Reduction:
    """Reductions by the same kind of sparsifier, with the kernel of the stream."""
    kind, kernel = type(model), discrepancy_kernel(model.kernel_, stream.discrepancy)

    def reduced(points: Array, weights: Array, n_nodes: int) -> Reduced:
        part = kind(model.kernel_, n_nodes=n_nodes, discrepancy=stream.discrepancy, max_iter=model.max_iter)
        with without_journal():  # the stream is the run
            part.fit(points, sample_weight=weights)
        return Reduced(part.indices_, part.weights_, math.sqrt(2 * part.certificate_.upper), part.n_columns_)

    def roots(points: Array) -> Array:
        return as_double(kernel.diag(points)) ** 0.5

    return Reduction(reduced, roots)


def require_kernel(model: Any, X: Any) -> None:
    """Refuse at once a kernel that no sparsifier takes: rows are reduced much later than they are given."""
    require_semidefinite(model.kernel_)
    require_nonnegative(GramOperator(discrepancy_kernel(model.kernel_, model.discrepancy), X[:1]), model.kernel_)


def checked_portion(stream: MeasureStream, X: Any, weights: Any) -> Array | None:
    """The weights of further rows, which may all be zero if others are there."""
    if weights is None:
        return None
    return checked_weights(weights, X.shape[0], "sample_weight", may_vanish=stream.heaviest > 0)


def grown(model: Any, stream: MeasureStream, X: Any, weights: Array | None) -> MeasureStream:
    """The stream with further rows, their trace and their digits; those of a source are read by blocks."""
    if is_source(X):
        for where, block in X.blocks(BLOCK):
            stream = grown(model, stream, block, None if weights is None else weights[where])
        return stream
    given, stream = stream.in_its_unit(np.ones(X.shape[0]) if weights is None else weights)
    trace = stream.trace + float(given @ _diagonal(model, X))
    digits = stream.digits + mixed_in(X, stream.n_seen * X.shape[1])
    n_nodes = nodes_asked(model)
    more = stream.grown(X, given, n_nodes, reduction_of(model, stream))
    return replace(more, n_nodes=n_nodes, trace=trace, digits=digits)


def _diagonal(model: Any, X: Array) -> Array:
    """k(x, x) of some rows, refused where no number comes of it: a row that waits for its block could spoil that."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = as_double(model.kernel_.diag(X))
        sound = (values >= 0) & (values**2 <= float(np.finfo(X.dtype).max))
    if not sound.all():
        row = int(np.argmin(sound))
        why = "divide the kernel by a constant" if values[row] > 0 else "the kernel must be positive semi-definite"
        raise ValueError(f"k(x, x) = {values[row]:.3g} at row {row} under {model.kernel_!r}: {why}.")
    return values


def of_source(model: Any, rows: Any, weights: Array | None) -> MeasureStream:
    """The rows of a source as a stream, of which a journal keeps how far it is."""
    stream = MeasureStream(model.discrepancy)
    with entry("stream") as kept:
        if kept.state is not None:
            stream = _from_plain(kept.state)
        for where, block in rows.blocks(BLOCK):
            if where.start < stream.n_seen:
                continue
            stream = grown(model, stream, block, None if weights is None else weights[where])
            kept.offer(partial(_plain, stream))
    return stream


def _plain(stream: MeasureStream) -> tuple[Any, ...]:
    """A stream as a journal keeps it, in plain tuples."""
    summaries = tuple(tuple(vars(each).values()) for each in stream.summaries)
    return *tuple(vars(stream).values())[:-2], summaries, tuple(map(tuple, stream.waiting))


def _from_plain(state: tuple[Any, ...]) -> MeasureStream:
    *plain, summaries, waiting = state
    parts, rest = tuple(Summary(*each) for each in summaries), tuple(Waiting(*each) for each in waiting)
    return replace(MeasureStream(*plain), summaries=parts, waiting=rest)


def store(model: Any, stream: MeasureStream) -> None:
    """Keep a stream; what was known of it before is forgotten, and found out when it is asked for."""
    for name in (*SETTLED, "_unproved", "path_"):
        model.__dict__.pop(name, None)
    model._stream = stream


def settle(model: Any) -> None:
    """Nodes, weights and their proof, of all rows so far; the rows themselves are gone."""
    stream = model._stream
    with its_arithmetic(model):
        indices, points, weights, proof = settled(model, stream)
        digits, nodes = finished(stream.digits, (stream.n_seen, points.shape[1])), np.arange(points.shape[0])
        features = NystromFeatures(model.kernel_, points, nodes)
    model.__dict__.update(
        indices_=indices,
        weights_=weights,
        certificate_=proof,
        discrepancy_=proof.discrepancy,
        margin_=proof.margin,
        kappa_=proof.trace,
        trace_fraction_=proof.trace * stream.mass / stream.trace,
        alpha_=0.0,
        **dict.fromkeys(("slacks_", "reduction_", "measure_", "sample_weight_")),
        history_=(),
        status_=Status.CONVERGED,
        n_iter_=1,
        n_columns_=proof.n_products,
        components_=features.components,
        _data_seen=DataSeen(stream.n_seen, int(points.shape[1]), digits),
        _n_rows=stream.n_seen,
        _claim=Claim(0.0, None, True),
        _points=points,
        _weights=weights,
        _rows=nodes,
        _features=features,
        _n_features_out=int(nodes.size),
    )


def settled(model: Any, stream: MeasureStream) -> tuple[Array, Array, Array, StreamCertificate]:
    """Rows, points and weights of the nodes, the heaviest first, and the proof, of the stream as it is."""
    last, spent = stream.collapsed(stream.n_nodes, reduction_of(model, stream))
    mass, values = stream.mass, last.weights / stream.mass
    order = heaviest_first(values, last.points)
    rows, points, values = last.rows[order], last.points[order], values[order]
    trace = float(values @ as_double(model.kernel_.diag(points)))
    roots = as_double(discrepancy_kernel(model.kernel_, stream.discrepancy).diag(points)) ** 0.5
    roundings = _DIVISIONS + last.level  # a sum of masses at each
    reductions = last.reductions / mass + roundings * UNIT * float(values @ roots)
    proof = certify_stream(last.blocks / mass, reductions, trace, stream.n_columns + spent)
    return rows, points, values, proof


def problem_on(model: Any, X: Any) -> Discrepancy:
    """The programme on the nodes of a stream, for all rows of it as the law."""
    law = DiscreteMeasure(X, np.full(int(X.shape[0]), 1 / int(X.shape[0])))
    sample = make_sample(model.components_, model.kernel_)
    return make_problem(model.components_, model.kernel_, sample, discrepancy=model.discrepancy, law=law)
