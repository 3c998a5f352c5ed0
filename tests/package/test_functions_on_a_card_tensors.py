"""Kernels, operators, factorisations, tests of samples and other functions on a card that is pretended."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import Gaussian, GramOperator, MeanEmbedding, config_context
from mercer.backends.arrays import is_tensor, to_numpy
from mercer.backends.moved import in_memory

torch = pytest.importorskip("torch")

K = Gaussian(1.5)
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(36, 2)) + 0.4
GIVEN = X, Y, RNG.uniform(0.5, 2.0, 30), np.sin(X[:, :1]) + 0.1 * RNG.normal(size=(30, 1)), RNG.normal(size=(30, 1))
DRAWN = {"n_resamples": 19, "rng": 0}


def density(x, y, w, *_):
    model = mercer.SumOfSquaresDensity(K, support=5, tol=1e-8, random_state=0).fit(x, sample_weight=w)
    margin, law = model.marginal([1]), model.conditional([0], [0.1])
    parts = (
        margin.density(y[:3, 1:]),
        margin.quantile([0.3]),
        margin.cdf(y[:3, 1]),
        law.mean(),
        law.sample(2, np.random.default_rng(0)),
    )
    return [*parts, model.sample(2, random_state=0)]


def path(x, *_):
    found = mercer.QuadratureSparsifier(K, alpha=0.05, solver="path").fit(x).path_
    return [found.alphas, found.at(kappa=0.5 * float(found.kappas[-1])).weights]


def drift(x, y, *_):
    detector = mercer.DriftDetector(K, false_alarms=0.02, landmarks=6, n_simulated_alarms=10, random_state=0).fit(x)
    return [detector.update(y), detector.witness(y[:2])]


def unfolded(x, y, *_):
    return mercer.plane_map(mercer.DiffusionMaps(K, random_state=0).fit(x), perplexity=5, n_neighbors=5, random_state=0)


# What gives tensors of the card, or lists of them.
TENSORS = {
    "products": lambda x, y, *_: [
        (gram := GramOperator(K, x, y)) @ y,
        gram.T @ x,
        gram.row_sums(),
        gram.block([2, 0], [-1]),
    ],
    "one side of NumPy's": lambda x, y, *_: [GramOperator(K, x, Y) @ Y, GramOperator(K, X, y) @ y.tolist()],
    "the diagonal": lambda x, *_: [
        GramOperator(K, x, dtype="float64") @ x,
        GramOperator(K, x, dtype="float64").diagonal(),
    ],
    "single precision": lambda x, *_: GramOperator(K, x, dtype="float32") @ x,
    "logarithms": lambda x, y, *_: K.matrix(x, y).log_block(slice(None), slice(0, 5)),
    "scaled products": lambda x, y, *_: [*K.matrix(x, y).scaled_product(y)],
    "diffusion": lambda x, y, w, *_: [
        (M := mercer.DiffusionOperator(GramOperator(K, x, weights=w))) @ x,
        M.rounding().diagonal,
    ],
    "centred": lambda x, *_: [(M := mercer.CenteredOperator(GramOperator(K, x))) @ x, M.diagonal(), M.to_dense()],
    "normalised": lambda x, *_: mercer.NormalizedOperator(GramOperator(K, x)) @ x,
    "low rank": lambda x, *_: [mercer.LowRankOperator(x) @ x, mercer.LowRankOperator(x, np.ones((7, 2))) @ np.ones(7)],
    "Cholesky": lambda x, y, w, *_: mercer.rp_cholesky(GramOperator(K, x), 6, 0, weights=w).to_dense(),
    "greedy Cholesky": lambda x, *_: mercer.greedy_cholesky(GramOperator(K, x), 6).to_dense(),
    "eigenvectors": lambda x, *_: mercer.factorize(GramOperator(K, x), 4, "eigen", random_state=0).to_dense(),
    "orthogonal factor": lambda x, *_: mercer.factorize(GramOperator(K, x), 4, "qr", random_state=0).to_dense(),
    "Nyström": lambda x, *_: mercer.nystrom(GramOperator(K, x), [0, 3, 5]).to_dense(),
    "completion": lambda x, *_: mercer.nystrom_completion(K(x[:5]), K(x[:5], x[5:])).to_dense(),
    "mean embeddings": lambda x, y, w, *_: [(v := MeanEmbedding(K, x, w))(y), (2 * v).witness(MeanEmbedding(K, y), y)],
    "witness of a test": lambda x, y, *_: mercer.mmd_test(x, y, K, **DRAWN).witness(y[:3]),
    "herding": lambda x, y, *_: mercer.kernel_herding(x, 4, candidates=y, kernel=K).points,
    "density": density,
    "path": path,
    "own neighbourhoods": lambda x, y, *_: mercer.SelfTuning(n_neighbors=5).resolve(x)(x[:3], y[:4]),
    "given affinities": lambda x, *_: mercer.DiffusionMaps(mercer.Precomputed(), random_state=0).fit(K(x)).eigenvalues_,
    "weights of landmarks": lambda x, *_: mercer.Landmarks(5, strategy="k-means", random_state=0).fit(x).weights_,
}
# What gives numbers, or NumPy's arrays.
NUMBERS = {
    "discrepancy": lambda x, y, w, *_: [mercer.mmd(x, y, K, x_weights=w), mercer.mmd(x, y, estimator="unbiased")],
    "blocks of a discrepancy": lambda x, y, *_: mercer.mmd(x, y, K, estimator="linear", return_std=True),
    "squared discrepancy": lambda x, y, w, *_: mercer.squared_kernel_discrepancy(x, y, K, x_weights=w),
    "two samples": lambda x, y, *_: [(t := mercer.mmd_test(x, y, **DRAWN)).statistic, t.pvalue],
    "two samples, compressed": lambda x, y, *_: mercer.mmd_test(x, y, K, compress=8, **DRAWN).pvalue,
    "two samples, thinned": lambda x, y, *_: mercer.mmd_test(x, y, K, compress="thinning", **DRAWN).pvalue,
    "two samples, by a formula": lambda x, y, *_: mercer.mmd_test(x, y, K, null="gamma").pvalue,
    "dependence": lambda x, y, w, z, _: [mercer.hsic(x, z, sample_weight=w), mercer.hsic_test(x, z, **DRAWN).pvalue],
    "dependence, its witness": lambda x, y, w, z, _: mercer.hsic_test(x, z, K, K, **DRAWN).witness(x[:3], z[:3]),
    "dependence given more": lambda x, y, w, z, u: mercer.conditional_independence_test(x, z, u, **DRAWN).pvalue,
    "three samples": lambda x, y, *_: mercer.k_sample_test(x, y, x + 0.1, **DRAWN).pvalue,
    "columns that differ": lambda x, y, *_: [each.pvalue for each in mercer.explain_difference(x, y, **DRAWN).features],
    "a density's fit": lambda x, y, *_: (
        mercer.stein_test(mercer.SumOfSquaresDensity(K, support=4, tol=1e-6, random_state=0).fit(x), y, **DRAWN).pvalue
    ),
    "worst case": lambda x, y, *_: mercer.worst_case_expectation(MeanEmbedding(K, y), x, 0.05, kernel=K).value,
    "ranks": lambda x, *_: mercer.rank_path(x, [1e9], random_state=0).ranks,
    "drift": drift,
    "map of the plane": lambda x, y, *_: unfolded(x, y).coordinates,
}
KERNELS = [
    *(
        mercer.Laplacian(1.0),
        mercer.Matern(1.7, 2.0),
        mercer.Matern(2.5, 1.5),
        mercer.Polynomial(2, gamma=0.1, coef0=1.0),
    ),
    *(mercer.Cosine(), mercer.Sigmoid(0.1, 0.2), mercer.ChiSquared(0.3), Gaussian([1.0, 2.0]), K.on([0]), 2.0 * K),
    *(mercer.Linear() + K, K * mercer.Linear(), (K + mercer.Linear()).normalized(), mercer.Matern(2.5, 1.5) ** 2),
]


def listed(value):
    """The parts of an answer, one or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def same(found, expected, tolerance=1e-6):
    for part, known in zip(map(to_numpy, listed(found)), listed(expected), strict=True):
        np.testing.assert_allclose(part, known, rtol=0, atol=tolerance * max(1.0, float(np.abs(known).max())))


