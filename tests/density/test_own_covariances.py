"""Densities of Gaussians with covariances of their own: closed forms, proofs, answers, and the automatic choice."""

import mpmath
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture

import mercer
from mercer import Gaussian, MeanEmbedding, SumOfSquaresDensity
from mercer.certificates import certify_likelihood
from mercer.density.likelihood_problem import make_likelihood
from mercer.density.robust_mixture import fit_mixture
from mercer.density.signed_normals import SignedNormals
from mercer.kernels.integrals import gaussian_section_enclosures
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.problems.sum_of_squares_enclosures import Sample


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    first = rng.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], 150)
    second = rng.multivariate_normal([3, 0], [[0.1, 0.0], [0.0, 2.0]], 100)
    return rng.permutation(np.concatenate([first, second]))


def random_sections(seed, K=4, d=3, factors=(1.0, 3.0)):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((K, d, d))
    roots = np.linalg.cholesky(np.linalg.inv(A @ np.transpose(A, (0, 2, 1)) + 0.2 * np.eye(d)))
    return GaussianSections(rng.standard_normal((K, d)), roots, np.array(factors))


def likelihood(**options):
    return SumOfSquaresDensity(objective="likelihood", random_state=0, **options)


def test_sections_are_roots_of_normal_densities():
    sections = random_sections(0)
    x = np.random.default_rng(1).standard_normal((20, 3))
    laws = [
        multivariate_normal(mean, covariance)
        for mean, covariance in zip(sections.points, sections.covariances, strict=True)
    ]
    expected = np.stack([np.sqrt(law.pdf(x)) for law in laws], axis=1)
    found = np.exp(sections.log_values(x) - 0.5 * sections.log_scale)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert sections.n_numbers == 4 * (3 + 6) + 2


def test_their_products_integrate_as_quadrature_says():
    sections = random_sections(2, K=3, d=2)
    axis = np.linspace(-25, 25, 501)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(sections.log_values(grid) - 0.5 * sections.log_scale)
    np.testing.assert_allclose(sections.mass(), values.T @ values * (axis[1] - axis[0]) ** 2, atol=1e-9)
    np.testing.assert_allclose(np.diag(sections.mass()), 1.0, rtol=1e-13)


def _exact(sections):
    """W and sections at a point, to 60 digits, from the numbers of the sections alone."""
    K, f, d = sections.means.shape[0], sections.factors.size, sections.n_features
    P = []
    for c in sections.factors:
        for root in sections.roots:
            L = mpmath.matrix(root.tolist())
            P.append(L * L.T / mpmath.mpf(float(c)))
    means = [mpmath.matrix(mean.tolist()) for mean in np.tile(sections.means, (f, 1))]

    def entry(i, j):
        apart = means[i] - means[j]
        S = P[i] + P[j]
        form = (apart.T * P[i] * mpmath.lu_solve(S, P[j] * apart))[0]
        height = (mpmath.det(P[i]) * mpmath.det(P[j])) ** mpmath.mpf("0.25") / mpmath.sqrt(mpmath.det(S))
        return mpmath.mpf(2) ** (mpmath.mpf(d) / 2) * height * mpmath.exp(-form / 4)

    def density(j, x):
        apart = mpmath.matrix(x.tolist()) - means[j]
        return mpmath.sqrt(mpmath.det(P[j]) / (2 * mpmath.pi) ** d) * mpmath.exp(-(apart.T * P[j] * apart)[0] / 2)

    return K * f, entry, density


@pytest.mark.parametrize("seed", [0, 1])
def test_balls_hold_the_exact_integrals_and_sections(seed):
    sections = random_sections(seed, K=2, d=3)
    X = np.random.default_rng(seed).standard_normal((3, 3))
    enclosures = sections.enclosures()
    W, values = enclosures.mass(), next(iter(enclosures.sections(X)))[1]
    with mpmath.workdps(60):
        m, entry, density = _exact(sections)
        for i in range(m):
            for j in range(m):
                off = abs(entry(i, j) - mpmath.mpf(W.hi[i, j]) - mpmath.mpf(W.lo[i, j]))
                assert off <= W.radius[i, j]
                assert W.radius[i, j] < 1e-24
        tallest = max(density(j, sections.points[j]) for j in range(m))
        for row in range(3):
            for j in range(m):
                off = mpmath.sqrt(density(j, X[row]) / tallest) - mpmath.mpf(values.hi[row, j])
                assert abs(off - mpmath.mpf(values.lo[row, j])) <= values.radius[row, j]


