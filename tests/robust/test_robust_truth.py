"""Bounds of robust regressions against their formulas with 60 digits."""

import mpmath
import numpy as np
import pytest
from exact_programme import exactly, mpf, squared
from robust_oracle import SIGMA, TAU, small_game, small_relaxation

from mercer.backends.balls import ball
from mercer.certificates import game as saddle_point
from mercer.certificates.game import certify_saddle_point, response_bound, risk_bound
from mercer.certificates.strong_convexity import certify_strongly_convex
from mercer.problems.robust_regression import Adversary
from mercer.solvers.game.barrier import Barrier
from mercer.solvers.game.newton import Newton
from mercer.solvers.run import Goal, solve

mpmath.mp.dps = 60


def inner(A, B):
    return mpmath.fsum(A[i, j] * B[i, j] for i in range(A.rows) for j in range(A.cols))


def on_all_points(formulation):
    """The basis of the densities with zeros for points that they are not made of."""
    basis, rows = formulation.bases[1], formulation.pairs.chosen_rows
    whole = np.zeros((formulation.pairs.support.size, basis.shape[1]))
    whole[rows] = basis
    return whole


class ExactGame:
    """Integrals of the game on pairs, term by term."""

    def __init__(self, formulation):
        pairs, terms = formulation.pairs, formulation.terms
        self.pairs, self.radius, self.regularization = pairs, mpf(terms.radius), mpf(terms.regularization)
        self.U, *adversary = (exactly(M) for M in formulation.bases)
        if adversary:
            self.T, self.Omega = exactly(on_all_points(formulation)), adversary[1]
        xi, eta = pairs.support.inputs, pairs.support.targets
        self.m, self.d = xi.shape
        indices = range(self.m)
        self.dx = [[squared(xi[p], xi[q]) / mpf(SIGMA) ** 2 for q in indices] for p in indices]
        self.dy = [[(mpf(float(eta[p])) - mpf(float(eta[q]))) ** 2 / mpf(TAU) ** 2 for q in indices] for p in indices]
        self.middle = [[(mpf(float(eta[p])) + mpf(float(eta[q]))) / 2 for q in indices] for p in indices]
        total = mpmath.fsum(mpf(float(w)) for w in pairs.given)
        self.shares = [mpf(float(w)) / total for w in pairs.given]
        self.near = [[mpmath.exp(-squared(x, z) / mpf(SIGMA) ** 2) for z in xi] for x in pairs.inputs]
        self.y = [mpf(float(v)) for v in pairs.targets]
        towards = [[mpmath.exp(-((t - mpf(float(e))) ** 2) / mpf(TAU) ** 2) for e in eta] for t in self.y]
        self.target = mpmath.matrix(
            [
                mpmath.fsum(w * a[r] * b[r] for w, a, b in zip(self.shares, self.near, towards, strict=True))
                for r in indices
            ]
        )

        def made(function):
            return mpmath.matrix([[function(p, q) for q in indices] for p in indices])

        self.inputs = made(lambda p, q: mpmath.exp(-self.dx[p][q]))
        self.K = made(lambda p, q: mpmath.exp(-self.dx[p][q] - self.dy[p][q]))
        self.W = made(lambda p, q: mpmath.exp(-(self.dx[p][q] + self.dy[p][q]) / 2))
        self.made = made

    def many(self, *points, both=False):
        """∫ of a product of sections over that of two, of inputs or of pairs."""
        n = len(points)
        total = mpmath.fsum(
            self.dx[i][j] + (self.dy[i][j] if both else 0) for k, i in enumerate(points) for j in points[k + 1 :]
        )
        return (mpf(2) / n) ** (mpf(self.d + both) / 2) * mpmath.exp(-total / n)

    def loss(self, alpha):
        """M with ∫ (f - y)² k_z k_zᵀ."""
        indices = range(self.m)

        def entry(p, q):
            fours = mpmath.fsum(alpha[a] * alpha[b] * self.many(a, b, p, q) for a in indices for b in indices)
            threes = mpmath.fsum(alpha[a] * self.many(a, p, q) for a in indices)
            two = self.many(p, q) * (self.middle[p][q] ** 2 + mpf(TAU) ** 2 / 4)
            return mpmath.exp(-self.dy[p][q] / 2) * (fours - 2 * threes * self.middle[p][q] + two)

        return self.made(entry)

    def sample_loss(self, alpha):
        values = [mpmath.fsum(k * a for k, a in zip(row, alpha, strict=True)) for row in self.near]
        return mpmath.fsum(w * (v - y) ** 2 for w, v, y in zip(self.shares, values, self.y, strict=True))

    def least(self, A):
        S = self.T.T * self.W * self.T
        inverse = mpmath.inverse(mpmath.cholesky((S + S.T) / 2))
        A = inverse * (self.T.T * A * self.T) * inverse.T
        return min(mpmath.eigsy((A + A.T) / 2, eigvals_only=True))

    def risk(self, beta, prices):
        alpha, c = (list(M * exactly(v[:, None])) for M, v in ((self.U, beta), (self.Omega, prices)))
        indices = range(self.m)
        paid = mpmath.fsum(a * b for a, b in zip(c, self.target, strict=True))
        price = self.made(lambda p, q: mpmath.fsum(c[r] * self.many(p, q, r, both=True) for r in indices))
        top = max(-self.least(price - self.loss(alpha)), self.sample_loss(alpha) - paid)
        column = mpmath.matrix(c)
        return top + paid + self.radius * mpmath.sqrt((column.T * self.K * column)[0])

    def objective(self, beta, F, share):
        """The learner's objective against a density of the ball, brought to mass one."""
        alpha = list(self.U * exactly(beta[:, None]))
        L = self.T * exactly(F)
        B = L * L.T
        mass = share + inner(B, self.W)
        M = self.loss(alpha)
        column = mpmath.matrix(alpha)
        spread = inner(B, M)
        penalty = self.regularization * (column.T * self.inputs * column)[0]
        return (spread + share * self.sample_loss(alpha)) / mass + penalty


