"""Displays have one order of arguments; labels get a legend or a colour bar; what is drawn is what the model says."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from mercer import (
    Gaussian,
    KernelPCA,
    Landmarks,
    MaximumVarianceUnfolding,
    QuadratureSparsifier,
    RobustKernelRegressor,
    SDPEmbedding,
    SumOfSquaresDensity,
    hsic_test,
    mmd_test,
    plane_map,
    plots,
)
from mercer.datasets import halton_square
from mercer.plots import (
    CertificateDisplay,
    DensityDisplay,
    DependenceDisplay,
    EmbeddingDisplay,
    LandmarksDisplay,
    LevelsDisplay,
    NullDisplay,
    QuadraturePathDisplay,
    UpsilonDisplay,
    WitnessDisplay,
    new_figure,
)

DISPLAYS = [getattr(plots, name) for name in plots.__all__ if name.endswith("Display") and name != "Display"]
MAKERS = [
    (kind, name)
    for kind in DISPLAYS
    for name in ("from_estimator", "from_result", "from_predictions")
    if hasattr(kind, name)
]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model(iris):
    return SDPEmbedding(random_state=0).fit(iris[0])


@pytest.fixture(scope="module")
def square():
    return halton_square(120)


@pytest.fixture(scope="module")
def sparsifier(square):
    return QuadratureSparsifier(Gaussian(sigma=0.6), trace_fraction=0.7, solver="path").fit(square)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def bar(display):
    (found,) = (ax for ax in display.figure_.axes if ax.get_label() == "<colorbar>")
    return found


# --- one order of arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), MAKERS)
def test_one_order_of_arguments(kind, name):
    parameters = list(inspect.signature(getattr(kind, name)).parameters.values())
    given = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert given[1:] in (["X"], ["X", "Y"], []), "a model or result, then the data"
    assert (not given[1:]) == (name == "from_predictions")
    by_name = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    assert by_name[: 2 if "labels" in by_name else 1] == (["labels", "ax"] if "labels" in by_name else ["ax"])


@pytest.mark.parametrize("kind", DISPLAYS)
def test_plot_takes_a_place_first(kind):
    parameters = list(inspect.signature(kind.plot).parameters.values())[1:]
    assert parameters[0].name == "ax"
    assert parameters[0].default is None
    assert all(each.kind is each.KEYWORD_ONLY for each in parameters[1:])


def test_a_display_draws_again_where_it_is_told(model, iris):
    display = EmbeddingDisplay.from_estimator(model, labels=iris[1])
    first = display.figure_
    assert first.axes[0] is display.ax_
    figure, (left, right) = new_figure(2)
    assert display.plot(right) is display
    assert (display.figure_, display.ax_, display.axes_) == (figure, right, (right,))
    assert not left.collections
    np.testing.assert_array_equal(first.axes[0].collections[0].get_offsets(), right.collections[0].get_offsets())


def test_a_place_is_divided_where_a_picture_has_several_panels(sparsifier):
    figure = Figure()
    single = figure.add_subplot()
    display = QuadraturePathDisplay.from_estimator(sparsifier, ax=single)
    assert len(display.axes_) == 3
    assert display.ax_ is display.axes_[0]
    assert not single.axison
    given = list(Figure().subplots(1, 3))
    assert QuadraturePathDisplay.from_estimator(sparsifier, ax=given).axes_ == tuple(given)
    with pytest.raises(ValueError, match="ax has 2 panels, but the picture has 3"):
        QuadraturePathDisplay.from_estimator(sparsifier, ax=given[:2])


def test_a_notebook_shows_the_picture_once(model):
    display = EmbeddingDisplay.from_estimator(model)
    assert display._repr_png_().startswith(b"\x89PNG")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    try:
        assert display.plot(ax)._repr_png_() is None  # pyplot shows it
    finally:
        pyplot.close(figure)


# --- labels -------------------------------------------------------------------------------------------------


def test_text_gets_a_legend_with_its_name(model, iris):
    kinds = load_iris().target_names[iris[1]]
    display = EmbeddingDisplay.from_estimator(model, iris[0], labels=kinds, label_name="kind")
    assert legend(display) == ["setosa", "versicolor", "virginica"]
    assert display.ax_.get_legend().get_title().get_text() == "kind"
    drawn = [each.get_offsets() for each in display.ax_.collections]
    for k, points in enumerate(drawn):
        np.testing.assert_allclose(points, model.transform(iris[0])[iris[1] == k, :2])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("coordinate 1", "coordinate 2")


def test_numbers_get_a_colour_bar_with_their_name(model, iris):
    display = EmbeddingDisplay.from_estimator(model, labels=pd.Series(iris[0][:, 0], name="sepal length"))
    assert bar(display).get_ylabel() == "sepal length"
    shades = display.ax_.collections[0]
    np.testing.assert_array_equal(np.sort(shades.get_array()), np.sort(iris[0][:, 0]))
    rows = np.argsort(iris[0][:, 0])
    np.testing.assert_array_equal(shades.get_offsets(), model.embedding_[rows, :2])
    assert display.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (np.array([2, 10, 2, 1]), ["1", "2", "10"]),
        ([True, False, True, True], ["False", "True"]),
        (["b", None, "a", "b"], ["a", "b", "missing"]),
        ([3, "a", 3, "a"], ["3", "a"]),
        (pd.Series(["low", "high", "low", "high"], dtype=pd.CategoricalDtype(["low", "mid", "high"])), ["low", "high"]),
        (pd.Categorical(["b", "a", None, "b"], categories=["b", "a"]), ["b", "a", "missing"]),
        (pd.Series([1, None, 2, 1], dtype="Int64"), ["1", "2", "missing"]),
        (pl.Series("kind", [1, None, 2, 1]), ["1", "2", "missing"]),
        (pl.Series("kind", ["b", "a", "b", None], dtype=pl.Enum(["b", "a"])), ["b", "a", "missing"]),
        (pl.Series("kind", ["b", "a", "b", "b"], dtype=pl.Categorical), ["b", "a"]),
        (pl.Series("kind", ["b", "a", "b", "b"]), ["a", "b"]),
    ],
)
def test_kinds_of_classes(labels, names):
    display = EmbeddingDisplay.from_predictions(np.eye(4)[:, :2], labels=labels)
    assert sorted(legend(display)) == sorted(names)
    if "Categorical" not in str(getattr(labels, "dtype", "")):
        assert legend(display) == names
    assert sum(len(each.get_offsets()) for each in display.ax_.collections) == 4


@pytest.mark.parametrize(
    "labels", [[1.0, 2.0, 2.0, 1.0], [0.5, None, 2, 1], pl.Series([0.5, None, 2.0, 1.0]), np.float32([1, 2, np.nan, 4])]
)
def test_kinds_of_numbers(labels):
    display = EmbeddingDisplay.from_predictions(np.eye(4)[:, :2], labels=labels)
    assert bar(display) is not None
    assert sum(len(each.get_offsets()) for each in display.ax_.collections) == 4
    missing = sum(value is None or value != value for value in list(labels))
    assert (display.ax_.get_legend() is not None) == bool(missing)


def test_many_whole_numbers_are_quantities_unless_it_is_said():
    points, labels = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 30
    assert bar(EmbeddingDisplay.from_predictions(points, labels=labels)) is not None
    display = EmbeddingDisplay.from_predictions(points, labels=labels, classes=True)
    looks = {(tuple(c.get_facecolor()[0]), len(c.get_paths()[0].vertices)) for c in display.ax_.collections}
    assert len(legend(display)) == len(looks) == 30  # ten colours and three markers
    beside = display.ax_.get_legend()._loc, display.ax_.get_legend().get_bbox_to_anchor()._bbox.x0
    assert beside == (6, pytest.approx(1.01))


def test_the_rarest_of_too_many_classes_are_drawn_alike():
    counts = np.concatenate([np.repeat(np.arange(45), 2), [3]])
    labels = [f"{k:02d}" for k in counts]
    display = EmbeddingDisplay.from_predictions(np.column_stack([counts, counts]), labels=labels)
    names = legend(display)
    assert len(names) == 40
    assert names[-1] == "6 others"
    assert "03" in names
    assert len(display.ax_.collections[-1].get_offsets()) == 12


def test_outliers_are_stars_where_they_are_named():
    labels = np.array([-1, 1, 1, -1])
    plain = EmbeddingDisplay.from_predictions(np.eye(4)[:, :2], labels=labels)
    assert legend(plain) == ["-1", "1"]
    starred = EmbeddingDisplay.from_predictions(np.eye(4)[:, :2], labels=labels, outlier=-1)
    assert legend(starred) == ["1", "-1"]
    assert len(starred.ax_.collections[-1].get_paths()[0].vertices) > 8  # a star


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1, 2], "labels has 2 entries, but there are 4 points: pass one for each"),
        (np.eye(4), "one value for each point"),
    ],
)
def test_wrong_labels(labels, said):
    with pytest.raises(ValueError, match=said):
        EmbeddingDisplay.from_predictions(np.eye(4)[:, :2], labels=labels)


# --- embeddings ---------------------------------------------------------------------------------------------


def test_two_coordinates_or_a_map(model, iris):
    assert model.embedding_.shape[1] > 2
    chosen = EmbeddingDisplay.from_estimator(model, components=(2, 0))
    np.testing.assert_array_equal(chosen.coordinates, model.embedding_[:, [2, 0]])
    assert chosen.ax_.get_xlabel() == "coordinate 3"
    mapped = EmbeddingDisplay.from_estimator(model, components="map", labels=iris[1])
    plane = plane_map(model)
    np.testing.assert_array_equal(mapped.coordinates, plane.coordinates)
    np.testing.assert_array_equal(mapped.misplaced, plane.misplaced)
    assert mapped.ax_.get_title() == str(plane).replace("; ", ";\n")
    assert not list(mapped.ax_.get_xticks())
    shaded = EmbeddingDisplay.from_estimator(model, components="map", labels=iris[0][:, 0])
    assert bar(shaded) is not None
    for wrong in ("tsne", (0, 99), (0, 1, 2)):
        with pytest.raises(ValueError, match="must be"):
            EmbeddingDisplay.from_estimator(model, components=wrong)


def test_other_estimators(iris):
    X, y = iris
    fitted = PCA(3).fit(X)
    display = EmbeddingDisplay.from_estimator(fitted, X, labels=y)
    np.testing.assert_array_equal(display.coordinates, fitted.transform(X)[:, :2])
    single = EmbeddingDisplay.from_estimator(KernelPCA(n_components=1).fit(X), labels=y)
    np.testing.assert_array_equal(single.ax_.collections[0].get_offsets()[:, 0], np.flatnonzero(y == 0))
    with pytest.raises(ValueError, match="fit it, and pass X"):
        EmbeddingDisplay.from_estimator(fitted)
    with pytest.raises(ValueError, match="from_predictions"):
        EmbeddingDisplay.from_estimator(X)


# --- certificates -------------------------------------------------------------------------------------------


def test_the_certificate_of_an_embedding(model):
    display = CertificateDisplay.from_estimator(model)
    left, right = display.axes_
    np.testing.assert_array_equal(left.lines[0].get_ydata(), [line.objective for line in model.history_])
    np.testing.assert_array_equal(left.lines[0].get_xdata(), [line.number for line in model.history_])
    proof = model.certificate_
    horizontal = {
        line.get_ydata()[0] for line in left.lines if len(set(line.get_ydata())) == 1 and len(line.get_ydata()) == 2
    }
    assert {proof.lower, proof.upper} <= horizontal
    (star,) = (line for line in right.lines if line.get_marker() == "*")
    assert star.get_ydata()[0] == proof.relative_gap
    assert f"proved: {proof.relative_gap:.1e}" in [text.get_text() for text in right.get_legend().get_texts()]
    assert left.get_title() == f"level 1: certified to within {proof.relative_gap:.1e}"
    assert np.all(display.bounds[np.isfinite(display.bounds)] >= proof.lower)  # maximised: bounds from above
    second = CertificateDisplay.from_estimator(model, level=2, over="seconds")
    assert second.certificate is model.levels_[1].certificate
    assert second.axes_[0].get_xlabel() == "seconds"
    with pytest.raises(ValueError, match="level=9 must be one of the"):
        CertificateDisplay.from_estimator(model, level=9)
    with pytest.raises(ValueError, match='must be "steps" or "seconds"'):
        second.plot(over="time")


def test_a_run_is_drawn_in_the_units_of_its_certificate(iris):
    """Solvers see targets and distances in units of their own."""
    X, y = iris[0][::3], 1000.0 * iris[0][::3, 0]
    models = [
        RobustKernelRegressor(radius=0.05, tol=1e-4).fit(X, y),
        MaximumVarianceUnfolding(n_neighbors=10, tol=1e-3, connect=True).fit(1000 * X),
    ]
    for fitted in models:
        display, proof = CertificateDisplay.from_estimator(fitted), fitted.certificate_
        assert display.objectives[-1] == pytest.approx(proof.objective, rel=0.05)


def test_a_proof_without_a_run_and_a_run_without_a_proof(square):
    display = CertificateDisplay.from_estimator(KernelPCA(certify=True).fit(square))
    assert len(display.axes_[1].lines) == 1
    bare = CertificateDisplay.from_estimator(SDPEmbedding(Gaussian(0.5), certify=False, random_state=0).fit(square))
    assert bare.axes_[0].get_title() == "not certified"
    with pytest.raises(ValueError, match="neither history_ nor certificate_ to draw"):
        CertificateDisplay.from_estimator(KernelPCA(certify=False).fit(square))


def test_phases_are_named(square):
    display = CertificateDisplay.from_estimator(QuadratureSparsifier(n_nodes=8).fit(square))
    assert {text.get_text().strip() for text in display.axes_[1].texts} == set(display.phases)
    assert len(set(display.phases)) > 1


# --- the others ---------------------------------------------------------------------------------------------


def test_landmarks_over_labels(sparsifier, square):
    frame = pd.DataFrame(square, columns=["east", "north"])
    labels = np.where(square[:, 0] > 0, "right", "left")
    display = LandmarksDisplay.from_estimator(sparsifier, frame, labels=labels, columns=("north", "east"))
    assert legend(display) == ["left", "right"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("north", "east")
    np.testing.assert_array_equal(display.ax_.collections[-1].get_offsets(), square[sparsifier.indices_][:, ::-1])
    shaded = LandmarksDisplay.from_estimator(sparsifier, square, labels=square[:, 0], label_name="east")
    assert bar(shaded).get_ylabel() == "east"
    chosen = Landmarks(n_landmarks=7, random_state=0).fit(square)
    assert LandmarksDisplay.from_estimator(chosen, square).indices.size == 7
    with pytest.raises(ValueError, match="no indices_ to draw"):
        LandmarksDisplay.from_estimator(PCA(), square)


def test_paths_tests_and_levels_of_a_model(sparsifier, model):
    assert QuadraturePathDisplay.from_estimator(sparsifier).path is sparsifier.path_
    with pytest.raises(ValueError, match='solver="path"'):
        QuadraturePathDisplay.from_estimator(model)
    display = UpsilonDisplay.from_estimator(sparsifier, n=4, label="paper")
    np.testing.assert_array_equal(display.upsilon, sparsifier.eigenpairs(4).upsilon)
    assert legend(display) == ["paper"]
    assert len(LevelsDisplay.from_estimator(model).ax_.texts) == len(model.levels_)
    with pytest.raises(ValueError, match="no levels_ to draw"):
        LevelsDisplay.from_estimator(sparsifier)


def test_density_with_labels_and_a_colour_bar(square):
    model = SumOfSquaresDensity(Gaussian(sigma=0.8), support=square[::8], regularization=1e-2, tol=1e-3).fit(square)
    labels = np.where(square[:, 1] > 0, "up", "down")
    display = DensityDisplay.from_estimator(model, square, labels=labels, label_name="half")
    assert legend(display) == ["down", "up", "support"]
    assert bar(display).get_ylabel() == "density"
    grid = np.stack(np.meshgrid(*display.grid, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(display.values.ravel(), model.density(grid))
    line = DensityDisplay.from_estimator(model, square, labels=labels, columns=0)
    assert legend(line) == ["down", "up"]
    with pytest.raises(ValueError, match="pass X"):
        DensityDisplay.from_estimator(model, labels=labels)


def test_pictures_of_tests(square):
    X, Y = square[:60], square[60:] + 0.5
    result = mmd_test(X, Y, n_resamples=99, rng=0)
    witness = WitnessDisplay.from_result(result, X, Y, labels=("before", "after"))
    assert legend(witness) == ["before", "after"]
    assert bar(witness).get_ylabel() == "witness"
    np.testing.assert_allclose(witness.values, result.witness(np.concatenate([X, Y])))
    null = NullDisplay.from_result(result)
    np.testing.assert_array_equal(null.null, result.null_distribution)
    assert f"p = {result.pvalue:.2g}" in null.ax_.get_title()
    pairs = DependenceDisplay.from_result(hsic_test(X[:, 0], X[:, 1], n_resamples=99, rng=0), X[:, 0], X[:, 1])
    assert bar(pairs).get_ylabel() == "witness"
    for display in (witness, null, pairs):
        assert len(repr(display)) < 120


@pytest.mark.parametrize(("times", "aspect"), [(1.0, 1.0), (3.0, 1.0), (300.0, "auto")])
def test_landmarks_of_columns_in_units_of_their_own_fill_the_panel(times, aspect):
    points = np.random.default_rng(0).random((50, 2)) * [times, 1.0]
    display = LandmarksDisplay.from_result((np.arange(5), np.ones(5)), points)
    assert display.ax_.get_aspect() == aspect