def _one_density(seed, scale=1.0, far=False):
    """A programme of one section alone, whose only density is known exactly, and its objective.

    Points that are ``far`` make the squares in the exponent balance the logarithm of the height: the objective is
    small, and what rounds in either shows.
    """
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    root = scale * np.tril(rng.standard_normal((1, d, d)) * 0.3)
    root[0, range(d), range(d)] = scale * np.exp(rng.uniform(-1, 1, d))
    sections = GaussianSections(rng.standard_normal((1, d)) / scale, root, np.array([rng.uniform(0.5, 2.0)]))
    y = rng.standard_normal((7, d))
    if far:
        y *= np.sqrt(-2 * float(sections.factors[0]) * sections.log_scale) / np.linalg.norm(y, axis=1)[:, None]
    X = sections.means + y @ np.linalg.inv(root[0])
    penalty = float(rng.uniform(0, 0.1))
    problem = make_likelihood(sections, Sample(X, None), regularization=penalty, truncation=1e-10)
    with mpmath.workdps(60):
        density = _exact(sections)[2]
        value = mpmath.mpf(penalty) - sum(mpmath.log(density(0, x)) for x in X) / len(X)
    return problem, value


def _is_wrong(problem, value):
    proof = certify_likelihood(problem, np.ones((1, 1)))
    return not mpmath.mpf(proof.lower) <= value <= mpmath.mpf(proof.upper)


@pytest.mark.parametrize(("scale", "far"), [(1.0, False), (1e-40, False), (1e40, False), (1e40, True)])
def test_bounds_hold_the_exact_objective_of_the_only_density(scale, far):
    for seed in range(8):
        problem, value = _one_density(seed, scale, far)
        proof = certify_likelihood(problem, np.ones((1, 1)))
        assert mpmath.mpf(proof.lower) <= value <= mpmath.mpf(proof.upper)
        assert proof.gap < 1e-10


def test_without_the_allowance_for_the_logarithm_of_the_scale_bounds_are_wrong():
    """Logarithms of heights are doubles: their rounding decides on which side of the objective a bound is."""
    wrong = 0
    for seed in range(8):
        problem, value = _one_density(seed, 1e40, far=True)
        problem.integrals.log_scale_error = 0.0
        wrong += _is_wrong(problem, value)
    assert wrong > 0


def test_without_the_radii_of_sections_bounds_are_wrong(monkeypatch):
    """Exponentials of double precision, with their error and without it, under a scale that is an exact number."""

    def rounded(x, radius):
        return gaussian_section_enclosures.Ball(np.exp(x.hi), 0.0, radius * np.exp(x.hi) * (2 + np.abs(x.hi)))

    for radius, fails in ((2.0**-52, False), (0.0, True)):
        monkeypatch.setattr(gaussian_section_enclosures, "exponential", lambda x, radius=radius: rounded(x, radius))
        wrong = 0
        for seed in range(8):
            problem, value = _one_density(seed, 1e40, far=True)
            sections = problem.integrals
            with mpmath.workdps(60):
                height = mpmath.log(_exact(sections)[2](0, sections.means[0]))
                value += height + mpmath.mpf(sections.log_scale)
                sections.log_scale_error = 0.0
                wrong += _is_wrong(problem, value)
        assert (wrong > 0) == fails


