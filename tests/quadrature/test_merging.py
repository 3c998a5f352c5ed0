"""Merging of nodes: every merge against a plain search, and the numbers of QUAD section 8.3."""

import tracemalloc

import halton_oracle as halton
import numpy as np
import pytest

import mercer
from mercer import Gaussian, GramOperator, Polynomial
from mercer.problems import Discrepancy
from mercer.quadrature import merge

N = 30
NODES = np.array([25, 2, 17, 9, 4, 28, 13, 21, 0, 7, 11])


def make(*, capped=False, ridged=False, kernel=None):
    """A programme with unequal weights and penalties, and a measure on eleven nodes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 2))
    kernel = Polynomial(2, 0.5, 1.0) + Gaussian(0.8) if kernel is None else kernel
    values = rng.uniform(0.2, 1.0, NODES.size)
    caps = np.full(N, np.inf)
    caps[NODES] = values + rng.uniform(0.1, 1.5, NODES.size)
    problem = Discrepancy(
        GramOperator(kernel**2, X),
        rng.uniform(0.1, 0.6, N),
        kernel.diag(X),
        caps=caps if capped else None,
        ridge=rng.uniform(0.1, 1.0, N) if ridged else None,
    )
    return problem, values


def objective(problem, v):
    S = problem.squared.to_dense()
    return 0.5 * (problem.weights - v) @ S @ (problem.weights - v) + 0.5 * problem.ridge @ v**2


def plain_merges(problem, nodes, values, strategy):
    """Try every allowed merge, evaluate the whole objective, keep the best."""
    v, d = np.zeros(problem.size), problem.penalty
    v[nodes] = values
    alive, merges, results = list(nodes), [], [objective(problem, v)]
    while len(alive) > 1:
        allowed = {}
        for j in sorted(alive, key=lambda node: d[node] * v[node]):
            for i in alive:
                w = v.copy()
                w[i] += v[j] * d[j] / d[i]
                w[j] = 0.0
                if i != j and w[i] <= problem.caps[i]:
                    allowed[i, j] = objective(problem, w), w
            if strategy == "weak" and allowed:
                break
        if not allowed:
            break
        best = min(allowed, key=lambda pair: allowed[pair][0])
        results.append(allowed[best][0])
        v = allowed[best][1]
        alive.remove(best[1])
        merges.append(best)
    return np.array(merges), np.array(results)


@pytest.mark.parametrize("ridged", [False, True])
@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("strategy", ["strong", "weak"])
def test_every_merge_is_the_best_one(strategy, capped, ridged):
    problem, values = make(capped=capped, ridged=ridged)
    merges, results = plain_merges(problem, NODES, values, strategy)
    sequence = merge(problem, NODES, values, strategy=strategy)
    np.testing.assert_array_equal(np.stack([sequence.into, sequence.absorbed], axis=1), merges)
    np.testing.assert_allclose(sequence.values, results, rtol=1e-11)
    assert sequence.exhausted == capped
    assert sequence.n_nodes.tolist() == list(range(11, 11 - results.size, -1))
    assert (sequence.n_nodes[-1] > 1) == capped


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("strategy", ["strong", "weak"])
def test_every_stage_can_be_had_again(strategy, capped):
    problem, values = make(capped=capped, ridged=True)
    sequence = merge(problem, NODES, values, strategy=strategy)
    for count, value in zip(sequence.n_nodes, sequence.values, strict=True):
        nodes, v = sequence.at(n_nodes=int(count))
        assert nodes.size == count
        assert np.all(v > 0)
        assert np.all(v <= problem.caps[nodes] * (1 + 1e-14))
        np.testing.assert_allclose(problem.value(nodes, v), value, rtol=1e-11)
        np.testing.assert_allclose(problem.penalty[nodes] @ v, problem.penalty[NODES] @ values, rtol=1e-14)
    np.testing.assert_array_equal(sequence.at(n_nodes=11)[0], NODES)
    np.testing.assert_array_equal(sequence.at(n_nodes=50)[1], values)
    np.testing.assert_array_equal(sequence.at()[0], sequence.at(n_nodes=int(sequence.n_nodes[-1]))[0])


@pytest.mark.parametrize("strategy", ["strong", "weak"])
def test_a_shorter_sequence_is_the_beginning_of_the_longer(strategy):
    nodes, values = halton.solution()
    problem = halton.problem()
    whole = merge(problem, nodes, values, strategy=strategy)
    part = merge(problem, nodes, values, strategy=strategy, n_nodes=100)
    assert part.n_nodes[-1] == 100
    np.testing.assert_array_equal(part.absorbed, whole.absorbed[:60])
    np.testing.assert_array_equal(part.values, whole.values[:61])
    growth = whole.values / whole.values[0] - 1
    highest = np.maximum.accumulate(growth)
    stage = 80 + int(np.argmax(growth[81:] > highest[80:-1]))
    allowed = (highest[stage] + growth[stage + 1]) / 2
    bounded = merge(problem, nodes, values, strategy=strategy, max_increase=allowed)
    assert not bounded.exhausted
    np.testing.assert_array_equal(bounded.absorbed, whole.absorbed[:stage])
    np.testing.assert_array_equal(bounded.at()[1], whole.at(max_increase=allowed)[1])
    for count, expected in ((90, 90), (2, 160 - stage)):
        both = {"max_increase": allowed, "n_nodes": count}
        assert merge(problem, nodes, values, strategy=strategy, **both).n_nodes[-1] == expected
        assert whole.at(**both)[0].size == expected


def test_a_stage_is_the_last_before_the_bound_is_passed_for_the_first_time():
    problem, values = make()
    whole = merge(problem, NODES, values)
    assert whole.values[1] < whole.values[0] < whole.values[-1]  # the start is not optimal: a merge may gain
    last = int(np.argmax(whole.values > whole.values[0])) - 1
    assert whole.at(max_increase=0)[0].size == 11 - last
    assert merge(problem, NODES, values, max_increase=0).n_nodes[-1] == 11 - last


def test_nothing_is_merged_that_is_few_enough():
    problem, values = make()
    sequence = merge(problem, NODES, values, n_nodes=11)
    assert sequence.into.size == sequence.absorbed.size == 0
    assert sequence.values.tolist() == [problem.value(NODES, values)]
    np.testing.assert_array_equal(sequence.at()[1], values)
    assert merge(problem, NODES[:1], values[:1]).n_nodes.tolist() == [1]


def test_a_gradient_that_is_known_is_used():
    problem, values = make(ridged=True)
    plain = merge(problem, NODES, values)
    before = problem.n_columns
    given = merge(problem, NODES, values, gradient=problem.gradient(NODES, values))
    assert problem.n_columns - before == NODES.size
    np.testing.assert_array_equal(given.values, plain.values)


@pytest.mark.parametrize("strategy", ["strong", "weak"])
def test_the_order_of_the_nodes_does_not_matter(strategy):
    problem, values = make()
    order = np.random.default_rng(0).permutation(NODES.size)
    plain = merge(problem, NODES, values, strategy=strategy)
    other = merge(problem, NODES[order], values[order], strategy=strategy)
    np.testing.assert_array_equal(other.absorbed, plain.absorbed)
    np.testing.assert_array_equal(other.into, plain.into)


def test_coincident_nodes_are_merged_for_nothing():
    X = np.random.default_rng(0).normal(size=(20, 2))
    X[10:] = X[:10]
    problem = Discrepancy(GramOperator(Gaussian(1.0) ** 2, X), np.full(20, 0.05), np.ones(20))
    sequence = merge(problem, np.arange(20), np.full(20, 0.05))
    assert np.all(np.abs(sequence.into[:10] - sequence.absorbed[:10]) == 10)
    np.testing.assert_allclose(sequence.values[:11], 0.0, atol=1e-16)
    assert sequence.values[11] > 1e-6


def test_ninety_merges_of_the_two_dimensional_example():
    """QUAD 8.3: from 160 nodes to 70, D grows by 3.494809e-5, which is 4.58 %."""
    nodes, values = halton.solution()
    assert nodes.size == 160
    sequence = merge(halton.problem(), nodes, values)
    assert f"{sequence.values[0]:.6e}" == "7.631890e-04"
    assert sequence.n_nodes[90] == 70
    assert f"{sequence.values[90] - sequence.values[0]:.6e}" == "3.494809e-05"
    assert f"{sequence.values[90] / sequence.values[0] - 1:.2%}" == "4.58%"
    assert sequence.values.size == 160
    merged, v = sequence.at(n_nodes=70)
    np.testing.assert_allclose(halton.problem().discrepancy(merged, v), sequence.values[90], rtol=1e-12)
    assert np.isin(merged, nodes).all()


def test_weak_merging_of_the_two_dimensional_example_is_a_little_worse():
    nodes, values = halton.solution()
    strong = merge(halton.problem(), nodes, values, n_nodes=70)
    weak = merge(halton.problem(), nodes, values, n_nodes=70, strategy="weak")
    assert strong.values[-1] < weak.values[-1] < 1.1 * strong.values[0]


def test_weak_merging_makes_no_array_of_all_pairs():
    size = 5000
    X = np.random.default_rng(0).normal(size=(size, 3))
    v = np.random.default_rng(1).uniform(0.5, 1.0, size) / size
    problem = Discrepancy(GramOperator(Gaussian(1.0) ** 2, X), v, np.ones(size), distortion=np.ones(size))
    merge(problem, np.arange(100), v[:100], strategy="weak", n_nodes=90, gradient=np.zeros(size))  # compiles
    tracemalloc.start()
    sequence = merge(problem, np.arange(size), v, strategy="weak", n_nodes=size - 100, gradient=np.zeros(size))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sequence.absorbed.size == 100
    np.testing.assert_array_equal(sequence.absorbed[:5], np.argsort(v)[:5])
    assert peak < 8 * size**2 / 20


def test_strong_merging_keeps_to_the_memory_limit():
    problem, values = make()
    with (
        mercer.config_context(memory_limit=8 * 11**2 - 1),
        pytest.raises(
            ValueError, match=r"^Strong merging of 11 nodes keeps an array of .* use strategy='weak', or raise"
        ),
    ):
        merge(problem, NODES, values)
    with mercer.config_context(memory_limit=8 * 11**2):
        assert merge(problem, NODES, values).n_nodes[-1] == 1


@pytest.mark.parametrize(
    ("nodes", "values", "options", "sentence"),
    [
        ([1, 1], [0.5, 0.5], {}, r"^nodes names a row twice: give it once, with the sum of its values\.$"),
        ([1, 2], [0.5, 0.0], {}, r"^values is zero at index 1: a node of a measure has positive weight\.$"),
        ([1, 2], [0.5], {}, r"^values has shape \(1,\)"),
        ([1, 2], [0.5, 0.5], {"strategy": "best"}, r"^strategy='best' must be 'strong' or 'weak'\.$"),
        ([1, 2], [0.5, 0.5], {"n_nodes": 0}, r"^n_nodes=0 must be a whole number of at least 1\.$"),
        ([1, 2], [0.5, 0.5], {"max_increase": -0.1}, r"^max_increase=-0.1 must be at least 0\.$"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(nodes, values, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        merge(make()[0], nodes, values, **options)


def test_a_stage_beyond_the_end_is_refused():
    problem, values = make()
    sequence = merge(problem, NODES, values, n_nodes=6)
    with pytest.raises(ValueError, match=r"^n_nodes=5 lies beyond the end of the sequence, which has 6 nodes\.$"):
        sequence.at(n_nodes=5)
