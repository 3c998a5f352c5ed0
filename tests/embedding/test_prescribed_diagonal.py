"""A diagonal that the user prescribes, met (diag B = d) or not exceeded (diag B ≤ d, PSD22 (SDP)): against cvxpy.

Why the two agree unless some Āᵢᵢ < 0: from any B with diag B ≤ d, B + Diag(d - diag B) ≽ 0 has the diagonal d, and gains
Σ Āᵢᵢ(dᵢ - Bᵢᵢ) ≥ 0. And the other way: where Āᵢᵢ < 0 an optimal row may be short.
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed, SDPEmbedding
from mercer.certificates import certify_elliptope
from mercer.certificates.allowances import Allowances
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.prescribed import Prescribed
from mercer.operators.diffusion import DegenerateKernelError
from mercer.problems import Elliptope

BOTH = ("equal", "at most")
both = pytest.mark.parametrize("constraint", BOTH)


def affinities(seed, n=12, repelled=6.0):
    """Symmetric, of both signs, with positive row sums; the more ``repelled``, the more negative the diagonal."""
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, n))
    K = (K + K.T) / 2 + 1.5 - np.diag(rng.uniform(0, repelled, n))
    return K + max(0.0, 0.2 - K.sum(axis=1).min()) / n


def diffusion(K, w=None):
    return DiffusionOperator(GramOperator(Precomputed(), K, weights=w)).to_dense()


def by_conic(A, d, constraint):
    """The optimum and its B by an interior-point method."""
    cvxpy = pytest.importorskip("cvxpy")
    B = cvxpy.Variable(A.shape, PSD=True)
    diagonal = cvxpy.diag(B) == d if constraint == "equal" else cvxpy.diag(B) <= d
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply((A + A.T) / 2, B))), [diagonal])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value, B.value


def fitted(K, d, constraint, w=None, **options):
    model = SDPEmbedding(Precomputed(), diagonal=d, diagonal_constraint=constraint, random_state=0, **options)
    return model.fit(K, sample_weight=w)


def lengths(model):
    return np.sum(model.coordinates_**2, axis=1)


def near(certificate, value, size):
    return certificate.lower <= value + 1e-7 * size and value <= certificate.upper + 1e-7 * size


@both
@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_that_of_a_conic_solver(seed, constraint):
    K, rng = affinities(seed), np.random.default_rng(50 + seed)
    d, w = rng.uniform(0.2, 2, len(K)), None if seed % 2 else rng.uniform(0.5, 3, len(K))
    weights = np.ones(len(K)) if w is None else w
    value, B = by_conic(diffusion(K, w), weights * d, constraint)
    model = fitted(K, d, constraint, w, tol=1e-7)
    assert near(model.certificate_, value, np.sum(d))
    assert model.certificate_.holds(1e-7)
    assert mercer.verify(model, K).holds(1e-6)
    E = np.sqrt(weights)[:, None] * model.embedding_
    np.testing.assert_allclose(E @ E.T, B, atol=2e-3)
    assert np.all(lengths(model) <= d * (1 + 1e-9))
    if constraint == "equal":
        np.testing.assert_allclose(lengths(model), d, rtol=1e-9)


@pytest.mark.parametrize("solver", ["trust-region", "accelerated", "interior-point", "conic"])
def test_every_solver_finds_short_rows(solver):
    K = affinities(1)
    value, B = by_conic(diffusion(K), np.ones(12), "at most")
    assert np.diag(B).min() < 0.5
    model = fitted(K, 1.0, "at most", solver=solver, max_iter=20_000)
    assert model.certificate_.holds(1e-6)
    assert near(model.certificate_, value, 12)
    np.testing.assert_allclose(lengths(model), np.diag(B), atol=2e-3)


def test_the_dual_of_a_bound_is_not_negative():
    """min Σ yᵢdᵢ subject to Diag(y) ≽ Ā, y ≥ 0: its optimum is the same, and y vanishes where rows are short."""
    K, d = affinities(3), np.random.default_rng(3).uniform(0.5, 2, 12)
    model = fitted(K, d, "at most", solver="interior-point")
    y = model.multipliers_ / d
    assert y.min() >= 0
    assert np.linalg.eigvalsh(np.diag(y) - diffusion(K)).min() >= -1e-9
    assert y @ d == pytest.approx(model.certificate_.lower, rel=1e-6)
    short = lengths(model) < 0.99 * d
    assert short.any()
    assert y[short].max() < 1e-4 < y[~short].min()
    equal = fitted(K, d, "equal", solver="interior-point")
    assert equal.multipliers_.min() < -1e-3  # which a bound does not allow
    assert equal.certificate_.upper < model.certificate_.lower


@pytest.mark.parametrize("seed", range(2))
def test_the_two_agree_where_no_point_repels_itself(seed):
    """An indefinite matrix whose diagonal is not negative: the same optimum, by cvxpy and by us."""
    rng = np.random.default_rng(seed)
    K = affinities(seed, repelled=0.0)
    K += np.diag(rng.uniform(3.0, 4.0, 12))
    A, d = diffusion(K), rng.uniform(0.5, 2, 12)
    assert np.diag(A).min() > 0 > np.linalg.eigvalsh(A).min()
    equal, most = (by_conic(A, d, constraint)[0] for constraint in BOTH)
    assert equal == pytest.approx(most, rel=1e-7)
    certificates = [fitted(K, d, constraint).certificate_ for constraint in BOTH]
    assert certificates[0].lower == certificates[1].lower
    assert near(certificates[0], equal, 12)


def test_only_rows_that_may_gain_are_split():
    K, d = affinities(2), np.ones(12)
    d[4] = 0.0
    own = np.diag(diffusion(K))
    pose = [
        DiffusionProblem.of(Precomputed(), K, None, np.random.default_rng(0), prescribed=Prescribed(d, None, most))
        for most in (False, True)
    ]
    assert pose[0].split is None
    np.testing.assert_array_equal(pose[1].split.rows, np.flatnonzero((own < 0) & (d > 0)))
    X = np.random.default_rng(1).normal(size=(9, 2))
    posed = DiffusionProblem.of(
        Gaussian(1.0), X, None, np.random.default_rng(0), prescribed=Prescribed(np.ones(9), None, True)
    )
    assert posed.split is None


def test_rows_that_rounding_may_have_made_attractive_are_split():
    """Āᵢᵢ is a small positive number, computed from numbers near one: the true one may be negative, and gain."""
    K = np.abs(affinities(2, repelled=0.0)) + 2 * np.eye(12)
    for _ in range(60):
        K[0, 0] -= DiffusionOperator(GramOperator(Precomputed(), K)).signed_diagonal()[0] * K[0].sum()
    while DiffusionOperator(GramOperator(Precomputed(), K)).signed_diagonal()[0] <= 0:
        K[0, 0] = np.nextafter(K[0, 0], 9.0)
    operator = DiffusionOperator(GramOperator(Precomputed(), K))
    assert 0 < operator.signed_diagonal()[0] < operator.rounding().diagonal[0]
    prescribed = Prescribed(np.ones(12), None, True)
    posed = DiffusionProblem.of(Precomputed(), K, None, np.random.default_rng(0), prescribed=prescribed)
    assert 0 in posed.split.rows


def test_every_point_of_the_ball_is_a_mean_of_two_of_the_sphere():
    """What splits a row: halves have unit length, and their mean is the row, to rounding."""
    K = affinities(2)
    posed = DiffusionProblem.of(
        Precomputed(), K, None, np.random.default_rng(0), prescribed=Prescribed(np.ones(12), None, True)
    )
    rows = np.random.default_rng(1).normal(size=(12, 3))
    rows *= np.random.default_rng(2).uniform(0, 1, (12, 1)) ** 0.3 / np.linalg.norm(rows, axis=1, keepdims=True)
    kept = np.setdiff1d(np.arange(12), posed.split.rows)
    rows[kept] /= np.linalg.norm(rows[kept], axis=1, keepdims=True)
    H = posed.working.point_of(rows)
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(posed.working.rows_of(H)[:, :3], rows, atol=1e-15)
    value = posed.working.objective(H, posed.working.apply(H))
    assert value == pytest.approx(np.sum(diffusion(K) * (rows @ rows.T)), rel=1e-12)


@both
@pytest.mark.parametrize("counts", [(1, 2, 3), (1, 4, 4)], ids=["unit 1", "unit 2"])
def test_weights_are_repeated_rows(constraint, counts):
    """The certificate too, in the weights as they are given: scaled inside by a power of two.

    Copies of a point that repels itself part, and only their mean is that of the one of their weight: with an equality
    they gain by it, so that the statement is one of diag B ≤ d alone there.
    """
    K, rng = affinities(4, 9), np.random.default_rng(0)
    if constraint == "equal":
        K += np.diag(rng.uniform(6.0, 7.0, 9))
    w, d = rng.choice(counts, 9), rng.uniform(0.5, 2, 9)
    w[0] = max(counts)
    rows = np.repeat(np.arange(9), w)
    once = fitted(K, d, constraint, w, tol=1e-8)
    often = fitted(K[np.ix_(rows, rows)], d[rows], constraint, tol=1e-8)
    assert once.certificate_.lower <= often.certificate_.upper
    assert often.certificate_.lower <= once.certificate_.upper
    means = np.array([often.embedding_[rows == i].mean(axis=0) for i in range(9)])
    np.testing.assert_allclose(means @ means.T, once.embedding_ @ once.embedding_.T, atol=2e-3)
    short = lengths(once) < 0.99 * d
    assert short.any() == (constraint == "at most")


def test_copies_of_a_point_that_repels_itself_part():
    """Why diag B = d with repeated rows is diag B ≤ d with weights: their mean is any point of the ball."""
    K = affinities(4, 9)
    rows = np.repeat(np.arange(9), 2)
    copies = fitted(K[np.ix_(rows, rows)], 1.0, "equal", tol=1e-8)
    weighed = fitted(K, 1.0, "at most", np.full(9, 2.0), tol=1e-8)
    assert copies.certificate_.lower <= weighed.certificate_.upper
    assert weighed.certificate_.lower <= copies.certificate_.upper
    assert fitted(K, 1.0, "equal", np.full(9, 2.0)).certificate_.upper < weighed.certificate_.lower


@both
def test_weights_have_any_unit(constraint):
    K, w = affinities(5), np.random.default_rng(1).uniform(0.5, 2, 12)
    one = fitted(K, 1.0, constraint, w)
    unit = 2.0**80
    other = fitted(K, 1.0, constraint, w * unit)
    np.testing.assert_allclose(other.embedding_, one.embedding_, rtol=1e-12, atol=1e-15)
    assert other.certificate_.lower == pytest.approx(unit * one.certificate_.lower, rel=1e-12)
    assert mercer.verify(other, K).holds(1e-6)


# --- new points -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(30, 2))


def height(Z):
    return 1 + Z[:, 0] ** 2


@both
def test_extension_has_the_lengths_of_the_function(X, constraint):
    """(1.5) with the user's d(x): that length everywhere, and near the sample what the sample has."""
    options = {"diagonal": height, "diagonal_constraint": constraint, "random_state": 0, "tol": 1e-9}
    model = SDPEmbedding(Gaussian(1.0), radius="paper", residual_tol=1e-9, **options).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    np.testing.assert_allclose(model.transform(X + 1e-10), model.embedding_, atol=1e-6)
    new = X + 0.4
    np.testing.assert_allclose(np.diag(model.learned_kernel(new)), height(new), rtol=1e-12)
    capped = SDPEmbedding(Gaussian(1.0), **options).fit(X)
    far = np.vstack([new, [[9.0, 0.0]]])
    expected = np.minimum(height(far), height(X).max())
    np.testing.assert_allclose(np.diag(capped.learned_kernel(far)), expected, rtol=1e-12)
    assert mercer.verify(model, X + 0.02, extended=True).relative_gap < 0.02