def test_the_diagonal_holds_the_mixture_and_the_rest_goes_beyond(X):
    model = likelihood(support=("mixture", 2), scales=(1,), regularization=0.0).fit(X)
    sections = model.sections_
    mixture = GaussianMixture(2, weights_init=None, random_state=0).fit(X)
    assert model.log_likelihood_ > mixture.score(X) - 1e-3
    values = np.exp(sections.log_values(X) - 0.5 * sections.log_scale)
    for share in np.linspace(0.01, 0.99, 25):  # of all mixtures of the same parts
        assert np.mean(np.log(values**2 @ [share, 1 - share])) <= model.log_likelihood_ + 1e-9
    W = sections.mass()
    assert np.trace(model.coefficients_ @ W) == pytest.approx(1.0, abs=1e-9)
    p = np.einsum("ij,jk,ik->i", values, model.coefficients_, values)
    np.testing.assert_allclose(model.density(X), p, rtol=1e-9)


@pytest.fixture(scope="module")
def fitted(X):
    return likelihood(support=("mixture", 4)).fit(X)


def test_one_eigenvalue_proves_it(X, fitted):
    sections, n = fitted.sections_, len(X)
    values, W = np.exp(sections.log_values(X) - 0.5 * sections.log_scale), sections.mass()
    gamma = (values / (n * fitted.density(X))[:, None]).T @ values
    slack = W * (1 - fitted.regularization_ * np.trace(fitted.coefficients_)) - gamma
    slack += fitted.regularization_ * np.eye(len(W))
    assert np.linalg.eigvalsh(slack)[0] > -1e-9
    assert np.sum(slack * fitted.coefficients_) == pytest.approx(0.0, abs=1e-9)
    assert fitted.regularization_ == pytest.approx(10 / n)
    assert fitted.certificate_.gap < 1e-8


def test_it_is_a_density_with_moments_marginals_and_conditionals(X, fitted):
    axis = np.linspace(-40, 40, 801)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    p = fitted.density(grid).reshape(801, 801)
    cell = (axis[1] - axis[0]) ** 2
    assert p.sum() * cell == pytest.approx(1.0, abs=1e-6)
    mean = np.array([(p.sum(axis=1) * axis).sum(), (p.sum(axis=0) * axis).sum()]) * cell
    np.testing.assert_allclose(fitted.mean(), mean, atol=1e-6)
    assert fitted.covariance()[0, 1] == pytest.approx(
        (axis[:, None] * axis * p).sum() * cell - mean[0] * mean[1], abs=1e-5
    )
    first = fitted.marginal([0])
    np.testing.assert_allclose(first.density(axis[:, None]), p.sum(axis=1) * (axis[1] - axis[0]), atol=1e-8)
    line = p[np.searchsorted(axis, 3.0)]
    given = fitted.conditional([0], [3.0])
    np.testing.assert_allclose(given.density(axis[:, None]), line / (line.sum() * (axis[1] - axis[0])), atol=1e-8)
    levels = np.array([0.05, 0.5, 0.99])
    np.testing.assert_allclose(first.cdf(first.quantile(levels)), levels, atol=1e-12)
    assert isinstance(fitted._law(), SignedNormals)


def test_samples_follow_the_density(fitted):
    drawn = fitted.sample(20_000, random_state=1)
    np.testing.assert_allclose(drawn.mean(axis=0), fitted.mean(), atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T), fitted.covariance(), atol=0.15)
    first = np.sort(drawn[:, 0])
    levels = (np.arange(first.size) + 0.5) / first.size
    assert np.max(np.abs(fitted.marginal([0]).cdf(first) - levels)) < 1.95 / np.sqrt(first.size)
    assert fitted.sampling_error_ < 1e-12


def test_negative_weights_are_rejected_exactly():
    """A square of a difference, with a zero in the middle."""
    sections = GaussianSections(np.array([[-0.5], [0.5]]), np.ones((1, 1, 1)), np.ones(1))
    law = SignedNormals.of_squares(sections, np.array([[1.0], [-1.0]]))
    assert law.acceptance_rate < 0.2
    x = np.linspace(-6, 6, 1201)[:, None]
    p = (np.sqrt(norm.pdf(x, -0.5)) - np.sqrt(norm.pdf(x, 0.5)))[:, 0] ** 2
    np.testing.assert_allclose(law.density(x), p / (p.sum() * 0.01), atol=1e-6)
    drawn = np.sort(law.sample(5000, np.random.default_rng(0))[:, 0])
    assert np.max(np.abs(law.cdf(drawn) - (np.arange(5000) + 0.5) / 5000)) < 1.95 / np.sqrt(5000)