def on_card(parts):
    return [torch.as_tensor(part, device="cuda") for part in parts]


@pytest.mark.parametrize("name", TENSORS)
def test_answers_to_tensors_lie_on_their_device(name, pretend_card):
    found, expected = TENSORS[name](*on_card(GIVEN)), TENSORS[name](*GIVEN)
    assert all(is_tensor(part) and part.device.type == "cuda" for part in listed(found))
    same(found, expected)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_tensors_are_those_of_arrays(name, pretend_card):
    found, expected = NUMBERS[name](*on_card(GIVEN)), NUMBERS[name](*GIVEN)
    assert not any(map(is_tensor, listed(found)))
    same(found, expected)


@pytest.mark.parametrize("name", [*TENSORS, *NUMBERS])
def test_arrays_come_back_as_arrays(name, pretend_card):
    call = (TENSORS | NUMBERS)[name]
    with config_context(device="cuda"):
        found = call(*GIVEN)
    assert not any(map(is_tensor, listed(found)))
    assert in_memory(found) is found
    same(found, call(*GIVEN))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel, dtype, pretend_card):
    points, others = (abs(part).astype(dtype) for part in (X, Y))
    expected = kernel(points, others)
    there = kernel(*on_card((points, others)))
    with config_context(device="cuda"):
        moved = kernel(points, others)
    assert there.device.type == "cuda"
    assert isinstance(moved, np.ndarray)
    for found in (there, moved):
        same(found, expected, 1e-12 if dtype == "float64" else 1e-5)
    same(kernel(on_card((points,))[0]), kernel(points), 1e-12 if dtype == "float64" else 1e-5)
    same(kernel.diag(on_card((points,))[0]), kernel.diag(points), 1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_affinities(pretend_card):
    from scipy.sparse import csr_array

    kernel = mercer.Precomputed()
    given = csr_array(np.where((A := K(X)) > 0.1, A, 0.0))
    rows = on_card((given.indptr.astype(np.int64), given.indices.astype(np.int64), given.data))
    there = torch.sparse_csr_tensor(*rows, given.shape, check_invariants=False)
    same(GramOperator(kernel, there) @ torch.as_tensor(X, device="cuda"), given @ X)
    same(GramOperator(kernel, there).block([3, 1], slice(2, 9)), given.toarray()[[3, 1], 2:9])
    expected = mercer.DiffusionMaps(kernel, random_state=0).fit(given).eigenvalues_
    found = mercer.DiffusionMaps(kernel, random_state=0).fit(there).eigenvalues_
    assert found.device.type == "cuda"
    same(found, expected)
    with config_context(device="cuda"):
        same(mercer.DiffusionMaps(kernel, random_state=0).fit(given).eigenvalues_, expected)
