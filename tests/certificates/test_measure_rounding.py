"""Bounds of measures in floating point: true for the exact kernel, and each allowance needed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Linear, Polynomial, Precomputed, QuadratureSparsifier, config_context
from mercer.backends.rounding import EntryError
from mercer.certificates import certify_measure, measure_rounding
from mercer.certificates import measure_definiteness as definiteness
from mercer.certificates.measure_definiteness import SquareDefiniteness, prove_square_definite
from mercer.certificates.measure_rounding import dot, sum_length
from mercer.operators import LinearMap
from mercer.problems import Discrepancy
from mercer.solvers.measure.active_set import solve_exactly, solve_on

DECLARED = 1e-6  # an error far above that of the arithmetic, so that it alone decides
N = 12


def _problem(**errors):
    rng = np.random.default_rng(3)
    squared = GramOperator(Gaussian(sigma=0.25) ** 2, rng.uniform(-1, 1, (N, 2)))
    weights = rng.uniform(0.2, 2, N) / N
    return Discrepancy(squared, weights, rng.uniform(0.5, 2, N), **errors)


def _solve(problem, programme, on_nodes):
    if not on_nodes:
        best = solve_exactly(problem.at(**programme))
        return best.point.nodes, best.point.values
    nodes = np.arange(0, N, 2)
    values = solve_on(problem.at(**programme), nodes)
    return nodes[values > 0], values[values > 0]


def _other_truths(problem, rng, *, relative=0.0, scaled=0.0, weights=0.0, penalty=0.0):
    """Programmes whose matrix, weights and penalty lie within the errors that are allowed."""
    S = problem.squared.to_dense()
    root = np.sqrt(np.diag(S))
    for kind in range(8):
        signs = [np.ones((N, N)), -np.ones((N, N))][kind] if kind < 2 else np.sign(rng.standard_normal((N, N)))
        signs = np.triu(signs) + np.triu(signs, 1).T
        M = S + 0.98 * signs * (relative * S + scaled * np.outer(root, root))
        lean = [1.0, -1.0, 1.0, -1.0][kind] if kind < 4 else rng.uniform(-1, 1, N)
        yield Discrepancy(
            GramOperator(Precomputed(), M),
            problem.weights * (1 + 0.98 * weights * lean),
            problem.penalty * (1 + 0.98 * penalty * (lean if kind % 2 else -1.0)),
        )


def _is_true(proof, truth, nodes, values, programme, on_nodes):
    """Whether the bounds hold for another programme: its optimum above ``lower``, the value of v below ``upper``."""
    programme = dict(programme)
    if "kappa" in programme:
        programme["kappa"] = float(truth.penalty[nodes] @ values)
    if on_nodes:
        best, known = nodes, solve_on(truth.at(**programme), nodes)
        best, known = best[known > 0], known[known > 0]
    else:
        solution = solve_exactly(truth.at(**programme))
        best, known = solution.point.nodes, solution.point.values
    alpha = programme.get("alpha", 0.0)
    optimum = truth.value(best, known) + alpha * truth.penalty[best] @ known
    value = truth.value(nodes, values) + alpha * truth.penalty[nodes] @ values
    return proof.lower <= optimum and value <= proof.upper


@pytest.mark.parametrize("on_nodes", [False, True])
@pytest.mark.parametrize("programme", [{"alpha": 0.02}, {"kappa": 0.5}], ids=["alpha", "kappa"])
@pytest.mark.parametrize("source", ["relative", "scaled", "weights", "penalty"])
def test_every_error_of_the_input_is_allowed_for(source, programme, on_nodes, monkeypatch):
    """Programmes that differ by what is declared have their optimum within the bounds; undeclared, some have not."""

    def proof_with(declared):
        entry = EntryError(declared if source == "relative" else 0.0, declared if source == "scaled" else 0.0)
        monkeypatch.setattr(measure_rounding, "entry_error_of", lambda squared: entry)
        problem = _problem(
            errors=(declared if source == "weights" else 0.0, declared if source == "penalty" else 0.0),
        )
        nodes, values = _solve(problem, programme, on_nodes)
        if "kappa" in programme:
            programme["kappa"] = float(problem.penalty[nodes] @ values)
        proof = certify_measure(problem, nodes, values, **programme, on_nodes=on_nodes)
        truths = _other_truths(problem, np.random.default_rng(0), **{source: DECLARED})
        return [_is_true(proof, truth, nodes, values, programme, on_nodes) for truth in truths], proof

    held, proof = proof_with(DECLARED)
    assert all(held)
    assert proof.relative_gap < 1e-2  # and the allowance is no larger than it must be, by much
    held, _ = proof_with(0.0)
    assert (source == "penalty" and "kappa" in programme) or not all(held)  # dᵀu = dᵀv whatever d is, to first order


@pytest.mark.parametrize("programme", [{"alpha": 0.02}, {"kappa": 0.5}], ids=["alpha", "kappa"])
def test_the_rounding_of_the_product_is_allowed_for(programme, monkeypatch):
    """Sω as wrong as a product of its length may be."""
    problem = _problem()
    right = problem.distortion.copy()
    allowed = measure_rounding.gamma(sum_length(problem.squared), 2.0**-53)
    verdicts = {}
    for factor in (1.0, 0.0):
        monkeypatch.setattr(measure_rounding, "sum_length", lambda squared, factor=factor: factor * 10**8 - 2)
        monkeypatch.setattr(measure_rounding, "_MORE", 1.0)
        held = []
        for lean in (1.0, -1.0):
            error = measure_rounding.gamma(10**8, 2.0**-53)
            problem.distortion = right * (1 + 0.98 * lean * error)
            nodes, values = _solve(problem, programme, False)
            level = {"kappa": float(problem.penalty[nodes] @ values)} if "kappa" in programme else programme
            proof = certify_measure(problem, nodes, values, **level)
            problem.distortion = right
            held.append(_is_true(proof, problem, nodes, values, level, False))
        verdicts[factor] = all(held)
    assert verdicts == {1.0: True, 0.0: False}
    assert 0 < allowed < 1e-14


def test_the_roundings_of_a_column_sum_are_allowed_for(monkeypatch):
    """The gradient as wrong as sums over the nodes may be."""
    problem = _problem()
    nodes, values = _solve(problem, {"kappa": 0.5}, False)
    level = float(problem.penalty[nodes] @ values)
    plain = Discrepancy.gradient
    error = 1e-7
    for allowed, expected in ((10**9, True), (1, False)):
        monkeypatch.setattr(Discrepancy, "panel_width", property(lambda self, allowed=allowed: allowed))
        held = []
        for lean in (1.0, -1.0):

            def leaning(self, nodes, values, lean=lean):
                sums = self.squared.block(slice(None), nodes) @ values
                return sums * (1 + lean * error) - self.distortion

            monkeypatch.setattr(Discrepancy, "gradient", leaning)
            proof = certify_measure(problem, nodes, values, kappa=level)
            monkeypatch.setattr(Discrepancy, "gradient", plain)
            held.append(_is_true(proof, problem, nodes, values, {"kappa": level}, False))
        assert all(held) is expected


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_products_know_their_error(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(50) * 10.0 ** rng.integers(-12, 12, 50)
    b = rng.standard_normal(50) * 10.0 ** rng.integers(-12, 12, 50)
    a[25:], b[25:] = a[:25], -b[:25] * (1 + 2.0**-50)  # hardly anything is left
    value, error = dot(a, b)
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert abs(Fraction(value) - exact) <= Fraction(error)
    assert error <= 1e-15 * float(np.abs(a) @ np.abs(b))


def test_a_negative_eigenvalue_of_rounding_is_allowed_for():
    """S has one of -1e-6: the sample itself, where the gradient vanishes, is the worst measure and not the best."""
    S = np.array([[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]])
    squared = GramOperator(Precomputed(), S)
    proved = prove_square_definite(squared)
    assert proved.n_columns == 2
    assert 1e-6 * (1 - 1e-9) <= proved.defect < 1e-5
    problem = Discrepancy(squared, np.full(2, 0.5), np.ones(2))
    nodes, values = np.arange(2), np.full(2, 0.5)
    best = 0.5 * np.array([0.5, -0.5]) @ S @ np.array([0.5, -0.5])
    assert best == pytest.approx(-2.5e-7)
    for programme in ({"kappa": 1.0}, {"alpha": 0.0}):
        proof = certify_measure(problem, nodes, values, **programme)
        blind = certify_measure(problem, nodes, values, **programme, definiteness=SquareDefiniteness(0.0))
        assert proof.lower <= best < blind.lower
        assert proof.n_products == 2 + 1 + 2


def test_an_asymmetric_matrix_is_allowed_for():
    """Its quadratic form is that of its symmetric part, its products are not."""
    rng = np.random.default_rng(0)
    S = Gaussian(sigma=0.8)(rng.uniform(-1, 1, (6, 2))) ** 2
    leaning = S * (1 + 4e-3 * np.sign(np.arange(6)[:, None] - np.arange(6)))
    weights = rng.uniform(0.2, 2, 6)
    truth = Discrepancy(GramOperator(Precomputed(), S), weights / weights.sum(), np.ones(6))

    class Leaning(LinearMap):
        """The same matrix, its lower triangle a little larger than its upper."""

        def __init__(self):
            super().__init__(S.shape, S.dtype, symmetric=True)

        def _multiply(self, v):
            return leaning @ v

        _transpose_multiply = _multiply

        def block(self, rows, cols):
            return leaning[rows][:, cols]

        def diagonal(self):
            return np.diag(S)

    problem = Discrepancy(Leaning(), truth.weights, truth.penalty)
    proved = prove_square_definite(problem.squared)
    assert proved.asymmetry == pytest.approx(8e-3 * np.max(S - np.eye(6)), rel=0.02)
    verdicts = []
    for definite in (proved, SquareDefiniteness(0.0)):
        nodes, values = _solve(problem, {"kappa": 0.5}, False)
        proof = certify_measure(problem, nodes, values, kappa=0.5, definiteness=definite)
        nodes, values = _solve(truth, {"kappa": 0.5}, False)
        verdicts.append(proof.lower <= truth.value(nodes, values) <= proof.upper)
    assert verdicts == [True, False]


# --- against exact arithmetic -------------------------------------------------------------------------------------


def _exact_kernel(kernel, X):
    """The kernel matrix at the points as given, in rational numbers or to sixty digits."""
    points = [[Fraction(float(x)) for x in row] for row in X]
    n = len(points)
    inner = [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in points] for x in points]
    if isinstance(kernel, Linear):
        return inner
    if isinstance(kernel, Polynomial):
        return [[(Fraction(kernel.gamma) * v + Fraction(kernel.coef0)) ** kernel.degree for v in row] for row in inner]
    sigma, out = Fraction(kernel.sigma), []
    with mpmath.workdps(60):
        for i in range(n):
            distances = [(inner[i][i] + inner[j][j] - 2 * inner[i][j]) / sigma**2 for j in range(n)]
            exact = [mpmath.exp(-mpmath.mpf(t.numerator) / t.denominator) for t in distances]
            out.append([Fraction(int(mpmath.nint(e * mpmath.mpf(10) ** 58)), 10**58) for e in exact])
    return out


def _solve_fractions(A, b):
    """A x = b by elimination; None if A is singular."""
    n = len(b)
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def _objective(S, omega, d, v, alpha):
    rest = [w - x for w, x in zip(omega, v, strict=True)]
    n = range(len(v))
    return sum(rest[i] * S[i][j] * rest[j] for i in n for j in n) / 2 + alpha * sum(d[i] * v[i] for i in n)


def _exact_optimum(S, omega, d, allowed, *, alpha=None, kappa=None):
    """The least objective over measures on the allowed points: the best of the solutions on all supports."""
    n = len(omega)
    q = [sum(S[i][j] * omega[j] for j in range(n)) for i in range(n)]
    values = [] if kappa is not None else [_objective(S, omega, d, [Fraction(0)] * n, alpha)]
    for size in range(1, len(allowed) + 1):
        for support in combinations(allowed, size):
            A = [[S[i][j] for j in support] for i in support]
            if kappa is None:
                found = _solve_fractions(A, [q[i] - alpha * d[i] for i in support])
            else:
                bordered = [[*row, d[i]] for row, i in zip(A, support, strict=True)] + [[*(d[i] for i in support), 0]]
                found = _solve_fractions(bordered, [*(q[i] for i in support), kappa])
            if found is not None and all(x >= 0 for x in found[:size]):
                v = [Fraction(0)] * n
                for i, x in zip(support, found[:size], strict=True):
                    v[i] = x
                values.append(_objective(S, omega, d, v, Fraction(0) if kappa is not None else alpha))
    return min(values)


def _random_fit(seed, dtype):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    kernel = [Gaussian(sigma=float(10 ** rng.uniform(-1, 1.5))), Linear(), Polynomial(degree=2, gamma=1.0, coef0=1.0)][
        int(rng.choice(3, p=[0.6, 0.2, 0.2]))
    ]
    X = rng.standard_normal((n, d)).astype(dtype)
    weights = 10.0 ** rng.uniform(-8, 4, n)
    programme = [{"trace_fraction": float(rng.uniform(0.05, 1))}, {"n_nodes": int(rng.integers(1, n))}, {}][seed % 3]
    model = QuadratureSparsifier(kernel, **programme)
    if not programme:
        probe = QuadratureSparsifier(kernel, trace_fraction=float(rng.uniform(0.2, 0.9))).fit(X, sample_weight=weights)
        model.set_params(alpha=max(probe.alpha_, 0.0) * float(rng.uniform(0.5, 1)) + 1e-300)
    return model.fit(X, sample_weight=weights), X, weights


def _check_against_exact(seed, dtype):
    with config_context(dtype=dtype):
        model, X, weights = _random_fit(seed, dtype)
    proof, programme = model.certificate_, model._claim
    K = _exact_kernel(model.kernel_, X)
    S = [[k * k for k in row] for row in K]
    exact_weights = [Fraction(float(w)) for w in weights]
    omega = [w / sum(exact_weights) for w in exact_weights]
    d = [K[i][i] for i in range(len(K))]
    v = [Fraction(0)] * len(K)
    for i, x in zip(model.indices_, model.weights_, strict=True):
        v[i] = Fraction(float(x))
    alpha = None if programme.alpha is None else Fraction(programme.alpha)
    kappa = sum(d[i] * v[i] for i in range(len(K))) if alpha is None else None
    allowed = sorted(int(i) for i in model.indices_) if programme.on_nodes else range(len(K))
    optimum = _exact_optimum(S, omega, d, allowed, alpha=alpha, kappa=kappa)
    value = _objective(S, omega, d, v, Fraction(0) if alpha is None else alpha)
    assert Fraction(proof.lower) <= optimum
    assert value <= Fraction(proof.upper)
    read = Fraction(model.discrepancy_) + (alpha or 0) * Fraction(model.kappa_)
    assert abs(value - read) <= Fraction(1e-12) * max(d) ** 2 + Fraction(1e-9) * value


@pytest.mark.filterwarnings("ignore:n_nodes=:UserWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("block", range(6))
def test_fits_against_rational_arithmetic(block, dtype):
    for seed in range(15 * block, 15 * block + 15):
        _check_against_exact(seed, dtype)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_nodes=:UserWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("block", range(100))
def test_many_fits_against_rational_arithmetic(block, dtype):
    for seed in range(1000 + 20 * block, 1020 + 20 * block):
        _check_against_exact(seed, dtype)


# --- matrices of the user -----------------------------------------------------------------------------------------


def test_the_matrix_that_is_indefinite_is_refused_by_its_eigenvalue():
    K = np.array([[0.2, 1.0], [1.0, 0.2]])
    with pytest.raises(ValueError, match="eigenvalue of -24: the squared kernel must be positive semi-definite"):
        QuadratureSparsifier(Precomputed(), trace_fraction=1.0).fit(K)
    with pytest.raises(ValueError, match=r"k\(x, x\) = -1 at row 1.*positive semi-definite"):
        QuadratureSparsifier(Precomputed()).fit(np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0 at row 0.*k\(x, y\) = 1 for row 1"):
        QuadratureSparsifier(Precomputed()).fit(np.array([[0.0, 1.0], [1.0, 1.0]]))


def test_an_indefinite_matrix_with_definite_squares_is_accepted():
    """D needs K ∘ K alone."""
    K = 0.7 * np.eye(3) + 0.3
    K[0, 1] = K[1, 0] = -0.6
    K[0, 2] = K[2, 0] = 0.6
    K[1, 2] = K[2, 1] = 0.6
    assert np.linalg.eigvalsh(K)[0] < -0.1
    assert np.linalg.eigvalsh(K**2)[0] > 0.1
    assert QuadratureSparsifier(Precomputed(), trace_fraction=0.5).fit(K).certificate_.holds(1e-9)


@pytest.mark.parametrize("seed", range(70))
def test_indefinite_matrices_are_refused_or_bounded(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    K = rng.uniform(-1, 1, (n, n))
    K = (K + K.T) / 2
    np.fill_diagonal(K, rng.uniform(0.1, 1.5, n))
    S = K**2
    options = {"trace_fraction": float(rng.uniform(0.2, 1))} if seed % 2 else {"n_nodes": max(1, n - 1)}
    if np.linalg.eigvalsh(S / np.sqrt(np.outer(np.diag(S), np.diag(S))))[0] < -1e-5:
        with pytest.raises(ValueError, match="positive semi-definite"):
            QuadratureSparsifier(Precomputed(), **options).fit(K)
        return
    model = QuadratureSparsifier(Precomputed(), **options).fit(K)
    kappa, d = model.kappa_, np.diag(K)
    for u in rng.dirichlet(np.full(n, 0.4), 3000) * kappa / d:
        if model._claim.on_nodes:
            break
        assert 0.5 * (1 / n - u) @ S @ (1 / n - u) >= model.certificate_.lower


def test_where_a_factorisation_is_too_large_there_is_no_bound(monkeypatch):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    monkeypatch.setattr(definiteness, "_LARGEST", 20)
    model = QuadratureSparsifier(Precomputed(), trace_fraction=0.5).fit(Gaussian(sigma=0.7)(X))
    assert model.certificate_.lower == -np.inf
    assert "no lower bound" in model.certificate_.method
    few = QuadratureSparsifier(Precomputed(), n_nodes=10).fit(Gaussian(sigma=0.7)(X))
    assert few.certificate_.holds(1e-6)  # on the nodes alone, whose block is small
    assert QuadratureSparsifier(Gaussian(sigma=0.7), trace_fraction=0.5).fit(X).certificate_.holds(1e-9)