def test_the_gradient_of_the_logarithm_is_that_of_differences(X, fitted):
    x, step = X[:5], 1e-6
    found = fitted.log_gradient(x)
    for k in range(2):
        e = step * np.eye(2)[k]
        expected = (fitted.score_samples(x + e) - fitted.score_samples(x - e)) / (2 * step)
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-5, atol=1e-6)


def test_logarithms_are_finite_far_away_and_tensors_give_the_same(X, fitted):
    far = np.array([[1e4, -1e4]])
    assert -1e12 < fitted.score_samples(far)[0] < -1e4
    torch = pytest.importorskip("torch")
    tensors = likelihood(support=("mixture", 4)).fit(torch.as_tensor(X))
    assert isinstance(tensors.sample(3, random_state=0), torch.Tensor)
    assert tensors.log_likelihood_ == pytest.approx(fitted.log_likelihood_, abs=1e-6)


def test_files_verification_and_damage(X, fitted, tmp_path):
    mercer.save(fitted, tmp_path / "density.mercer")
    again = mercer.load(tmp_path / "density.mercer")
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    np.testing.assert_array_equal(again.sample(5, random_state=0), fitted.sample(5, random_state=0))
    assert mercer.verify(again, X).gap < 1e-8
    good = again.sections_
    for bad in (
        None,
        GaussianSections(good.means + 0.01, good.roots, good.factors),
        GaussianSections(good.means, good.roots * 1.01, good.factors),
        GaussianSections(good.means, good.roots, good.factors * 2),
        GaussianSections(good.means[:, :1], good.roots[:, :1, :1], good.factors),
    ):
        again.sections_ = bad
        with pytest.raises(ValueError, match="damaged"):
            mercer.verify(again, X)
    again.sections_ = good
    with pytest.raises(ValueError, match="damaged|data"):
        mercer.verify(again, X + 0.1)


def test_several_widths_at_a_point_do_no_worse_than_one(X):
    one, two = (
        likelihood(kernel=Gaussian(1.0), support=X[::10], scales=scales, regularization=0.0).fit(X)
        for scales in ((1.0,), (4.0, 1.0))
    )
    plain = likelihood(kernel=Gaussian(1.0), support=X[::10], regularization=0.0).fit(X)
    assert one.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-7)
    assert two.log_likelihood_ > one.log_likelihood_ + 0.01
    assert two.sections_.factors.tolist() == [1.0, 4.0]


def test_the_call_without_arguments_predicts_as_well_as_a_tuned_mixture():
    rng = np.random.default_rng(3)
    draws = [
        rng.multivariate_normal([0, 0, 0], np.diag([1, 4, 0.1]), 250),
        np.add(rng.standard_t(3, (150, 3)), [4, 0, 0]),
    ]
    X = rng.permutation(np.concatenate(draws))
    fit, fresh = X[:300], X[300:]
    model = likelihood().fit(fit)
    best = max(GaussianMixture(k, random_state=0).fit(fit).score(fresh) for k in (1, 2, 3, 4))
    assert model.score(fresh) > best - 0.05
    assert model.certificate_.gap < 1e-8
    assert model.sections_.n_numbers + model.factor_.size < fit.size / 5


def test_bumps_of_one_shape_are_chosen_where_the_law_follows_a_curve():
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 240), np.repeat([1.0, 3.0], [80, 160])
    rings = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + 0.3 * rng.standard_normal((240, 2))
    assert likelihood().fit(rings).sections_.roots.shape[0] == 1
    assert likelihood(support="mixture").fit(rings).sections_.roots.shape[0] > 1


