"""Data frames with texts, categories and booleans: in every estimator, in two-sample distances, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from mercer import (
    DiffusionMaps,
    Gaussian,
    Kernelized,
    KernelizedSDPEmbedding,
    KernelPCA,
    Landmarks,
    MeanEmbedding,
    QuadratureSparsifier,
    RobustKernelRegressor,
    RobustKernelRidge,
    SDPEmbedding,
    SumOfSquaresDensity,
    config_context,
    mmd,
    rank_path,
    squared_kernel_discrepancy,
    verify,
)
from mercer.kernels import Categories, Mixed

pandas = pytest.importorskip("pandas")
LIBRARIES = ["pandas", "polars"]
KERNEL = Gaussian([1.5, 150.0]).on(["size", "weight"]) * Categories(1.0).on(["colour", "flag"])
QUICK = {
    SDPEmbedding: {"random_state": 0},
    DiffusionMaps: {"random_state": 0},
    KernelPCA: {"certify": True, "random_state": 0},
    QuadratureSparsifier: {"n_nodes": 6},
    KernelizedSDPEmbedding: {"nugget": 1e-7, "tol": 1e-5, "random_state": 0},
}


def columns(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "size": rng.normal(size=n),
        "colour": rng.choice(["red", "blue", "green"], n).tolist(),
        "weight": rng.normal(size=n) * 100,
        "flag": rng.random(n) > 0.5,
    }


def frame(library="pandas", n=50, seed=0, **changed):
    return pytest.importorskip(library).DataFrame({**columns(n, seed), **changed})


def coded(table):
    """The same points as numbers, by hand."""
    names = ["blue", "green", "red"]
    colour = [names.index(each) for each in list(table["colour"])]
    return np.column_stack([np.asarray(table["size"]), colour, np.asarray(table["weight"]), np.asarray(table["flag"])])


BY_NUMBERS = Gaussian([1.5, 150.0]).on([0, 2]) * Categories(1.0).on([1, 3])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_kernel_of_a_frame_is_that_of_its_codes(library):
    X, Y = frame(library), frame(library, 20, 1)
    assert_allclose(KERNEL(X, Y), BY_NUMBERS(coded(X), coded(Y)), rtol=1e-13)
    assert_allclose(KERNEL(X), BY_NUMBERS(coded(X)), rtol=1e-13)
    assert_array_equal(KERNEL.diag(X), np.ones(50))
    assert_allclose(KERNEL.log(X, Y), BY_NUMBERS.log(coded(X), coded(Y)), rtol=1e-12)
    mixed = Mixed().resolve(X)
    assert (mixed.left.columns, mixed.right.columns) == ([0, 2], [1, 3])
    assert mixed.left.kernel.sigma == Gaussian("columns").resolve(coded(X)[:, [0, 2]]).sigma


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", QUICK)
def test_estimators_fit_frames_as_the_codes_that_they_stand_for(kind, library):
    X, new = frame(library), frame(library, 9, 1)
    model = kind(KERNEL, **QUICK[kind]).fit(X)
    plain = kind(BY_NUMBERS, **QUICK[kind]).fit(coded(X))
    assert_array_equal(model.transform(new), plain.transform(coded(new)))
    assert list(model.feature_names_in_) == ["size", "colour", "weight", "flag"]
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), model.transform(new))
    if hasattr(model, "certificate_"):
        again = verify(model, X)
        assert again.lower <= model.certificate_.upper
        assert again.upper - again.lower <= 1e-4 * abs(again.upper)


@pytest.mark.parametrize("kind", [DiffusionMaps, KernelPCA])
def test_an_unknown_category_is_equal_to_none_that_is_known(kind):
    X, new = frame(), frame(n=4, seed=1)
    model = kind(KERNEL, **QUICK[kind]).fit(X)
    new["colour"] = ["violet", "red", "pink", "red"]
    codes = coded(frame(n=4, seed=1))
    codes[:, 1] = [17, 2, 23, 2]
    assert_allclose(model.transform(new), kind(BY_NUMBERS, **QUICK[kind]).fit(coded(X)).transform(codes), rtol=1e-12)
    assert KERNEL(new, X)[0].max() <= np.exp(-1)


def test_names_are_checked_as_scikit_learn_checks_them():
    X = frame()
    model = KernelPCA(KERNEL).fit(X)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.transform(X.rename(columns={"size": "length"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.transform(X[["colour", "size", "weight", "flag"]])
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(TypeError, match="'colour'"),
    ):
        model.transform(coded(X))
    numbers = KernelPCA(Gaussian(1.0).on(["weight", "size"])).fit(X[["size", "weight"]])
    assert_array_equal(
        numbers.transform(X[["size", "weight"]]),
        KernelPCA(Gaussian(1.0).on([1, 0])).fit(coded(X)[:, [0, 2]]).transform(coded(X)[:, [0, 2]]),
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "model", [DiffusionMaps(), KernelPCA(), SDPEmbedding(Gaussian(1.0)), Landmarks(5), KernelPCA("rbf")]
)
def test_texts_without_a_kernel_for_them_are_answered_by_the_line_to_write(library, model):
    line = r"The column 'colour' of X holds categories.*write kernel=Mixed\(\), which is Gaussian\('columns'\)"
    with pytest.raises(
        ValueError, match=line + r".on\(\['size', 'weight'\]\) \* Categories\(\).on\(\['colour', 'flag'\]\)"
    ):
        model.fit(frame(library))
    assert not hasattr(model, "n_features_in_") or isinstance(model, Landmarks)


def test_columns_that_no_kernel_reads_may_hold_anything():
    X = frame()
    model = KernelPCA(Gaussian(1.0).on(["size"])).fit(X)
    assert_array_equal(model.transform(X), KernelPCA(Gaussian(1.0)).fit(coded(X)[:, :1]).transform(coded(X)[:, :1]))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"colour": [None, *["red"] * 49]}, "The column 'colour' of X has no value in row 0"),
        ({"colour": ["red", float("nan"), *["red"] * 48]}, "The column 'colour' of X has no value in row 1"),
        ({"flag": [True, None, *[False] * 48]}, "The column 'flag' of X has no value in row 1"),
        ({"size": [1.0, float("nan"), *[0.0] * 48]}, "NaN"),
        ({"size": np.arange(50).astype("datetime64[D]")}, "The column 'size' of X holds dates or times"),
    ],
)
def test_missing_values_and_dates_are_named(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        KernelPCA(KERNEL).fit(frame(**changed))


def test_types_of_columns():
    """Declared categories keep their codes; numbers that are declared to be categories are; objects may be numbers."""
    X = frame()
    X["colour"] = pandas.Categorical(X["colour"], categories=["violet", "red", "blue", "green"])
    assert_allclose(KERNEL(X), BY_NUMBERS(coded(frame())), rtol=1e-13)
    X["flag"] = X["flag"].astype(object)
    X["size"] = X["size"].astype(object)
    assert_allclose(KERNEL(X), BY_NUMBERS(coded(frame())), rtol=1e-13)
    X["weight"] = pandas.Categorical((X["weight"] > 0).astype(int))
    with pytest.raises(ValueError, match="The column 'weight' of X holds categories"):
        KernelPCA(KERNEL).fit(X)
    with pytest.raises(ValueError, match="The column 'size' of X holds List.*where numbers are expected"):
        KernelPCA(KERNEL).fit(frame("polars", size=[[1.0, 2.0]] * 50))
    polars = pytest.importorskip("polars")
    Y = frame("polars").with_columns(polars.col("colour").cast(polars.Categorical))
    assert_allclose(KERNEL(Y), BY_NUMBERS(coded(frame())), rtol=1e-13)
    Y = frame("polars").with_columns(polars.col("colour").cast(polars.Enum(["red", "blue", "green"])))
    assert_allclose(KERNEL(Y), BY_NUMBERS(coded(frame())), rtol=1e-13)


def test_frames_of_numbers_are_read_as_they_always_were():
    X = frame()[["size", "weight", "flag"]]
    model = KernelPCA(Gaussian(100.0)).fit(X)
    assert_array_equal(
        model.transform(X), KernelPCA(Gaussian(100.0)).fit(coded(frame())[:, [0, 2, 3]]).transform(X.to_numpy(float))
    )


# --- two samples, landmarks, searches -----------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_two_samples_share_their_codes(library):
    X, Y = frame(library, 30), frame(library, 20, 1, colour=["green"] * 20)
    A, B = coded(X), coded(Y)
    assert_allclose(mmd(X, Y, KERNEL), mmd(A, B, BY_NUMBERS), rtol=1e-12)
    assert_allclose(squared_kernel_discrepancy(X, Y, KERNEL), squared_kernel_discrepancy(A, B, BY_NUMBERS), rtol=1e-12)
    w = MeanEmbedding(KERNEL, X)
    assert_allclose(w(Y), MeanEmbedding(BY_NUMBERS, A)(B), rtol=1e-12)
    assert_allclose((2 * w)(Y), 2 * w(Y), rtol=1e-12)
    with pytest.raises(ValueError, match="columns or categories differ"):
        w.distance(MeanEmbedding(KERNEL, Y))
    assert_allclose(
        w.distance(MeanEmbedding(KERNEL, frame(library, 30, 2))),
        mmd(X, frame(library, 30, 2), KERNEL, squared=False),
        rtol=1e-10,
    )
    with pytest.raises(ValueError, match="they must agree"):
        mmd(X, A, KERNEL)


def test_landmarks_and_paths_see_the_kernel_of_the_columns():
    X = frame(n=120)
    for model in (SDPEmbedding(KERNEL, landmarks=20, random_state=0), KernelPCA(Mixed(), landmarks=20, random_state=0)):
        assert model.fit(X).transform(X[:3]).shape[0] == 3
    assert Landmarks(10, kernel=KERNEL, random_state=0).fit(X).indices_.shape == (10,)
    path = rank_path(X, [0.5, 1.0], kernel=Gaussian().on(["size"]), parameter="kernel__sigma")
    assert len(path.entries) == 2


def test_single_precision_and_sample_weights():
    X, counts = frame(), np.random.default_rng(0).integers(0, 3, 50)
    with config_context(dtype="float32"):
        assert DiffusionMaps(KERNEL).fit(X).embedding_.dtype == np.float32
    repeated = KernelPCA(Mixed()).fit(X.loc[np.repeat(np.arange(50), counts)])
    weighted = KernelPCA(Mixed()).fit(X, sample_weight=counts)
    assert_allclose(abs(weighted.transform(X[:5])), abs(repeated.transform(X[:5])), rtol=1e-6, atol=1e-9)


def test_a_search_reaches_kernels_inside_columns():
    X = frame(n=60)
    y = (X["colour"] == "red").to_numpy()
    model = make_pipeline(KernelPCA(KERNEL, n_components=8), LinearSVC())
    grid = {
        "kernelpca__kernel__left__kernel__sigma": [[5.0, 500.0], 0.1],
        "kernelpca__kernel__right__kernel__sigma": [0.3, 3.0],
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["kernelpca__kernel__right__kernel__sigma"] == 0.3
    assert search.best_score_ > 0.9
    default = GridSearchCV(
        KernelPCA(Mixed()), {"kernel__categories__sigma": [0.5]}, cv=2, scoring=lambda m, X: 0.0
    ).fit(X)
    assert default.best_estimator_.kernel_.right.kernel.sigma == 0.5
    on_names = GridSearchCV(
        KernelPCA(Gaussian([1.0, 2.0])), {"kernel__sigma": [[1.0, 2.0], "columns"]}, cv=2, scoring=lambda m, X: 0.0
    )
    assert on_names.fit(X[["size", "weight"]]).best_params_ == {"kernel__sigma": [1.0, 2.0]}


def test_regressions_and_estimators_of_others_take_frames():
    X = frame(n=40)
    y = np.sin(X["size"].to_numpy()) + (X["colour"] == "red")
    from sklearn.linear_model import Ridge

    model = Kernelized(Ridge(0.1), Mixed()).fit(X, y)
    assert model.score(X, y) > 0.9
    robust = RobustKernelRegressor(KERNEL).fit(X, y)
    assert robust.score(X, y) > 0.9
    assert verify(robust, X, y).upper >= robust.certificate_.lower
    with pytest.raises(ValueError, match="feature names should match"):
        robust.predict(X.rename(columns={"size": "length"}))


def test_densities_refuse_what_has_no_integral():
    X = frame()
    for kernel in (Categories(1.0).on([1]) * Gaussian(1.0).on([0]), Categories(1.0)):
        with pytest.raises(ValueError, match="has no integral over all columns"):
            SumOfSquaresDensity(kernel, support=5).fit(coded(X)[:, :2])
    for kind in (SumOfSquaresDensity, RobustKernelRidge):
        with pytest.raises(ValueError, match="divide the columns of X by these lengths"):
            kind(Gaussian([1.0, 2.0]), support=5).fit(coded(X)[:, [0, 2]], np.ones(50))


def test_categories_of_a_real_table_separate_what_numbers_mix():
    """Iris with its petals as words: the species are found as well as by the numbers that the words were made from."""
    data = load_iris()
    X = pandas.DataFrame(data.data[:, :2], columns=["length", "width"])
    X["petal"] = np.array(["short", "middle", "long"])[np.digitize(data.data[:, 2], [2.5, 4.9])]
    X["wide"] = data.data[:, 3] > 1.7
    scores = []
    for table, kernel in ((X[["length", "width"]], Mixed()), (X, Mixed())):
        search = make_pipeline(KernelPCA(kernel, n_components=6), LinearSVC())
        scores.append(search.fit(table[::2], data.target[::2]).score(table[1::2], data.target[1::2]))
    assert scores[1] > 0.9 > scores[0]