def game_of(seed, **options):
    game = small_game(seed, **{"m": 4, "n": 8, **options})
    return ExactGame(game), game.problem, game.enclosures


@pytest.mark.parametrize("chosen", [None, (0, 2, 3)], ids=["all", "some"])
@pytest.mark.parametrize(("seed", "d", "truncation"), [(0, 1, 1e-6), (1, 2, 1e-6), (2, 1, 1e-12), (3, 2, 1e-12)])
def test_the_bounds_hold_the_truth(seed, d, truncation, chosen):
    exact, game, precise = game_of(seed, d=d, truncation=truncation, chosen=chosen)
    found = solve(game, Barrier(), goal=Goal(1e-7)).point
    certificate = certify_saddle_point(game, precise, found)
    risk = exact.risk(found.beta, found.prices)
    proved = risk_bound(game, precise, found.beta, found.prices)
    assert risk <= mpf(proved)
    assert proved == pytest.approx(float(risk), rel=1e-9)
    assert certificate.upper >= proved
    assert certificate.holds(1e-5)
    # any learner's worst case is above the lower bound
    for change in (0.0, 1e-9, 1e-3):
        beta = found.beta * (1 + change)
        alpha = exact.U * exactly(beta[:, None])
        whole = exact.risk(beta, found.prices) + exact.regularization * (alpha.T * exact.inputs * alpha)[0]
        assert mpf(certificate.lower) <= whole


