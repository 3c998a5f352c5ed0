"""Every public function with random arguments that are valid for some sample."""

from __future__ import annotations

import numpy as np
from fuzz_estimators import KERNELS
from fuzz_judging import Defect, Refusal, attempt, finite
from fuzz_samples import draw_sample

import mercer

RESAMPLES = 39
TESTS = ("mmd_test", "hsic_test", "k_sample_test", "conditional_independence_test", "explain_difference")
NAMES = (
    *TESTS, "mmd", "hsic", "kernel_herding", "squared_kernel_discrepancy", "worst_case_expectation", "rp_cholesky",
    "greedy_cholesky", "factorize", "nystrom", "nystrom_completion", "rank_path", "plane_map", "MeanEmbedding", "kernel",
)  # fmt: skip


def run_call(pick, name):
    """Try one function on one sample; the words that both were drawn by, and whether it was refused."""
    sample, kernel = draw_sample(pick), pick(KERNELS)()
    arguments, more = ARGUMENTS[name](pick, sample, kernel) if name in ARGUMENTS else ((), {})
    what = f"{name}({', '.join(f'{key}={value!r}' for key, value in more.items())}) of {kernel!r} on {sample.said}"
    call = CALLS.get(name) or (lambda: getattr(mercer, name)(*arguments, **more))
    answer = attempt(what, (lambda: call(sample, kernel, pick)) if name in CALLS else call)
    if isinstance(answer, Refusal):
        return what, answer.sentence
    check_answer(what, name, answer)
    return what, None


def check_answer(what, name, answer):
    parts = {key: value for key, value in _parts(answer) if not callable(value)}
    finite(what, parts or answer)
    if name in TESTS:
        value = getattr(answer, "pvalue", 1.0)
        if not 0 < value <= 1:
            raise Defect(f"{what}: p-value {value}")


def _parts(answer):
    named = getattr(answer, "__dict__", None) or {}
    slots = getattr(type(answer), "__dataclass_fields__", {})
    return {**named, **{key: getattr(answer, key) for key in slots}}.items()


def _halves(sample):
    X = sample.X
    middle = len(X) // 2
    return X[:middle], X[middle:]


def _two_samples(pick, sample, kernel):
    more = {
        "estimator": pick(("unbiased", "unbiased", "biased", "linear")),
        "null": pick(("permutation", "permutation", "gamma", "spectral")),
        "scheme": pick(("rows", "rows", "blocks", "shifts")),
        "compress": pick((None, None, None, "landmarks", 5, "thinning")),
    }
    return (*_halves(sample), kernel), {**more, "n_resamples": RESAMPLES, "rng": 0}


def _pairs(pick, sample, kernel):
    more = {
        "estimator": pick(("biased", "biased", "unbiased")),
        "null": pick(("permutation", "permutation", "gamma", "spectral", "wild bootstrap")),
        "scheme": pick(("rows", "rows", "blocks", "shifts")),
        "compress": pick((None, None, None, "landmarks", 5)),
        "sample_weight": sample.weights,
    }
    return (sample.X, sample.y, kernel), {**more, "n_resamples": RESAMPLES, "rng": 0}


