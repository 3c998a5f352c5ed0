"""Calls that ended in NaN, in a warning or in the words of another library once: each has its sentence or its answer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    ChiSquared,
    ConditionalMeanEmbedding,
    DiffusionMaps,
    FisherDiscriminant,
    FromDistance,
    Gaussian,
    GramOperator,
    KernelDimensionReduction,
    Kernelized,
    KernelPCA,
    Landmarks,
    Laplacian,
    Linear,
    LocallyLinear,
    MaximumVarianceUnfolding,
    NoveltyDetector,
    Polynomial,
    RobustKernelClassifier,
    RobustKernelRegressor,
    RobustKernelRidge,
    RoweisDiscriminant,
    SDPEmbedding,
    SelfTuning,
    Sigmoid,
    Sobolev,
    SumOfSquaresDensity,
    SupervisedPCA,
    conditional_independence_test,
    hsic,
    hsic_test,
    kernel_herding,
    mmd_test,
    nystrom_completion,
    plane_map,
    verify,
)
from mercer.backends.rounding import EntryError
from mercer.dependence.aggregation import aggregated, standardised
from mercer.operators.diffusion import DegenerateKernelError
from mercer.problems.kernelized import KernelizedProgramme

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
Y = X[:, 0] + 0.1 * rng.standard_normal(30)
WORDS = np.array(["left", "right"])[np.arange(30) % 2]


# --- targets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConditionalMeanEmbedding, RobustKernelRegressor, RobustKernelRidge])
def test_words_are_no_targets_of_a_regression(kind):
    with pytest.raises(ValueError, match="y has 'left' in row 0, which is no number: pass numbers"):
        kind().fit(X, WORDS)


def test_numbers_that_are_written_as_words_are_targets():
    fits = [RobustKernelRegressor(radius=0.0).fit(X, y).predict(X) for y in (Y, Y.astype(str))]
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("model", [RobustKernelClassifier(), FisherDiscriminant()])
def test_targets_too_large_for_labels_are_refused(model):
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, 1e150 * Y)


def test_huge_targets_of_a_projection():
    model = SupervisedPCA(y_kernel=Linear()).fit(X, Y)
    large = SupervisedPCA(y_kernel=Linear()).fit(X, 1e150 * Y)
    np.testing.assert_allclose(large.predict(X), 1e150 * model.predict(X), rtol=1e-9)


def test_a_robust_regression_with_huge_targets():
    with pytest.raises(ValueError, match="y has entries of size .*, whose squares leave double precision"):
        RobustKernelRidge(support=8, relaxation="rkhs").fit(X, 1e145 * Y)
    with pytest.warns(ConvergenceWarning):  # nearly all of the loss is in the tails
        model = RobustKernelRegressor(loss="huber", regularization=1e-8, max_iter=60).fit(X, 1e100 * Y)
    assert np.isfinite(model.predict(X)).all()


# --- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Polynomial(2), Gaussian() + Linear(), FromDistance("cityblock")])
def test_a_kernel_that_overflows_names_itself(kernel):
    points = 1e200 * X
    with pytest.raises(ValueError, match=" overflows at row 0 of X: bring the points, or its parameters"):
        GramOperator(kernel.resolve(X), points)
    with pytest.raises(ValueError, match="no finite numbers| overflows at row 0 of X"):
        ConditionalMeanEmbedding(kernel).fit(points, Y)


def test_a_normalised_kernel_that_overflows_says_so():
    with pytest.raises(ValueError, match="leaves floating point cannot be normalised: bring the points"):
        Landmarks(5, kernel=Polynomial(2).normalized()).fit(1e200 * X)


def test_neighbours_at_distances_that_overflow():
    with pytest.raises(ValueError, match="The distance of two neighbours is no finite number: bring the points"):
        LocallyLinear(3).resolve(1e300 * X[:, :1])


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_an_unfolding_whose_variance_is_no_number_is_refused(size):
    with pytest.raises(ValueError, match="their variance is no number of double precision: (divide|multiply) X"):
        MaximumVarianceUnfolding(connect=True).fit(size * X)


@pytest.mark.parametrize("size", [1e-300, 1e-120, 1e120, 1e300])
def test_centres_of_k_means_do_not_depend_on_the_unit(size):
    first, second = (Landmarks(6, strategy="k-means", random_state=0).fit(points) for points in (X, size * X))
    np.testing.assert_array_equal(first.indices_, second.indices_)
    if size in (1e-120, 1e120):
        return
    points = [
        SumOfSquaresDensity(support=("kmeans", 3), random_state=0).fit(part * X[:, :1]).support_ for part in (1, 1e-80)
    ]
    np.testing.assert_allclose(points[0], 1e80 * points[1], rtol=1e-9)


def test_landmarks_among_points_that_differ_in_their_last_digits():
    points = np.repeat(X[:2], 5, axis=0) * (1 + 1e-15 * np.arange(10)[:, None])
    assert KernelPCA(Gaussian(sigma=1.0), n_components=1, landmarks=4, random_state=0).fit(points).embedding_.shape == (
        10,
        1,
    )


@pytest.mark.parametrize("size", [1e-200, 1e300])
def test_herding_moves_points_the_same_way_in_any_unit(size):
    first, second = (kernel_herding(points, 4, kernel=Gaussian(), refine=True) for points in (X, size * X))
    np.testing.assert_allclose(second.points / size, first.points, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(second.distances, first.distances, rtol=1e-6)


def test_eigenvalues_that_weights_carry_out_of_double_precision_are_refused():
    with pytest.raises(ValueError, match="which go as weights do, leave double precision: divide sample_weight"):
        KernelPCA(Polynomial(2), random_state=0).fit(1e6 * X, sample_weight=np.full(30, 1e290))


def test_centres_of_points_at_the_end_of_double_precision():
    points = 1.7e308 * (X / np.abs(X).max())
    first, second = (Landmarks(6, strategy="k-means", random_state=0).fit(each) for each in (X, points))
    np.testing.assert_array_equal(first.indices_, second.indices_)


def test_an_eigenvalue_below_the_rounding_of_the_largest_is_verified():
    points = np.round(3 * X[:, :2])
    points[-1] = 3e6
    model = KernelPCA(Linear(), certify=True, random_state=0).fit(points)
    assert verify(model, points).holds(1e-6)
    model.explained_variance_ratio_ = model.explained_variance_ratio_ * [1, 1.001]
    with pytest.raises(ValueError, match="explained_variance_ratio_ is not what the trace gives"):
        verify(model, points)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_a_map_of_extreme_coordinates_is_refused(size):
    with pytest.raises(ValueError, match="whose squares leave double precision: scale them"):
        plane_map(size * X)


def test_a_dimension_reduction_of_tiny_points_is_refused():
    with pytest.raises(
        ValueError, match='gradients by such points leave double precision: bring X .* scaling="columns"'
    ):
        KernelDimensionReduction(1, scaling=None).fit(1e-200 * X, Y)


def test_a_completion_that_overflows_is_refused():
    with pytest.raises(ValueError, match="entries beyond double precision: divide both"):
        nystrom_completion([[1.0]], [[1e200, 2.0]])


def test_weights_that_count_too_much_are_refused():
    with pytest.raises(ValueError, match="sample_weight says how often each row counts: its sum"):
        hsic(X, Y, sample_weight=np.full(30, 1e300))


# --- what vanishes --------------------------------------------------------------------------------------------------


def test_a_kernel_that_vanishes_has_no_conditional_mean():
    with pytest.raises(ValueError, match="vanishes on every point: choose another kernel"):
        ConditionalMeanEmbedding(Linear(), regularization=1e-3).fit(0 * X, Y)


def test_variables_that_a_kernel_does_not_tell_apart_are_refused():
    tiny = np.arange(30.0)[:, None] * 1e-200
    with pytest.raises(ValueError, match="The rows of X are all alike to Gaussian"):
        conditional_independence_test(tiny, Y, X, x_kernel=Gaussian(1.0), rng=0)
    with pytest.raises(ValueError, match="The rows of Z are all alike to Gaussian"):
        conditional_independence_test(X, Y, tiny, z_kernel=Gaussian(1.0), rng=0)


def test_a_compressed_test_of_three_rows_is_refused():
    with pytest.raises(ValueError, match="compress needs 4 rows, not 3: leave it out"):
        hsic_test(X[:3], Y[:3], compress=5, rng=0)
    assert np.isfinite(hsic_test(X[:4], Y[:4], Gaussian(), compress=5, rng=0).statistic)


def test_a_mean_of_length_zero():
    programme = KernelizedProgramme(
        np.array([[0.125, -0.125], [-0.125, 0.125]]),
        np.array([0.5, 0.5]),
        np.ones(2),
        1.0,
        EntryError(1e-15),
        np.zeros(2),
    )
    np.testing.assert_array_equal(programme.mean, [0.0, 0.0])
    assert np.isfinite(programme.centred).all()


def test_folds_of_a_cross_validation_with_one_class():
    y = (np.arange(8) == 0).astype(int)
    model = RoweisDiscriminant(1.0, 1.0, regularization="cv", random_state=0).fit(X[:8], y)
    assert np.isfinite(model.transform(X)).all()


def test_classes_without_any_spread():
    points, labels = np.array([[1e8 - 1], [1e8], [1e8 + 1e6]]), [0, 0, 1]
    model = RoweisDiscriminant(0.0).fit(points, labels, sample_weight=[0.0, 1.0, 1.0])
    np.testing.assert_array_equal(model.predict(points), labels)
    np.testing.assert_allclose(model.predict_proba(points), np.eye(2)[labels], atol=1e-12)


def test_a_reference_that_no_node_of_the_kernel_meets_is_refused():
    points = np.concatenate([X, [[1e6, 0.0, 0.0]]])
    with pytest.raises(ValueError, match="vanishes at all nodes of the reference|quadrature"):
        SumOfSquaresDensity(Sobolev(2.0, 1.0), random_state=0).fit(points)


def test_a_density_of_an_indefinite_kernel_is_refused():
    with pytest.raises(ValueError, match="is not positive semi-definite, so that it has no densities"):
        SumOfSquaresDensity(Sigmoid()).fit(X)


def test_functions_whose_mean_is_zero_are_verified():
    points = np.random.default_rng(9).integers(0, 2, (30, 3)).astype(float)
    model = KernelPCA(Gaussian(1e-3), certify=True, random_state=0).fit(points)
    assert verify(model, points).holds(1e-6)


# --- what lies far apart --------------------------------------------------------------------------------------------


def test_a_diffusion_around_an_outlier_of_little_weight():
    points = np.concatenate([X, [[1e6, 1e6, 1e6]]])
    model = DiffusionMaps(Gaussian(1.0), random_state=0).fit(points, sample_weight=[*np.ones(30), 1e-170])
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(points)).all()
    assert model.embedding_[-1, 0] == pytest.approx(np.abs(model.embedding_).max())


def test_scores_of_one_resample_apart_from_all_others_are_finite():
    statistics = np.array([[2.0, *[1.0] * 20], [0.0, *[1.0] * 20], [1.0, *[1.0] * 20]])
    scores = standardised(statistics)
    assert np.isfinite(scores).all()
    apart = np.abs(scores[:2, 0])
    assert (apart > np.abs(standardised(np.arange(21.0) ** 3 * np.ones((1, 1)))).max()).all()
    found = aggregated(statistics)
    assert (found.observed, found.best) == (apart[0], 0)
    assert found.pvalue == 1 / 21


def test_features_of_a_kernel_whose_entries_come_of_solves():
    points = np.rint(3 * (np.random.default_rng(24).standard_normal((60, 2)) + 1))
    model = Kernelized(PCA(1), LocallyLinear(5), random_state=0).fit(points)
    values, dense = model._features_of(points), LocallyLinear(5).resolve(points)(points)
    np.testing.assert_allclose(values @ values.T, dense, rtol=0, atol=1e-8 * np.abs(dense).max())


def test_rows_without_weight_are_points_of_the_kernel_too():
    points, weights = np.abs(X), (np.arange(30) > 0).astype(float)
    points[0, 0] = -1.0
    for model in (RobustKernelClassifier(ChiSquared()), NoveltyDetector(kernel=ChiSquared())):
        with pytest.raises(ValueError, match="X is negative in row 0, column 0: the chi-squared kernel"):
            model.fit(points, *([WORDS] if "Robust" in repr(model) else []), sample_weight=weights)


@pytest.mark.filterwarnings("ignore:.*stationary for its rank")
def test_radii_of_further_levels_whose_squares_overflow_are_refused():
    own = np.random.default_rng(84)
    points, weights = own.standard_normal((25, 7)).astype("float16").astype(float), 1e300 * (own.random(25) + 0.1)
    kernel = SelfTuning(5, scale_neighbor=3, pair_scale="mean", connect=True)
    model = SDPEmbedding(kernel, initial_rank=2, solver="accelerated", radius="paper", random_state=0)
    model.fit(points, sample_weight=weights)
    assert np.isfinite(model.transform(100 * points)).all()
    with pytest.raises(ValueError, match="so far from the data that its radius overflows: use radius='capped'"):
        model.transform(1000 * points)


def test_row_sums_that_cancel_to_rounding_are_refused():
    line = np.outer(np.linspace(-1, 1, 25), np.ones(3)) * 1e-20
    with pytest.raises(DegenerateKernelError, match="which is rounding beside its diagonal: diffusion needs positive"):
        SDPEmbedding(FromDistance("cityblock"), solver="power", random_state=0).fit(line)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_new_points_of_an_unfolding_at_distances_whose_squares_overflow(size):
    first, second = (MaximumVarianceUnfolding(connect=True).fit(part * (X + 5e8)) for part in (1.0, size))
    far = 1e3 * (X[:3] + 5e8)
    np.testing.assert_allclose(second.transform(size * far) / size, first.transform(far), rtol=1e-3)
    with pytest.raises(ValueError, match="Row 1 of X is so far from the data that squares of its distances"):
        first.transform([[0, 0, 0], [1e200, 0, 0]])


def test_an_unfolding_of_large_distances_and_tiny_weights():
    points, weights = X[:4] * 1e156, np.full(4, 1e-200)
    model = MaximumVarianceUnfolding(2, connect=True).fit(points, sample_weight=weights)
    plain = MaximumVarianceUnfolding(2, connect=True).fit(X[:4])
    np.testing.assert_allclose(model.eigenvalues_ / 1e112, plain.eigenvalues_, rtol=1e-3)


def test_multipliers_that_overflow_are_refused():
    own = np.random.default_rng(56)
    points, weights = 1e-150 * np.concatenate([own.standard_normal((3, 3))[:2], np.full((1, 3), 1e6)]), own.random(3)
    with pytest.raises(ValueError, match="The multiplier of rows . and ., which goes as weights do, leaves"):
        MaximumVarianceUnfolding(connect=True, tol=1e-2).fit(points, sample_weight=1e300 * (weights + 0.1))


@pytest.mark.parametrize("size", [1e-140, 1e-9, 1e150])
def test_a_shrinkage_does_not_depend_on_the_unit(size):
    first, second = (
        RoweisDiscriminant(r2=1.0, regularization="shrinkage", random_state=0).fit(part * X, Y) for part in (1.0, size)
    )
    np.testing.assert_allclose(second.eigenvalues_, first.eigenvalues_, rtol=1e-9)


def test_a_density_beyond_the_largest_number_is_refused():
    model = SumOfSquaresDensity(Laplacian(), reference="gaussian", random_state=0).fit(1e-120 * X)
    assert (model.score_samples(1e-120 * X) > 710).all()
    with pytest.raises(
        ValueError, match="The density at row 0 of X is e.*, which exceeds the largest number: ask score"
    ):
        model.density(1e-120 * X)


@pytest.mark.parametrize("kind", [RobustKernelRegressor, RobustKernelRidge])
def test_a_target_far_from_all_others_of_hardly_any_weight(kind):
    y, weights = (np.arange(30) == 0).astype(float), np.where(np.arange(30) == 0, 1e-170, 1.0)
    own = {"kernel": Linear()} if kind is RobustKernelRegressor else {"support": 8, "radius": 0.01, "random_state": 0}
    model = kind(tol=1e-3, max_iter=60, **own).fit(X, y, sample_weight=weights)
    assert model.certificate_.holds(1e-3)
    assert verify(model, X, y).holds(2e-3)


@pytest.mark.filterwarnings("ignore:.*is not characteristic")
@pytest.mark.parametrize("null", ["gamma", "spectral"])
def test_nulls_by_formula_do_not_depend_on_the_unit(null):
    first, second = (
        mmd_test(size * X[:15], size * X[15:] + size, Linear(), null=null, n_resamples=39, rng=0)
        for size in (1.0, 2.0**498)
    )
    assert first.pvalue == pytest.approx(second.pvalue, abs=0.1 if null == "spectral" else 1e-12)
    assert np.isfinite(second.null_distribution).all()
    first, second = (
        hsic_test(size * X, Y, Linear(), Gaussian(), null=null, n_resamples=39, rng=0) for size in (1.0, 2.0**498)
    )
    assert first.pvalue == pytest.approx(second.pvalue, abs=0.1 if null == "spectral" else 1e-12)


def test_far_points_are_rebuilt_from_neighbours_in_any_unit():
    size = 2.0**500
    first, second = (LocallyLinear(8).resolve(part * X[:, :1]) for part in (1.0, size))
    np.testing.assert_allclose(second(size * (X[:, :1] + 2e3)), first(X[:, :1] + 2e3), rtol=1e-9)
    with pytest.raises(ValueError, match="The distance of a point to its neighbours is no finite number: bring it"):
        second(size * (X[:, :1] + 1e5))


def test_a_reference_whose_density_exceeds_the_largest_number_is_refused():
    points = 1e-300 * (X[:5, :2] + 1)
    with pytest.raises(
        ValueError, match="The reference has the density e.* in places, which exceeds the largest number"
    ):
        SumOfSquaresDensity(Polynomial(2), support=("kmeans", 3), reference="gaussian", random_state=0).fit(points)