@pytest.mark.parametrize("chosen", [None, (1, 3)], ids=["all", "some"])
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_to_a_distribution_is_bounded_from_below(seed, chosen, monkeypatch):
    """Against one and the same density, no function does better than the bound says."""
    exact, game, precise = game_of(seed, truncation=[1e-6, 1e-12][seed % 2], chosen=chosen)
    F, share = 0.3 * np.random.default_rng(seed).standard_normal((game.order, 2)), 0.4

    def as_it_is(game, precise, adversary):
        return saddle_point._normalised(precise, F, share)

    monkeypatch.setattr(saddle_point, "_admissible", as_it_is)
    bound = response_bound(game, precise, Adversary(F @ F.T, share))
    mass = share + np.sum(F**2)
    best, _ = game.best_response(Adversary(F @ F.T / mass, share / mass))
    values = [exact.objective(best * (1 + change), F, mpf(share)) for change in (0.0, 1e-12, -1e-10, 1e-6)]
    assert all(mpf(bound) <= value for value in values)
    assert bound >= float(values[0]) * (1 - 1e-6)


@pytest.mark.parametrize("chosen", [None, (0, 1, 3)], ids=["all", "some"])
@pytest.mark.parametrize("seed", range(3))
def test_an_adversary_outside_the_ball_is_drawn_into_it(seed, chosen):
    """A proof counts no distribution whose distance is not proved: the exact one is at most ε."""
    exact, game, precise = game_of(seed, radius=0.05, chosen=chosen)
    F = np.random.default_rng(seed).standard_normal((game.order, 2))
    density = saddle_point._admissible(game, precise, Adversary(F @ F.T, 0.0))
    L = mpmath.matrix(exact.m, density.factor.shape[1])
    for place, row in enumerate(range(exact.m) if chosen is None else chosen):
        for j in range(L.cols):
            L[row, j] = mpf(float(density.factor.hi[place, j])) + mpf(float(density.factor.lo[place, j]))
    B = L * L.T * (mpf(float(density.scale.hi)) + mpf(float(density.scale.lo)))
    share = mpf(float(density.share.hi)) + mpf(float(density.share.lo))
    mass = share + inner(B, exact.W)
    assert abs(mass - 1) < mpf(10) ** -25
    indices = range(exact.m)
    embedded = mpmath.matrix(
        [mpmath.fsum(B[p, q] * exact.many(p, q, r, both=True) for p in indices for q in indices) for r in indices]
    )
    rest = exact.Omega.T * (embedded - (1 - share) * exact.target)
    away = mpmath.sqrt((rest.T * mpmath.inverse(exact.Omega.T * exact.K * exact.Omega) * rest)[0])
    assert away <= exact.radius
    assert away > 0.999 * exact.radius


@pytest.mark.parametrize("chosen", [None, (0, 2, 3)], ids=["all", "some"])
def test_the_integrals_of_a_proof_hold_the_truth_and_need_their_radii(chosen):
    """The loss of a function and the form of a density, entry by entry; midpoints alone are wrong in the last digits."""
    game = small_game(5, m=4, n=8, d=2, chosen=chosen)
    exact, losses = ExactGame(game), game.enclosures.losses
    rng, rows = np.random.default_rng(0), range(4) if chosen is None else chosen
    alpha, factor = rng.standard_normal(4), rng.standard_normal((len(rows), 2))
    M = exact.loss([mpf(float(v)) for v in alpha])
    expected = [M[p, q] for p in rows for q in rows]
    checked = [(losses.loss_matrix(ball(alpha)), expected)]
    B = exactly(factor) * exactly(factor).T
    weighted = {
        (p, q): B[i, j] * mpmath.exp(-exact.dy[p][q] / 2) for i, p in enumerate(rows) for j, q in enumerate(rows)
    }
    H = [mpmath.fsum(w * exact.many(a, b, p, q) for (p, q), w in weighted.items()) for a in range(4) for b in range(4)]
    slope = [
        mpmath.fsum(w * exact.many(a, p, q) * exact.middle[p][q] for (p, q), w in weighted.items()) for a in range(4)
    ]
    found = losses.loss_form(ball(factor) @ ball(factor).T)
    checked += [(found[0], H), (found[1], slope)]
    embedded = [
        mpmath.fsum(B[i, j] * exact.many(p, q, a, both=True) for i, p in enumerate(rows) for j, q in enumerate(rows))
        for a in range(4)
    ]
    checked.append((losses.embed(ball(factor)), embedded))
    prices = [
        mpmath.fsum(mpf(float(c)) * exact.many(p, q, a, both=True) for a, c in enumerate(alpha))
        for p in rows
        for q in rows
    ]
    checked.append((losses.weighted_mass(ball(alpha)), prices))
    for balls, values in checked:
        off = [
            abs(mpf(float(hi)) + mpf(float(lo)) - value)
            for hi, lo, value in zip(balls.hi.ravel(), balls.lo.ravel(), values, strict=True)
        ]
        assert all(error <= mpf(float(radius)) for error, radius in zip(off, balls.radius.ravel(), strict=True))
        assert any(off)
        assert max(balls.radius.ravel()) < 1e-20