ARGUMENTS = {
    "mmd_test": _two_samples,
    "hsic_test": _pairs,
    "k_sample_test": lambda pick, s, k: (
        (s.X[::3], s.X[1::3], s.X[2::3]),
        {"kernel": k, "compress": pick((None, None, 5)), "n_resamples": RESAMPLES, "rng": 0},
    ),
    "conditional_independence_test": lambda pick, s, k: (
        (s.X, s.y, np.asarray(s.X)[:, :1]),
        {"x_kernel": k, "method": pick(("neighbours", "residuals")), "n_neighbors": pick((8, 2)),
         "n_resamples": RESAMPLES, "rng": 0},
    ),
    "explain_difference": lambda pick, s, k: ((*_halves(s), k), {"n_resamples": RESAMPLES, "rng": 0}),
    "mmd": lambda pick, s, k: (
        (*_halves(s), k),
        {"estimator": pick(("biased", "unbiased", "linear")), "squared": pick((True, False)),
         "y_weights": None if s.weights is None else s.weights[len(s.X) // 2 :]},
    ),
    "hsic": lambda pick, s, k: (
        (s.X, s.y, k), {"estimator": pick(("biased", "unbiased")), "sample_weight": s.weights}
    ),
    "kernel_herding": lambda pick, s, k: (
        (s.X, pick((5, 1, 20))), {"kernel": k, "distinct": pick((False, True)), "refine": pick((False, False, True))}
    ),
    "squared_kernel_discrepancy": lambda pick, s, k: ((*_halves(s), k), {}),
    "worst_case_expectation": lambda pick, s, k: (
        (lambda points: np.abs(np.tanh(points)).sum(axis=1), s.X, pick((0.1, 0.0, 1.5))),
        {"kernel": k, "sense": pick(("max", "min")), "sample_weight": s.weights},
    ),
    "rank_path": lambda pick, s, k: ((s.X,), {"sigmas": [0.5, 2.0], "n_eigenvalues": pick((5, 1)), "random_state": 0}),
}  # fmt: skip


def _gram(sample, kernel):
    kernel = kernel or mercer.Gaussian()
    return mercer.GramOperator(kernel.resolve(sample.points), sample.points)


def _low_rank(make):
    def call(sample, kernel, pick):
        gram = _gram(sample, kernel)
        factor = make(gram, pick((5, 1, 30, 10_000)))
        residual = np.diag(gram.to_dense() - factor.to_dense())
        size = max(float(np.abs(gram.diagonal()).max()), np.finfo(float).tiny)
        if gram.kernel.properties.positive_definite and residual.min() < -1e-8 * size:
            raise Defect(f"a factor of {gram!r} exceeds it by {-residual.min() / size} of its size")
        return factor.to_dense(), factor.diagonal()

    return call


def _nystrom(sample, kernel, pick):
    gram = _gram(sample, kernel)
    return mercer.nystrom(gram, np.arange(min(len(sample.X), pick((3, 1, 30))))).to_dense()


def _completion(sample, kernel, pick):
    dense = _gram(sample, kernel).to_dense()
    m = min(len(dense), pick((3, 1, 30)))
    return mercer.nystrom_completion(dense[:m, :m], dense[:m, m:]).to_dense()


def _plane_map(sample, kernel, pick):
    return mercer.plane_map(sample.points, perplexity=pick((30.0, 5.0)), random_state=0).coordinates


def _mean_embedding(sample, kernel, pick):
    mean = mercer.MeanEmbedding(kernel or mercer.Gaussian(), sample.X, sample.weights)
    return mean.norm(), mean.witness(mean, sample.X), mean.distance(mean)


def _kernel_block(sample, kernel, pick):
    """A kernel is what its products are."""
    gram = _gram(sample, kernel)
    dense, diagonal = gram.kernel(sample.points), gram.kernel.diag(sample.points)
    product = gram @ np.ones((len(sample.X), 2))
    size = max(float(np.abs(dense).max()), np.finfo(float).tiny)
    for other, name in ((np.diag(dense), "diag"), (product[:, 0] / len(dense), "products")):
        expected = diagonal if name == "diag" else dense.mean(axis=1)
        if np.abs(other - expected).max() > 1e-7 * size:
            raise Defect(f"{gram.kernel!r}: {name} differ by {np.abs(other - expected).max() / size} of the largest")
    return dense, diagonal, product


CALLS = {
    "rp_cholesky": _low_rank(lambda gram, rank: mercer.rp_cholesky(gram, rank, 0)),
    "greedy_cholesky": _low_rank(mercer.greedy_cholesky),
    "factorize": _low_rank(mercer.factorize),
    "nystrom": _nystrom,
    "nystrom_completion": _completion,
    "plane_map": _plane_map,
    "MeanEmbedding": _mean_embedding,
    "kernel": _kernel_block,
}
