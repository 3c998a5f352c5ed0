"""The certificate of a sparse measure, recomputed from its nodes and weights, its kernel and the data alone.

What a person reads of a model, or predicts with, must be what is certified: each of these is computed anew as well, and
a model that says otherwise is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, double, dtype_name, is_sparse_tensor, like, namespace
from mercer.backends.fingerprint import fingerprint
from mercer.backends.ordering import among, appended, place_of
from mercer.certificates import Certificate, MeasureCertificate, certify_measure
from mercer.certificates.sampled_level import widened
from mercer.kernels.base import spelled
from mercer.kernels.checks import checked_nodes
from mercer.kernels.integrals.given_measure import same_measure
from mercer.problems import Discrepancy
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.path import QuadraturePath
from mercer.quadrature.sample import Sample, make_problem, make_sample, read_law
from mercer.quadrature.sampled import Potential
from mercer.quadrature.sparsifier import QuadratureSparsifier
from mercer.quadrature.streaming import its_arithmetic, problem_on
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.measure.elimination import EliminationSequence
from mercer.solvers.measure.merging import MergeSequence
from mercer.validation import checked_points, checked_weights, require_rows

_STORED_NUMBER = 1e-9  # of a stored number: what rounding may change of it
_OF_SAMPLE = 1e-12  # of D(0), α₀ or dᵀω: what rounding may change of a number that is a difference
_FEATURES = {"float32": 1e-3, "float64": 1e-6}  # of √λ₁: small eigenvalues of K_II are known to few digits
_BOUNDS = 1e-6  # of the objective: what rounding may change of a bound
_KINKS = 4


def verify_quadrature(model: QuadratureSparsifier, X: Any) -> Certificate:
    """Certify a fitted sparsifier again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. Sω is computed anew: one product with the squared kernel, in double precision.
    """
    check_is_fitted(model)
    if hasattr(model, "_stream"):
        return _verify_stream(model, X)
    with config_context(dtype=dtype_name(model._points.dtype)):
        X = checked_points(model, X, fitting=False)
    require_rows(X, model._n_rows)
    law = read_law(model.measure, model.kernel_, X, model.sample_weight_)
    sample = make_sample(X, model.kernel_, model.sample_weight_, model.penalty)
    if not same_measure(model.measure_, law):
        raise _damaged("measure_", "another", "the one of its parameter measure")
    places, weights = _measure(model, sample)
    _check_sample(model, X, sample)
    options = {"discrepancy": model.discrepancy, "max_weight": model.max_weight, "ridge": model.ridge, "law": law}
    sampled = isinstance(model.certificate_, MeasureCertificate) and model.certificate_.level_width > 0
    problem = make_problem(X, model.kernel_, sample, **options, dtype=double(weights), without_pass=sampled)
    level = None
    if sampled:
        potential = Potential(problem, sample)
        exact = potential.exact_on(places)
        level = potential.level(exact, places, weights)
        problem = potential.at_level(exact, level)
    if (weights > problem.caps[places] * (1 + _STORED_NUMBER)).any():
        raise ValueError("The model has a weight above max_weight: it is damaged.")
    claim = model._claim
    if claim.kappa is not None:
        claim = claim._replace(kappa=problem.trace(places, weights))
    proof = certify_measure(problem, places, weights, **claim._asdict())
    proof = proof if level is None else widened(proof, level)
    _check_numbers(model, proof, problem)
    _check_slacks(model, problem, places, weights)
    _check_features(model, X)
    _check_record(model, problem, sample)
    _check_bounds(model.certificate_, proof, problem.constant)
    return proof


def _verify_stream(model: QuadratureSparsifier, X: Any) -> Certificate:
    """Certify the nodes of a stream against all of its rows, which are at hand again: every pair of them is looked at.

    A stream whose rows had weights is refused, for a model does not keep them.
    """
    if not model._stream.is_even:
        raise ValueError("The rows of the stream had weights, which the model does not keep: nothing can be verified.")
    with its_arithmetic(model):
        X = checked_points(model, X, fitting=False)
    require_rows(X, model._n_rows)
    if fingerprint(X) != model._data_seen.fingerprint:
        raise ValueError("X is not the stream that the model was fitted to: pass all of its rows in their order.")
    nodes = checked_nodes(model.indices_, model._n_rows)
    if not np.array_equal(X[nodes], model.components_):
        raise _damaged("components_", "another set of points", "those of the nodes")
    weights = checked_weights(model.weights_, nodes.size, "the weights of the model")
    problem = problem_on(model, X)
    proof = certify_measure(problem, np.arange(nodes.size), weights, **model._claim._asdict())
    if proof.discrepancy > model.certificate_.upper * (1 + _STORED_NUMBER) + proof.unresolved:
        raise _damaged("certificate_.upper", f"{model.certificate_.upper:.9g}", f"{proof.discrepancy:.9g}")
    return proof


def _damaged(what: str, said: Any, found: Any) -> ValueError:
    return ValueError(
        f"The model's {what} is {said}, but its nodes and weights, its kernel and X give {found}: the model was "
        "changed after its fit, or X is not the data of it."
    )


def _measure(model: QuadratureSparsifier, sample: Sample) -> tuple[Array, Array]:
    """The places of the nodes among the points of the sample, and their weights."""
    nodes = checked_nodes(model.indices_, model._n_rows, sample.rows)
    places, count = place_of(nodes, sample.rows), int(sample.rows.shape[0])
    if not (places < count).all() or not (sample.rows[places] == nodes).all():
        raise ValueError("The model has nodes that X does not: pass the data of the fit, its rows in the same order.")
    weights = checked_weights(model.weights_, int(nodes.shape[0]), "the weights of the model", reference=sample.weights)
    if (weights == 0).any():
        raise ValueError("The model has a node without weight: it is damaged.")
    return places, weights


def _check_sample(model: QuadratureSparsifier, X: Any, sample: Sample) -> None:
    """What ``witness`` and ``eigenpairs`` use: the points of the sample and their weights."""
    if _differ(model._rows, sample.rows):
        raise _damaged("set of points", f"{model._rows.shape[0]} rows", f"{sample.rows.shape[0]} others")
    kept = like(model._weights, sample.weights)
    if kept.shape != sample.weights.shape or not (abs(kept - sample.weights) <= 1e-12 * sample.weights).all():
        raise _damaged("measure of the sample", "another", "weights that differ from it")
    if _differ(model._points, sample.points(X, model.kernel_)):
        raise _damaged("sample", "another", "points that differ from it")


def _differ(a: Any, b: Any) -> bool:
    if hasattr(a, "toarray") or hasattr(b, "toarray"):
        return a.shape != b.shape or abs(a - b).max() != 0
    if is_sparse_tensor(b):
        return a.shape != b.shape or bool((a.to_sparse_coo() - b.to_sparse_coo()).coalesce().values().any())
    a = like(a, b)
    return a.shape != b.shape or not bool((a == b).all())


def _check_numbers(model: QuadratureSparsifier, proof: MeasureCertificate, problem: Discrepancy) -> None:
    """``discrepancy_``, ``kappa_``, ``trace_fraction_``, ``alpha_`` and ``margin_``."""
    found = {
        "discrepancy_": (proof.discrepancy, problem.constant),
        "kappa_": (proof.trace, problem.total),
        "trace_fraction_": (proof.trace / problem.total, 1.0),
        "alpha_": (proof.multiplier, problem.largest_alpha),
        "margin_": (proof.margin, problem.constant),
    }
    for name, (true, scale) in found.items():
        said = getattr(model, name)
        if not abs(said - true) <= _STORED_NUMBER * abs(true) + _OF_SAMPLE * scale:
            raise _damaged(name, f"{said:.9g}", f"{true:.9g}")


def _check_slacks(model: QuadratureSparsifier, problem: Discrepancy, places: Array, weights: Array) -> None:
    """``slacks_``, to what rounding makes of differences of products."""
    said, soft = model.slacks_, model.max_weight is not None or model.ridge is not None
    if said is None or not soft:
        if soft or said is not None:
            raise _damaged("slacks_", "missing, or there without a cap or a ridge", "another")
        return
    found = problem.slacks(places, weights, model.alpha_)
    scale = _STORED_NUMBER * float(problem.distortion.max())
    if said.shape != found.shape or not bool((abs(like(said, found) - found) <= scale).all()):
        raise _damaged("slacks_", "another array", "slacks that differ from it")


def _check_features(model: QuadratureSparsifier, X: Any) -> None:
    """``components_`` and what ``transform`` multiplies by, compared where it matters: K_II times it is K_II^½."""
    kept = model._features
    made = NystromFeatures(model.kernel_, X, model.indices_)
    sections = kept._sections
    for components in (model.components_, kept.components, sections.components):
        if _differ(components, made.components):
            raise _damaged("components_", "another set of points", "those of the nodes")
    same = spelled(sections.kernel) == spelled(model.kernel_) and not _differ(sections.nodes, model.indices_)
    if not same:
        raise _damaged("set of features", "of another kernel or other nodes", f"those of {model.kernel_!r}")
    gram = as_double(made._sections.gram().to_dense())
    xp, roots, allowed = namespace(gram), gram @ made.normalization, _FEATURES[dtype_name(model._points.dtype)]
    allowed *= float(xp.linalg.matrix_norm(roots, ord=2))
    same = tuple(kept.normalization.shape) == tuple(made.normalization.shape)
    if not same or not float(xp.linalg.matrix_norm(gram @ kept.normalization - roots)) <= allowed:
        raise _damaged("normalisation of features", "another", "K_II^(-1/2)")


def _check_record(model: QuadratureSparsifier, problem: Discrepancy, sample: Sample) -> None:
    """``reduction_`` ends at the nodes, but for swaps, and ``path_`` holds solutions."""
    sequence = model.reduction_
    if isinstance(sequence, MergeSequence):
        left = sequence.at()[0]
        if not among(model.indices_, left).all():
            raise _damaged("reduction_", "one that ends at other nodes", "those of the model")
    if isinstance(sequence, EliminationSequence) and sequence.removed.shape[0] + 1 != sequence.values.shape[0]:
        raise _damaged("reduction_", "not a sequence of its own length", "one value after each step")
    path = getattr(model, "path_", None)
    if path is not None:
        _check_path(path, problem, sample)


def _check_path(path: QuadraturePath, problem: Discrepancy, sample: Sample) -> None:
    """Solve the programme anew at some kinks that rounding did not put out of order."""
    kinks = path._kinks
    mine = (path.alphas, path.kappas, path.discrepancies, path.n_nodes)
    if any(_differ(a, b) for a, b in zip(mine, (kinks.alphas, kinks.kappas, kinks.values, kinks.n_nodes), strict=True)):
        raise _damaged("path_", "not that of its kinks", "another")
    for k in np.unique(np.linspace(0, min(kinks.n_in_order, len(path)) - 1, _KINKS).astype(int)):
        nodes = appended(*kinks.sets_after(int(k)))
        values = solve_on(problem.regularised(float(kinks.alphas[k])), nodes)
        kappa = problem.trace(nodes, values)
        discrepancy = problem.value(nodes, values)
        said = float(kinks.kappas[k])
        off = abs(kappa - said) > 1e-5 * problem.total
        if off or abs(discrepancy - float(kinks.values[k])) > 1e-5 * problem.constant:
            raise _damaged(f"path_ at α = {float(kinks.alphas[k]):.6g}", f"ϰ = {said:.6g}", f"ϰ = {kappa:.6g}")


def _check_bounds(said: Certificate, proof: Certificate, constant: float) -> None:
    """The bounds that the fit left behind are those of the proof, but for rounding."""
    allowed = _BOUNDS * abs(proof.upper) + _OF_SAMPLE * 10 * constant
    for name in ("lower", "upper"):
        a, b = getattr(said, name), getattr(proof, name)
        if a != b and not abs(a - b) <= allowed:
            raise _damaged(f"certificate_.{name}", f"{a:.9g}", f"{b:.9g}")