def relaxed_value(exact, beta, radius):
    alpha = list(exact.U * exactly(beta[:, None]))
    E = exact.made(lambda a, b: mpmath.exp(-exact.dx[a][b] / 2))
    D = mpmath.diag(alpha) * E
    fourth = D * D * D * D
    column = mpmath.matrix(alpha)
    norm = mpmath.sqrt(mpmath.fsum(fourth[i, i] for i in range(exact.m)))
    penalty = exact.regularization * (column.T * exact.inputs * column)[0]
    return exact.sample_loss(alpha) + mpf(radius) * norm + penalty


@pytest.mark.parametrize("radius", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_penalised_least_squares_hold_the_truth(seed, radius):
    relaxation = small_relaxation(seed, radius=radius, regularization=1e-3, m=5, n=9)
    found, exact = solve(relaxation.problem, Newton(), goal=Goal(1e-13)).point, ExactGame(relaxation)
    precise = relaxation.enclosures
    certificate = certify_strongly_convex(precise, found, radius=radius, regularization=1e-3)
    value = relaxed_value(exact, found, radius)
    assert value <= mpf(certificate.upper)
    for change in (0.0, 1e-12, 1e-8, 1e-4):
        assert mpf(certificate.lower) <= relaxed_value(exact, found * (1 + change), radius)
    assert certificate.holds(1e-9)
    away = found * 1.01  # far from the minimum the gradient counts
    judged = certify_strongly_convex(precise, away, radius=radius, regularization=1e-3)
    assert mpf(judged.lower) <= value <= mpf(judged.upper)


@pytest.mark.parametrize("chosen", [None, (0, 1, 2)], ids=["all", "some"])
def test_every_term_of_the_proofs_is_needed(chosen, monkeypatch):
    """Without the factorisation's margin, or the gradient's square, a bound is false."""
    exact, game, precise = game_of(0, truncation=1e-12, chosen=chosen)
    monkeypatch.setattr(
        saddle_point, "least_ratio", lambda A, S: float(np.linalg.eigvals(np.linalg.solve(S.hi, A.hi)).real.min())
    )
    false = 0
    for beta, prices in np.random.default_rng(0).standard_normal((8, 2, 40)):
        beta, prices = 9 * beta[: game.n_functions], prices[: game.goal.size]
        false += exact.risk(beta, prices) > mpf(risk_bound(game, precise, beta, prices))
    assert false
    monkeypatch.undo()
    relaxation = small_relaxation(1, radius=0.0, regularization=1e-3, m=5, n=9)
    problem = relaxation.problem
    best = solve(problem, Newton(), goal=Goal(1e-13)).point
    judged = certify_strongly_convex(relaxation.enclosures, 1.1 * best, radius=0.0, regularization=1e-3)
    assert problem.value(best) < problem.value(1.1 * best) * 0.999
    assert judged.lower < problem.value(best) * (1 + 1e-12)  # by the square of the gradient
