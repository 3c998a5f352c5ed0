"""The estimator: landmarks with optimal weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, double, is_source
from mercer.backends.ordering import place_of
from mercer.certificates import Certificate
from mercer.certificates.measure_definiteness import SquareDefiniteness, prove_square_definite
from mercer.certificates.sampled_level import Level
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit
from mercer.journal import without_journal
from mercer.kernels import Precomputed
from mercer.kernels.integrals.measures import Measure
from mercer.problems import Discrepancy
from mercer.progress import progress_bar
from mercer.quadrature import streaming
from mercer.quadrature.dense_penalties import warn_of_dense_penalty
from mercer.quadrature.eigenpairs import ApproximateEigenpairs, approximate_eigenpairs
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.fit_warnings import warn_of_fit
from mercer.quadrature.path import QuadraturePath
from mercer.quadrature.proof_on_request import ProvedOnRequest, Unproved, at_sampled_level
from mercer.quadrature.request import CHECKS, Choice, Claim, choice_of, is_plain, nodes_asked, refuse_idle
from mercer.quadrature.sample import Sample, make_problem, make_sample, read_law
from mercer.quadrature.sampled import Potential, leaves_out_pass, pays
from mercer.quadrature.selection import Selection, heaviest_first, select, settled
from mercer.quadrature.stream import MeasureStream
from mercer.quadrature.witness import finite_values, witness_values
from mercer.solvers import Iteration, Status
from mercer.solvers.measure.elimination import EliminationSequence
from mercer.solvers.measure.merging import MergeSequence
from mercer.validation import checked_kernel


class QuadratureSparsifier(ProvedOnRequest, ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Choose landmarks, and their weights, that stand for a whole sample.

    Of all measures ν = Σ vᵢ δ(xᵢ) on a few points of the sample μ = Σ ωₖ δ(xₖ), v ≥ 0, the one is found that minimises
    D(v) = ½ ‖T_μ - T_ν‖² = ½ (ω - v)ᵀ S (ω - v), S = K ∘ K, the distance of their integral operators (QUAD 3 to 7). Ask
    for the number of landmarks, the part of the trace they carry, or a penalty. See :doc:`/user_guide/quadrature`.

    Parameters
    ----------
    kernel : Kernel, default=None
        A positive semi-definite kernel; None means ``Gaussian(sigma="median")``.
    trace_fraction : float, default=None
        ϰ/dᵀω, above 0 and at most 1: the constrained programme, dᵀv = ϰ.
    alpha : float, default=None
        α ≥ 0: the regularised programme, D(v) + α dᵀv.
    n_nodes : int, default=None
        So many nodes, at most; 100 if nothing is asked for. With another wish, its solution is reduced to so many.
    solver : str, default="auto"
        ``"auto"`` (for ``n_nodes`` alone a pursuit) or ``"active-set"``, ``"path"`` (the whole regularisation path),
        or, for ``trace_fraction``, ``"exchange"``, ``"exchange-second-order"`` or ``"exchange-plain"``.
    merge : {None, "eliminate", "strong", "weak"}, default=None
        How nodes are taken out: with optimal weights, or by pairwise merging (QUAD 7.2). None means elimination where
        ``n_nodes`` or ``max_increase`` is given, and nothing otherwise.
    max_increase : float, default=None
        Take nodes out until D has grown by this part: 0.05 allows 5 %. With ``n_nodes``, whichever comes first.
    max_weight : float or array of shape (n,), default=None
        An upper bound c of the weight of a node (QUAD 5.5).
    ridge : float, array of shape (n,) or (n, n), or Kernel, default=None
        ρ ≥ 0: the term ½ Σ ρᵢ vᵢ², which evens the weights out; or ½ vᵀΣv for a covariance Σ, positive semi-definite
        and without negative entries, by its matrix or as that of a kernel at the rows of X (QUAD 5.7).
    measure : Box, GaussianMeasure or DiscreteMeasure, default=None
        The law μ that is to be integrated in place of the sample (QUAD 2): the rows of X are candidates for the nodes.
        Measures are brought to mass one, so that a box is its uniform law.
    penalty : array of shape (n,) or callable, default=None
        d > 0, or a function of X that gives it; None means diag K, so that dᵀv is the trace of T_ν.
    discrepancy : {"squared", "mmd"}, default="squared"
        ``"mmd"`` puts S = K in the place of K ∘ K: D(v) is half the squared maximum mean discrepancy of ν and μ (QUAD
        10), and ν a quadrature of functions rather than of operators. The kernel must have no negative values.
    potential : {"auto", "exact", "sampled"}, default="auto"
        How the nodes are chosen: by Sω, which takes every pair of points once, or by an estimate of it from some
        thousand rows. Weights are the best on the nodes either way, and proved. ``"auto"`` takes the estimate where the
        pass would be several times the rest of the work and ``n_nodes`` is given alone; it is made when
        ``certificate_``, ``discrepancy_`` or another number of the proof is first read. ``"sampled"`` never makes it:
        D is estimated, and bounded but for a probability of 1e-6. Small samples get the pass, which is less work then.
    evenness : float, default=0.0
        β ≥ 0, with ``n_nodes`` alone: nodes are chosen as though points weighed ω (Sω)^-β, more of them in thin places,
        for features of rare classes (0.5, say). Weights and D are those of the sample all the same.
    reweight : bool, default=None
        Settle the weights at last for the lowest D on the nodes. None means yes where ``n_nodes`` is given alone.
    tol : float, default=None
        The gap relative to the objective at which a solver stops; None means 1e-6 for exchanges, none for the others.
    max_iter : int, default=None
        At most so many exchanges, kinks of the path, passes of the active set over the sample, or groups of a pursuit.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true return value stops, and ``status_`` says so.
    verbose : bool, default=False
        Log the progress to the logger ``mercer``, and show it for the product Sω.

    Attributes
    ----------
    indices_ : array of int of shape (m,)
        The nodes: rows of X, the heaviest first. Repeated rows are one node, their first row.
    weights_ : array of shape (m,)
        v, their weights. The sample as a whole weighs one.
    components_ : array of shape (m, d)
        The points of the nodes.
    discrepancy_, kappa_, trace_fraction_ : float
        D(v), dᵀv, and its part of dᵀω.
    alpha_, margin_ : float
        The penalty that v is optimal for (QUAD Lemma 3.3), and γ = vᵀS(v - ω).
    slacks_ : array of shape (m,) or None
        Where ``max_weight`` or ``ridge`` is given: ξ, by which the machine of :meth:`witness` gives way at the nodes
        (QUAD 5.4, 5.6); elsewhere it does not, but for a matrix Σ, by (Σv)ₖ.
    certificate_ : MeasureCertificate
        The objective and a lower bound: over all measures, or over those on the same nodes where some were taken out
        or weights settled.
    path_ : QuadraturePath
        Where ``solver="path"``: kinks, nodes, discrepancies, and the solution at any α or ϰ.
    reduction_ : MergeSequence, EliminationSequence or None
        The nodes taken out, in order and as rows of X, and D after each.
    history_, status_, n_iter_ : tuple of Iteration, Status, int
        Objective and bound as the solvers went on, why they ended, and how many steps they took.
    n_columns_ : int
        Columns of S evaluated, beside the product Sω.
    kernel_, sample_weight_, measure_ : Kernel, array of shape (n,) or None, Measure or None
        The kernel with its parameters fixed, the weights of the rows as given to fit, and the law.

    Examples
    --------
    >>> import mercer
    >>> X, _ = mercer.datasets.three_clusters()
    >>> model = mercer.QuadratureSparsifier(mercer.Gaussian(sigma=2.0), n_nodes=12).fit(X)
    >>> model.indices_.size, model.transform(X).shape, bool(model.discrepancy_ < 1e-3)
    (12, (310, 12), True)
    """

    slacks_: Array | None
    path_: QuadraturePath
    reduction_: MergeSequence | EliminationSequence | None
    sample_weight_: Array | None
    components_: Array
    measure_: Measure | None
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    n_columns_: int
    _weights: Array
    _n_rows: int
    _features: NystromFeatures
    _n_features_out: int
    _stream: MeasureStream
    _sometimes: ClassVar[frozenset[str]] = frozenset({"path_", "_stream"})
    _fits_blocks = True

    _checks = CHECKS

    def __init__(
        self,
        kernel: Any = None,
        *,
        trace_fraction: float | None = None,
        alpha: float | None = None,
        n_nodes: int | None = None,
        solver: str = "auto",
        merge: str | None = None,
        max_increase: float | None = None,
        max_weight: Any = None,
        ridge: Any = None,
        measure: Any = None,
        penalty: Any = None,
        discrepancy: str = "squared",
        potential: str = "auto",
        evenness: float = 0.0,
        reweight: bool | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.trace_fraction = trace_fraction
        self.alpha = alpha
        self.n_nodes = n_nodes
        self.solver = solver
        self.merge = merge
        self.max_increase = max_increase
        self.max_weight = max_weight
        self.ridge = ridge
        self.measure = measure
        self.penalty = penalty
        self.discrepancy = discrepancy
        self.potential = potential
        self.evenness = evenness
        self.reweight = reweight
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> QuadratureSparsifier:
        """Find nodes and weights for the rows of X, which may have weights."""
        self.__dict__.pop("_stream", None)  # of an earlier partial_fit
        if is_source(X):
            streaming.require_wishes(self, X)
            given = self._begin_fit(X, sample_weight=sample_weight)
            self.kernel_ = given.kernel
            streaming.require_kernel(self, given.points)
            streaming.store(self, streaming.of_source(self, given.points, given.weights))
            streaming.settle(self)
            return self
        least = 1 if checked_kernel(self.kernel).is_resolved else 2
        given = self._begin_fit(X, sample_weight=sample_weight, least=least)
        X, self.sample_weight_, self.kernel_ = given.points, given.weights, given.kernel
        self.measure_ = read_law(self.measure, self.kernel_, X, given.weights)
        sample = make_sample(X, self.kernel_, given.weights, self.penalty)
        if leaves_out_pass(self, X, int(sample.rows.shape[0])) and self._fitted_without_pass(X, sample):
            return self
        problem = self._problem(X, sample)
        definiteness = prove_square_definite(problem.squared)
        choice = choice_of(self, problem)
        if self.penalty is not None:
            warn_of_dense_penalty(problem, choice)
        selection = select(problem, choice)
        dtype = double(problem.weights)  # of what is proved, and of what a person reads of the measure
        if problem.squared.dtype != dtype:
            n_columns, problem = problem.n_columns, self._problem(X, sample, dtype, "Sω in double precision")
            problem.n_columns = n_columns
            selection = settled(problem, choice, selection)
        choice.require_weight(problem, selection.nodes, selection.values, selection.reduction is not None)
        self._store(X, sample, problem, definiteness, choice, selection)
        return self

    def _fitted_without_pass(self, X: Any, sample: Sample) -> bool:
        """Nodes by an estimate of Sω, weights by its exact values on the nodes; False where too few points differ."""
        problem = self._problem(X, sample, without_pass=True)
        potential, choice = Potential(problem, sample), choice_of(self, problem)
        pool = potential.pool(nodes_asked(self), self.evenness)
        if pool is None:
            return False
        definiteness = prove_square_definite(problem.squared)
        selection = select(pool.problem, choice, pool.start).among(pool.places)
        exact = potential.exact_on(selection.nodes)
        exact.n_columns = pool.problem.n_columns
        selection = settled(exact, choice, selection)
        choice.require_weight(exact, selection.nodes, selection.values, selection.reduction is not None)
        by_points = self.potential == "sampled" and pays(problem.size, nodes_asked(self))
        level: Level | Unproved = Unproved(sample, self.discrepancy, by_points)
        if not is_plain(self, X):  # the proof needs more of the programme than is kept
            exact, level = at_sampled_level(potential, selection.nodes, selection.values)
        self._store(X, sample, exact, definiteness, choice, selection, level)
        return True

    @keeps_earlier_fit
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> QuadratureSparsifier:
        """Take further rows of a stream, and stand for all rows so far; they need not be kept.

        The bandwidth is fixed from the first rows given, so that these should be some thousand. Rows become measures on
        twice the nodes asked for, 8192 at a time whatever portions they come in, and measures are merged and reduced as
        a binary tree. Nodes, weights and their proof are made when an attribute is read, from the measures and the
        fewer than 8192 rows that wait, at the cost of a fit to so many: read them when they are needed, not after every
        call. ``certificate_`` bounds the discrepancy from all rows by the triangle inequality: it is far above what
        :func:`mercer.verify` finds with the rows at hand, but for streams of less than a block. ``indices_`` counts the
        rows of the stream. Weights of all calls are in one unit. After a ``fit`` to an array the first call begins a
        new stream, without the rows of the array; after one to a file the stream goes on.

        Parameters
        ----------
        X : array of shape (n, d)
            The next rows.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            Their weights, ones if left out.
        """
        self._check_parameters()
        streaming.require_wishes(self, X)
        if "_stream" not in vars(self):
            least = 1 if checked_kernel(self.kernel).is_resolved else 2
            with without_journal():  # what keeps a stream is its model
                given = self._begin_fit(X, sample_weight=sample_weight, least=least)
            self.kernel_ = given.kernel
            streaming.require_kernel(self, given.points)
        with streaming.its_arithmetic(self):
            stream, X = streaming.begun(self), self._new_points(X)
            weights = streaming.checked_portion(stream, X, sample_weight)
            streaming.store(self, streaming.grown(self, stream, X, weights))
        return self

    def _require_sample(self, what: str) -> None:
        check_is_fitted(self)
        if hasattr(self, "_stream"):
            raise ValueError(f"{what} needs the rows of the stream, which are not kept: fit to some of them.")

    def transform(self, X: Any) -> Array:
        """Nyström features k(x, I) K_II^(-1/2): their inner products complete the kernel from the nodes."""
        X = self._new_points(X)
        with np.errstate(over="ignore", invalid="ignore"):  # named by finite_values
            return finite_values(self.kernel_, self._features.transform(X))

    def witness(self, X: Any) -> Array:
        """The function g = Σ (v - ω)ₖ s(·, xₖ) at some points, which tells ν from μ best (QUAD 5.1-5.3); s is k² or k.

        At a solution g ≥ -α d on the sample, with equality on the nodes: g is the solution of a one-class
        support-vector machine with the kernel s, whose support vectors are the nodes (Lemmas 5.1, 5.2).
        """
        self._require_sample("witness")
        X = self._new_points(X)
        return witness_values(self, X)

    def eigenpairs(self, n: int, upsilon: bool = True, *, refine: bool = False) -> ApproximateEigenpairs:
        """Approximate eigenpairs of T_μ from the nodes (QUAD section 4).

        Parameters
        ----------
        n : int
            How many.
        upsilon : bool, default=True
            Test each of them on the whole sample: one product with K for all.
        refine : bool, default=False
            The best approximations in the span of the nodes' kernel sections (Rayleigh and Ritz: one more pass over the
            sample) instead of the paper's canonical extension, which uses the weights and the nodes alone.
        """
        self._require_sample("eigenpairs")
        if self.measure_ is not None:
            raise ValueError(
                "The eigenpairs are tested on a sample, and a model with measure has none: draw points of the law, and "
                "pass them with the nodes to mercer.quadrature.approximate_eigenpairs."
            )
        with progress_bar("Υ-test", shown=bool(self.verbose and upsilon)) as report:
            return approximate_eigenpairs(
                self.kernel_,
                self._points,
                self._weights,
                place_of(self.indices_, self._rows),
                self.weights_,
                n,
                upsilon=upsilon,
                refine=refine,
                progress=report if upsilon else None,
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_idle(self)

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.quadrature.verify_quadrature import verify_quadrature  # which knows this class

        recheck.refuse_extension("a quadrature")
        return verify_quadrature(self, X)

    def _store(
        self,
        X: Any,
        sample: Sample,
        problem: Discrepancy,
        definiteness: SquareDefiniteness | None,
        choice: Choice,
        selection: Selection,
        level: Level | Unproved | None = None,
    ) -> None:
        """Set what is public; the level of D(0), where Sω is not known, was sampled or waits for who asks for it."""
        self._n_rows = int(X.shape[0])
        self._points, self._weights, self._rows = sample.points(X, self.kernel_), sample.weights, sample.rows
        nodes, values = selection.nodes, selection.values
        order = heaviest_first(values, None if isinstance(self.kernel_, Precomputed) else self._points[nodes])
        nodes, values = nodes[order], values[order]
        self.indices_, self.weights_ = sample.rows[nodes], values
        reduced = selection.reduction is not None and selection.reduction.values.shape[0] > 1
        self._claim = Claim.of(choice, reduced, problem.trace(nodes, values))
        if isinstance(level, Unproved):
            self._leave_unproved(level)
        else:
            self._prove(problem, nodes, values, definiteness, level)
        soft = self.max_weight is not None or self.ridge is not None
        self.slacks_ = problem.slacks(nodes, values, self.alpha_) if soft else None
        self.__dict__.pop("path_", None)  # of an earlier fit
        if selection.kinks is not None:
            self.path_ = QuadraturePath(problem, selection.kinks, sample.rows)
        self.reduction_ = None if selection.reduction is None else selection.reduction.in_rows(sample.rows)
        self.history_, self.status_ = selection.history, selection.status
        self.n_iter_ = max(1, self.history_[-1].number if self.history_ else 0)
        self.n_columns_ = problem.n_columns
        self._features = NystromFeatures(self.kernel_, X, self.indices_)
        self.components_ = self._features.components
        self._n_features_out = int(self.indices_.shape[0])
        warn_of_fit(self, problem, choice)

    def _problem(
        self, X: Any, sample: Sample, dtype: Any = None, title: str = "Sω", *, without_pass: bool = False
    ) -> Discrepancy:
        """The discrepancy on the sample, in the arithmetic of X or in another."""
        options = {"discrepancy": self.discrepancy, "max_weight": self.max_weight, "ridge": self.ridge, "dtype": dtype}
        with progress_bar(title, shown=bool(self.verbose)) as report:
            return make_problem(
                X, self.kernel_, sample, **options, report=report, law=self.measure_, without_pass=without_pass
            )
