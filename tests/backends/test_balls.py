"""Balls hold the truth, judged with 300 bits, and hold it closely."""

import mpmath
import numpy as np
import pytest

from mercer.backends.balls import PI, Ball, exponential

mpmath.mp.prec = 300


def middles(values):
    """hi + lo without rounding."""
    return [
        mpmath.mpf(float(h)) + mpmath.mpf(float(l)) for h, l in zip(values.hi.ravel(), values.lo.ravel(), strict=True)
    ]


def assert_holds(values, truth, relative=2.0**-90):
    for middle, radius, true in zip(middles(values), values.radius.ravel(), truth, strict=True):
        assert abs(middle - true) <= mpmath.mpf(float(radius))
        assert radius <= relative * abs(true) + 1e-290


def numbers(seed, size=150, decades=25):
    """Of some 100 bits, over many decades, of both signs."""
    rng = np.random.default_rng(seed)
    x = Ball(rng.standard_normal(size) * 10.0 ** rng.integers(-decades, decades, size)) / 3.0
    return Ball(x.hi, x.lo)


@pytest.mark.parametrize(
    "operation",
    [lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a + b * b],
    ids=["product", "quotient", "sum"],
)
def test_one_operation(operation):
    a, b = numbers(0), numbers(1)
    assert_holds(operation(a, b), [operation(x, y) for x, y in zip(middles(a), middles(b), strict=True)], 2.0**-60)


def test_sums_and_differences_err_by_their_own_size():
    a, b = numbers(2), numbers(3)
    for sign in (1.0, -1.0):
        out = a + b * sign
        assert_holds(out, [x + int(sign) * y for x, y in zip(middles(a), middles(b), strict=True)], np.inf)
        assert np.all(out.radius <= 2.0**-98 * (np.abs(a.hi) + np.abs(b.hi)) + 1e-290)


def test_an_operation_errs_and_its_radius_knows():
    """Some results differ from the truth: a radius of zero would be false."""
    a, b = numbers(4), numbers(5)
    for out, truth in (
        (a + b, [x + y for x, y in zip(middles(a), middles(b), strict=True)]),
        (a * b, [x * y for x, y in zip(middles(a), middles(b), strict=True)]),
    ):
        assert any(middle != true for middle, true in zip(middles(out), truth, strict=True))


def test_radii_of_the_operands_are_passed_on():
    a, b = Ball(3.0, 0.0, 0.5), Ball(-2.0, 0.0, 0.25)
    for out, values in (
        (a + b, [x + y for x in (2.5, 3.5) for y in (-2.25, -1.75)]),
        (a * b, [x * y for x in (2.5, 3.5) for y in (-2.25, -1.75)]),
        (a / b, [x / y for x in (2.5, 3.5) for y in (-2.25, -1.75)]),
        (a.root(), [2.5**0.5, 3.5**0.5]),
        (exponential(a), [np.exp(2.5), np.exp(3.5)]),
    ):
        assert float(out.lower()) <= min(values) <= max(values) <= float(out.upper())


def test_the_exponential():
    rng = np.random.default_rng(6)
    x = Ball(-rng.exponential(size=300) * rng.choice([1e-8, 1.0, 20.0, 150.0], 300), 1e-19 * rng.standard_normal(300))
    x = Ball(np.concatenate([x.hi, [0.0, -679.9, 30.0]]), np.concatenate([x.lo, np.zeros(3)]))
    x = Ball(np.maximum(x.hi, -679.0), x.lo)
    out = exponential(x)
    assert_holds(out, [mpmath.exp(v) for v in middles(x)], 2.0**-90)
    assert any(m != mpmath.exp(v) for m, v in zip(middles(out), middles(x), strict=True))
    gone = exponential(Ball(np.array([-700.0, -1e5])))
    assert np.all(gone.lower() <= 0)
    assert gone.upper()[0] >= np.exp(-700.0)


def test_roots_and_inverses():
    a = numbers(7)
    squares = Ball(np.abs(a.hi), a.lo * np.sign(a.hi))
    assert_holds(squares.root(), [mpmath.sqrt(v) for v in middles(squares)])
    assert_holds(a.inverse(), [1 / v for v in middles(a)])
    around = Ball(1e-3, 0.0, 1e-2)
    assert float(around.root().lower()) <= 0 <= float(around.root().upper()) ** 2 * (1 + 1e-9) - 0.011 + 1e-12
    assert np.isinf(float(around.inverse().radius))
    assert_holds(Ball(PI.hi, PI.lo, PI.radius), [mpmath.pi])


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 60, 3), (3, 700, 2)])
def test_products_of_matrices(shape):
    a, n, b = shape
    rng = np.random.default_rng(8)
    A = Ball(rng.standard_normal((a, n)) * 10.0 ** rng.integers(-8, 8, (a, 1)), 0.0) / 7.0
    B = Ball(rng.standard_normal((n, b)) * 10.0 ** rng.integers(-8, 8, (1, b)), 0.0) / 3.0
    A, B = Ball(A.hi, A.lo), Ball(B.hi, B.lo)
    out = A @ B
    left, right = np.array(middles(A)).reshape(a, n), np.array(middles(B)).reshape(n, b)
    truth = left @ right
    sizes = np.abs(A.hi) @ np.abs(B.hi)
    for i in range(a):
        for j in range(b):
            middle = mpmath.mpf(float(out.hi[i, j])) + mpmath.mpf(float(out.lo[i, j]))
            assert abs(middle - truth[i, j]) <= mpmath.mpf(float(out.radius[i, j]))
            assert out.radius[i, j] <= 2.0**-70 * max(sizes[i, j], np.abs(A.hi[i]).max() * np.abs(B.hi[:, j]).max())
    wide = Ball(A.hi, A.lo, 1e-3 * np.abs(A.hi)) @ B
    assert np.all(wide.radius >= 0.99e-3 * sizes)


def test_what_is_left_out_of_a_product_is_in_its_radius():
    """Entries far below the largest of their row: beyond the slices, they are the radius."""
    A, B = Ball(np.array([[1.0, 2.0**-130]])), Ball(np.array([[0.0], [1.0]]))
    out = A @ B
    assert float(out.hi[0, 0]) + float(out.radius[0, 0]) >= 2.0**-130
    assert float(out.radius[0, 0]) < 2.0**-90


def test_vectors_and_sums():
    x = numbers(9, size=37, decades=3)
    assert_holds(x.sum(), [mpmath.fsum(middles(x))], np.inf)
    assert_holds(x @ x, [mpmath.fsum(v * v for v in middles(x))])
    grid = Ball(x.hi[:36].reshape(4, 9), x.lo[:36].reshape(4, 9))
    rows = np.array(middles(grid)).reshape(4, 9)
    assert_holds(grid.sum(axis=1), [mpmath.fsum(row) for row in rows], np.inf)
    assert_holds(grid.T.sum(axis=0), [mpmath.fsum(row) for row in rows], np.inf)
    assert Ball(np.zeros((0, 3))).sum(axis=0).shape == (3,)


def test_doubles_around_a_ball():
    x = numbers(10)
    wide = x.widened(np.abs(x.hi) * 1e-20)
    for lower, upper, middle, radius in zip(wide.lower(), wide.upper(), middles(wide), wide.radius, strict=True):
        assert mpmath.mpf(float(lower)) <= middle - mpmath.mpf(float(radius))
        assert mpmath.mpf(float(upper)) >= middle + mpmath.mpf(float(radius))