@pytest.mark.parametrize("apart", [12.0, 1e6])
@pytest.mark.parametrize("support", ["auto", ("mixture", 2)])
def test_one_far_row_leaves_the_density_of_the_rest_alone(X, support, apart):
    rng = np.random.default_rng(7)
    fresh = np.concatenate(
        [
            rng.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], 600),
            rng.multivariate_normal([3, 0], [[0.1, 0.0], [0.0, 2.0]], 400),
        ]
    )
    far = X.mean(axis=0) + apart * X.std(axis=0) * [0.8, 0.6]
    alone = likelihood(support=support).fit(X)
    model = likelihood(support=support).fit(np.vstack([X, far]))
    assert model.score(fresh) > alone.score(fresh) - 0.02
    assert np.mean(np.abs(model.score_samples(fresh) - alone.score_samples(fresh))) < 0.1
    assert model.score_samples(far[None])[0] > -2 * np.log(apart) - 15  # a row's worth of mass is there
    assert model.certificate_.gap < 1e-8


def test_a_mixture_beside_a_constant_is_that_of_the_rows_that_are_near():
    rng = np.random.default_rng(8)
    near = np.concatenate([rng.normal(0, 1, (150, 3)), rng.normal(6, 0.5, (100, 3))])
    far = np.array([[40.0, 0.0, 0.0], [0.0, -500.0, 1e4]])
    expected = GaussianMixture(2, random_state=0, tol=1e-6).fit(near)
    found = fit_mixture(np.concatenate([near, far]), 2, 0, 3)
    order, right = np.argsort(found.means[:, 0]), np.argsort(expected.means_[:, 0])
    np.testing.assert_allclose(found.shares[order], expected.weights_[right], atol=1e-3)
    np.testing.assert_allclose(found.means[order], expected.means_[right], atol=1e-3)
    np.testing.assert_allclose(found.covariances[order], expected.covariances_[right], atol=5e-3)


def test_weights_count_in_the_choice_and_in_the_fit(X):
    weights = (X[:, 0] < 1.5).astype(float)
    model = likelihood(support=("mixture", 1)).fit(X, sample_weight=weights)
    assert model.mean()[0] == pytest.approx(X[weights > 0, 0].mean(), abs=0.2)
    assert mercer.verify(model, X).gap < 1e-8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "projection", "support": "mixture"}, "goes with objective='likelihood'"),
        ({"objective": "projection", "scales": (1, 2)}, "goes with objective='likelihood'"),
        ({"support": ("mixture", 0)}, "number of parts"),
        ({"support": "mixture", "kernel": Gaussian(1.0)}, "leave out the kernel"),
        ({"scales": (1, -2)}, "positive numbers"),
        ({"scales": (1, 1)}, "equal numbers"),
        ({"scales": "wide"}, "positive numbers"),
        ({"box": (-10.0, 10.0)}, "without a box"),
        ({"kernel": mercer.Laplacian(1.0), "scales": (1, 2)}, "Gaussian kernel"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(X, options, message):
    with pytest.raises(ValueError, match=message):
        SumOfSquaresDensity(**{"objective": "likelihood"} | options).fit(X)


def test_a_constant_column_is_named(X):
    with pytest.raises(ValueError, match="Column 2 of X has one value alone"):
        likelihood().fit(np.column_stack([X, np.ones(len(X))]))


def test_it_has_no_embedding_under_one_kernel(fitted):
    with pytest.raises(ValueError, match="embed a sample"):
        MeanEmbedding.of_density(fitted)


@pytest.mark.parametrize(
    "points",
    [
        np.random.default_rng(0).standard_normal((5, 8)),  # fewer rows than columns
        np.random.default_rng(1).standard_normal((2, 1)),
        np.repeat(np.random.default_rng(2).standard_normal((4, 2)), 10, axis=0),
        1e-30 * np.random.default_rng(3).standard_normal((40, 2)),
        1e6 + np.random.default_rng(4).standard_normal((40, 2)),
    ],
    ids=["few rows", "two points", "equal points", "small units", "far from zero"],
)
def test_samples_that_are_hard_to_choose_for_are_fitted_and_proved_all_the_same(points):
    model = likelihood().fit(points)
    assert np.all(np.isfinite(model.score_samples(points)))
    assert mercer.verify(model, points).gap < 1e-6