def test_extension_of_an_array_averages_it_by_affinity(X):
    d = np.random.default_rng(1).uniform(0.5, 2, 30)
    model = SDPEmbedding(Gaussian(1.0), diagonal=d, radius="paper", random_state=0).fit(X)
    new = X + 0.3
    k = Gaussian(1.0)(new, X)
    np.testing.assert_allclose(np.diag(model.learned_kernel(new)), k @ d / k.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(np.diag(model.learned_kernel(X)), d, rtol=1e-12)
    mixed = np.vstack([new[:1], X[3:5]])
    np.testing.assert_array_equal(model.transform(mixed)[1:], model.embedding_[3:5])


@both
def test_points_that_repel_themselves_keep_their_place(constraint):
    """Of them Σⱼ ā(x, xⱼ)Ξⱼ is zero (short rows) or points the other way (negative multipliers)."""
    K = affinities(6)
    model = fitted(K, 1.0, constraint)
    image = np.sum((diffusion(K) @ model.embedding_) * model.embedding_, axis=1)
    assert image.min() < 1e-5
    np.testing.assert_array_equal(model.transform(K), model.embedding_)
    assert mercer.verify(model, K, extended=True).holds(1e-6)


def test_landmarks_take_their_rows_of_the_diagonal(X):
    d = height(X)
    rows = np.arange(0, 30, 2)
    model = SDPEmbedding(Gaussian(1.0), diagonal=d, landmarks=rows, radius="paper", random_state=0).fit(X)
    np.testing.assert_array_equal(model.diagonal_, d[rows])
    np.testing.assert_allclose(np.sum(model.embedding_[rows] ** 2, axis=1), d[rows], rtol=1e-9)
    assert mercer.verify(model, X).holds(1e-6)
    other = SDPEmbedding(Gaussian(1.0), diagonal=height, landmarks=rows, radius="paper", random_state=0).fit(X)
    np.testing.assert_allclose(np.sum(other.embedding_**2, axis=1), d, rtol=1e-9)


@both
def test_levels_have_the_same_diagonal(constraint):
    K = affinities(7, 16, repelled=3.0)
    model = fitted(K, 1.0, constraint, n_levels=2)
    assert len(model.levels_) == 2
    basis = np.linalg.qr(model.levels_[0].coordinates)[0]
    P = np.eye(16) - basis @ basis.T
    value, _ = by_conic(P @ diffusion(K) @ P, np.ones(16), constraint)
    assert near(model.levels_[1].certificate, value, 16)
    assert all(level.certificate.holds(1e-6) for level in model.levels_)
    assert mercer.verify(model, K).holds(1e-6)
    np.testing.assert_array_equal(model.transform(K), model.embedding_)


# --- what is proved, and what is refused --------------------------------------------------------------------------


def test_many_short_rows_are_proved():
    """Many multipliers of zero: a bound that divides by them, or by what makes them positive, is none."""
    rng = np.random.default_rng(100)
    groups = rng.integers(0, 3, 60)
    K = np.triu(rng.uniform(size=(60, 60)) < np.where(groups[:, None] == groups, 0.5, 0.05), 1) * 1.0
    K += K.T - np.diag(rng.uniform(0, 40, 60))
    K += max(0.0, 0.4 * abs(K).sum(axis=1).max() - K.sum(axis=1).min()) / 60
    for solver in ("trust-region", "interior-point"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an interior point is proved where its rows do not settle
            model = fitted(K, 1.0, "at most", solver=solver)
        assert np.sum(lengths(model) < 0.9) > 30
        assert model.certificate_.holds(1e-7)


@both
@pytest.mark.parametrize("method", ["deflated-lanczos", "chebyshev-filter"])
def test_every_proof_holds(constraint, method):
    K = affinities(8, 20)
    model = fitted(K, 1.0, constraint, certify=method)
    assert model.certificate_.holds(1e-6)
    exact = fitted(K, 1.0, constraint, tol=1e-9).certificate_
    assert model.certificate_.lower <= exact.upper
    assert exact.lower <= model.certificate_.upper


def test_bounds_count_the_error_of_the_diagonal():
    """d is known to ±δ only: the optimum of any such d lies between the bounds, which without δ it does not."""
    A = np.array([[1.0, 0.5], [0.5, 1.0]])
    d, error = np.array([1.0, 2.0]), np.array([1e-3, 2e-3])
    H = np.ones((2, 1))

    def bounds(**options):
        problem = Elliptope(GramOperator(Precomputed(), A), d, **options)
        return certify_elliptope(problem, H, rng=np.random.default_rng(0), method="factorisation")

    told, untold = bounds(diagonal_error=error), bounds()
    for sign in (-1, 1):
        s = np.sqrt(d + sign * error)
        optimum = s @ A @ s
        assert told.lower <= optimum <= told.upper
        assert not untold.lower <= optimum <= untold.upper


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_product_with_weights_is_counted(dtype):
    """|fl(w d) - w d| ≤ what the problem says, in the arithmetic of the problem."""
    rng = np.random.default_rng(0)
    X, w, d = rng.normal(size=(50, 2)).astype(dtype), rng.uniform(1, 4, 50), rng.uniform(0.1, 1, 50)
    posed = DiffusionProblem.of(Gaussian(1.0), X, w, rng, prescribed=Prescribed(d, None, False)).working
    off = abs(posed.diagonal.astype(np.longdouble) - w.astype(np.longdouble) * d)
    assert np.all(off <= posed.diagonal_error)
    assert posed.diagonal_error.max() <= 20 * float(np.finfo(dtype).eps)
    without = Elliptope(posed.operator, posed.diagonal, removed=posed.removed, diagonal_error=np.zeros(50))
    z = np.ones(50)
    assert Allowances(posed).upper(z) > Allowances(without).upper(z)


def test_what_a_fit_says_is_checked():
    K, d = affinities(9), np.random.default_rng(0).uniform(0.5, 2, 12)
    model = fitted(K, d, "at most")
    changed = pickle.loads(pickle.dumps(model))
    changed.diagonal = 0.9 * d
    with pytest.raises(ValueError, match="squared length of row"):
        mercer.verify(changed, K)
    changed.diagonal, changed.diagonal_constraint = d, "equal"
    with pytest.raises(ValueError, match="squared length of row"):
        mercer.verify(changed, K)
    stored = pickle.loads(pickle.dumps(model))
    object.__setattr__(stored._extension, "known", (-stored._extension.known[0],))
    with pytest.raises(ValueError, match="coordinates of the extension"):
        mercer.verify(stored, K)
    plain = SDPEmbedding(Precomputed(), diagonal=None, random_state=0)
    plain.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    plain._extension, plain._n_features_out = model._extension, model._n_features_out
    with pytest.raises(ValueError, match="squared length"):
        mercer.verify(plain, K)


@pytest.mark.parametrize(
    ("diagonal", "sentence"),
    [
        (np.ones(5), "one entry for each of the 30 points"),
        ("long", "must be real numbers"),
        (-1.0, "squared lengths are not negative"),
        (np.nan, "NaN"),
        (0.0, "positive at 0 of the points"),
        (np.eye(30)[0], "positive at 1 of the points"),
        (1e200, "to a size near one"),
        (np.where(np.arange(30) == 7, 1e-30, 1.0), "write zero"),
        (lambda Z: Z, "one entry for each"),
        (lambda Z: -np.ones(len(Z)), "not negative"),
    ],
)
def test_bad_diagonals_are_named(X, diagonal, sentence):
    with pytest.raises(ValueError, match=sentence):
        SDPEmbedding(Gaussian(1.0), diagonal=diagonal).fit(X)


def test_bad_options_are_named(X):
    with pytest.raises(ValueError, match="diagonal_constraint='less' must be one of 'equal', 'at most'"):
        SDPEmbedding(diagonal_constraint="less").fit(X)
    with pytest.raises(ValueError, match="unit_length=2 must be True or False"):
        SDPEmbedding(unit_length=2).fit(X)
    with pytest.raises(ValueError, match="rank_path"):
        mercer.rank_path(X, [1.0], diagonal=1.0)


def test_affinities_that_only_repel_are_named():
    """A complete graph without loops: Ā = -I/(n - 1) beside the stationary part, so that B = 0 is the best."""
    K = np.ones((6, 6)) - np.eye(6)
    with pytest.raises(DegenerateKernelError, match="the best B with diag B ≤ d is zero"):
        fitted(K, 1.0, "at most")
    with pytest.warns(ConvergenceWarning):  # a gap relative to nothing
        equal = fitted(K, 1.0, "equal")
    assert abs(equal.certificate_.upper) < 1e-9  # all points in one place: the stationary direction, which Ā takes to 0


def test_zero_lengths_lie_at_the_origin(X):
    d = np.ones(30)
    d[:3] = 0.0
    model = SDPEmbedding(Gaussian(1.0), diagonal=d, random_state=0).fit(X)
    assert not model.embedding_[:3].any()
    assert model.certificate_.holds(1e-6)
    alone = SDPEmbedding(Gaussian(1.0), diagonal=d, diagonal_constraint="at most", random_state=0).fit(X)
    np.testing.assert_array_equal(alone.embedding_, model.embedding_)


# --- arithmetic, libraries, files ---------------------------------------------------------------------------------


@both
def test_single_precision_and_sparse_matrices(constraint):
    rng = np.random.default_rng(2)
    graph = np.triu(rng.uniform(size=(30, 30)) < 0.2, 1).astype(float)
    graph[np.arange(29), np.arange(1, 30)] = 1.0
    graph += graph.T  # affinities without loops, which give no point a length of their own
    with pytest.raises(DegenerateKernelError, match="larger diagonal"):
        SDPEmbedding(Precomputed()).fit(graph)
    model = fitted(graph, 1.0, constraint)
    assert model.certificate_.holds(1e-6)
    sparse = fitted(scipy.sparse.csr_array(graph), 1.0, constraint)
    np.testing.assert_allclose(sparse.embedding_, model.embedding_, atol=1e-5)
    np.testing.assert_array_equal(sparse.transform(scipy.sparse.csr_array(graph)), sparse.embedding_)
    with mercer.config_context(dtype="float32"):
        single = fitted(graph, 1.0, constraint, tol=1e-4, residual_tol=1e-4)
        assert mercer.verify(single, graph).relative_gap < 1e-3
    assert single.certificate_.lower <= model.certificate_.upper
    assert model.certificate_.lower <= single.certificate_.upper


@both
def test_tensors(constraint):
    torch = pytest.importorskip("torch")
    K = affinities(10)
    ours = fitted(K, 1.0, constraint)
    theirs = fitted(torch.as_tensor(K), torch.ones(12, dtype=torch.float64), constraint)
    assert torch.is_tensor(theirs.embedding_)
    np.testing.assert_allclose(theirs.embedding_.numpy(), ours.embedding_, atol=1e-4)
    assert mercer.verify(theirs, torch.as_tensor(K)).holds(1e-6)
    np.testing.assert_array_equal(theirs.transform(torch.as_tensor(K)).numpy(), theirs.embedding_.numpy())


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    K, path = affinities(11, 30), tmp_path / "run.npz"
    options = {"diagonal": 1.0, "diagonal_constraint": "at most", "random_state": 0, "checkpoint": path}
    with pytest.warns(ConvergenceWarning, match="iteration budget"):
        SDPEmbedding(Precomputed(), max_iter=20, **options).fit(K)
    model = SDPEmbedding(Precomputed(), **options).fit(K)
    assert model.certificate_.holds(1e-6)
    assert model.history_[0].number > 0 or len(model.history_) > 20
    with pytest.raises(ValueError, match="other data, weights, kernel or diagonal"):
        SDPEmbedding(Precomputed(), **{**options, "diagonal": 2.0}).fit(K)
    warm = SDPEmbedding(Precomputed(), diagonal=1.0, diagonal_constraint="at most", warm_start=True, random_state=0)
    warm.fit(K)
    steps = warm.n_iter_
    assert warm.fit(K).n_iter_ < steps
    assert warm.certificate_.holds(1e-6)
