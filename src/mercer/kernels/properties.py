"""What is known of a kernel, and what follows for sums, products, powers and normalisations of kernels.

Every property is True, False or None for unknown; a rule says True or False only where there is a proof for all kernels
with these properties on one infinite domain. What the rules rest on:

- [A] Aronszajn 1950: of psd kernels, the functions of k₁ + k₂ are the sums f + g, and those of k₁k₂ contain the
  products fg.
- [BCR] Berg, Christensen and Ressel 1984, chapter 3, section 2: all powers of a k > 0 are psd if and only if
  k = exp(-ψ) with a conditionally negative definite ψ.
- [S] Sriperumbudur et al. 2010: an integrally strictly positive definite kernel is characteristic (theorem 7); a
  continuous stationary kernel on R^d is characteristic if and only if the support of its spectral measure is R^d
  (theorem 9). It is then integrally strictly positive definite, for ∬ k dμ dμ is the integral of the squared transform
  of μ.
- [SFL] Sriperumbudur, Fukumizu and Lanckriet 2011: which of these properties imply which.
- [SC] Steinwart and Christmann 2008, section 4.6: universal kernels.
- [SS] Szabó and Sriperumbudur 2018: a product of characteristic kernels need not be characteristic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Known = bool | None


@dataclass(frozen=True)
class Properties:
    """Declared properties of a kernel that is not zero, on an infinite domain: R^d unless the kernel says otherwise.

    Attributes
    ----------
    bounded : bool or None
        Its values lie between two numbers; of a psd kernel, sup k(x, x) is finite.
    stationary : bool or None
        k(x, y) depends on x - y alone.
    positive : bool or None
        k(x, y) ≥ 0 everywhere.
    universal : bool or None
        Its functions come uniformly near any continuous function on any compact set.
    characteristic : bool or None
        The mean embedding tells any two probability measures that have one apart (RKHS (120)).
    positive_definite : bool or None
        Every Gram matrix is positive semi-definite (RKHS (40)).
    integrally_strictly_positive_definite : bool or None
        ∬ k(x, y) dμ(x) dμ(y) > 0 for every finite signed measure μ ≠ 0 for which it is defined.
    continuous : bool or None
        k is a continuous function of both points.
    finite_rank : bool or None
        Its functions form a space of finite dimension.
    infinitely_divisible : bool or None
        k ≥ 0, and k(x, y)^p is positive semi-definite for every p > 0.
    """

    bounded: Known = None
    stationary: Known = None
    positive: Known = None
    universal: Known = None
    characteristic: Known = None
    positive_definite: Known = None
    integrally_strictly_positive_definite: Known = None
    continuous: Known = None
    finite_rank: Known = None
    infinitely_divisible: Known = None


# What the kernels of a distance are: their spectral densities are positive everywhere, and so are those of all powers.
# So they are integrally strictly positive definite and characteristic [S] and, being continuous, universal [SFL].
EVERYTHING = Properties(
    bounded=True,
    stationary=True,
    positive=True,
    universal=True,
    characteristic=True,
    positive_definite=True,
    integrally_strictly_positive_definite=True,
    continuous=True,
    finite_rank=False,
    infinitely_divisible=True,
)

# A space of m dimensions cannot tell measures apart: of those of mass zero on m + 2 points, one embeds to zero.
_DENIED_BY_FINITE_RANK = ("universal", "characteristic", "integrally_strictly_positive_definite")


def of_finite_rank(**known: Known) -> Properties:
    """What a kernel of finitely many features has and what it cannot have."""
    return _with_rank(Properties(**known), finite=True)


def all_of(a: Known, b: Known) -> Known:
    """True if both are, unknown unless both are known to be True."""
    return True if a is True and b is True else None


def any_of(a: Known, b: Known) -> Known:
    """True if one is, unknown otherwise."""
    return True if a is True or b is True else None


def both_or_neither(a: Known, b: Known) -> Known:
    """Of what a difference keeps: True if both are, False if exactly one is."""
    return None if a is None or b is None or (a is False and b is False) else a is b


def _with_rank(found: Properties, *, finite: bool = False, infinite: bool = False) -> Properties:
    """Add what is known of the rank, and what a finite one denies."""
    if finite:
        return replace(found, **dict.fromkeys(_DENIED_BY_FINITE_RANK, False), finite_rank=True)
    rich = any(getattr(found, name) is True for name in _DENIED_BY_FINITE_RANK)
    return replace(found, finite_rank=False if infinite or rich else None)


def _has_spectrum(a: Properties) -> bool:
    """Whether it is known to be psd, stationary and continuous: Bochner's theorem gives it a spectral measure."""
    return a.positive_definite is True and a.stationary is True and a.continuous is True


def _is_strict(a: Properties) -> bool:
    """Whether it is known to be integrally strictly positive definite, as declared or by [S]."""
    return a.integrally_strictly_positive_definite is True or (_has_spectrum(a) and a.characteristic is True)


def of_sum(a: Properties, b: Properties) -> Properties:
    """Properties of k₁ + k₂.

    The functions of both are functions of the sum [A], so that one universal summand is enough [SC], and MMD² and
    ∬ k dμ dμ are sums of terms ≥ 0, so that one characteristic or strict summand is [S]. Two kernels that are not
    universal may have a universal sum: those of the even and of the odd functions.
    """
    psd = all_of(a.positive_definite, b.positive_definite)
    found = Properties(
        bounded=False if psd and False in (a.bounded, b.bounded) else both_or_neither(a.bounded, b.bounded),
        stationary=both_or_neither(a.stationary, b.stationary) if psd else None,
        positive=all_of(a.positive, b.positive),
        universal=psd and any_of(a.universal, b.universal),
        characteristic=psd and any_of(a.characteristic, b.characteristic),
        positive_definite=psd,
        integrally_strictly_positive_definite=psd and any_of(_is_strict(a), _is_strict(b)),
        continuous=both_or_neither(a.continuous, b.continuous),
    )
    finite = both_or_neither(a.finite_rank, b.finite_rank)
    infinite = finite is False or (psd is True and False in (a.finite_rank, b.finite_rank))
    return _with_rank(found, finite=finite is True, infinite=infinite)


def of_product(a: Properties, b: Properties) -> Properties:
    """Properties of k₁ k₂, psd by Schur's theorem.

    Products fg of functions are functions of the product [A], so that k₁k₂ is universal if k₁ is and k₂ has functions
    near one, or is continuous with k₂(x, x) > 0: some gⱼ = k₂(·, xⱼ) then have no common zero on a compact set, and
    f = Σⱼ (f gⱼ/Σᵢgᵢ²) gⱼ. With k₂ = Σ eᵢ(x)eᵢ(y) bounded and eᵢ(x) not all zero, ∬ k₁k₂ dμ dμ is the sum of
    ∬ k₁ d(eᵢμ) d(eᵢμ), positive if k₁ is strict. For stationary kernels that is [S]: the support of the convolution
    of two spectral measures is the closure of the sum of theirs. Of two characteristic kernels nothing follows [SS].
    """
    psd = all_of(a.positive_definite, b.positive_definite)
    strict = psd and (_strict_product(a, b) or _strict_product(b, a) or None)
    found = Properties(
        bounded=all_of(a.bounded, b.bounded),
        stationary=all_of(a.stationary, b.stationary) if psd else None,
        positive=all_of(a.positive, b.positive),
        universal=psd and (_universal_product(a, b) or _universal_product(b, a) or None),
        characteristic=strict and all_of(a.bounded, b.bounded),
        positive_definite=psd,
        integrally_strictly_positive_definite=strict,
        continuous=all_of(a.continuous, b.continuous),
        infinitely_divisible=all_of(a.infinitely_divisible, b.infinitely_divisible),
    )
    return _with_rank(found, finite=a.finite_rank is True and b.finite_rank is True)


def _universal_product(a: Properties, b: Properties) -> bool:
    return a.universal is True and (b.universal is True or _has_spectrum(b))


def _strict_product(a: Properties, b: Properties) -> bool:
    return _is_strict(a) and (_has_spectrum(b) or (_is_strict(b) and b.bounded is True and b.continuous is True))


Columns = frozenset[object] | None  # that a kernel reads, as numbers or names; None for all


def of_sum_on(a: Properties, a_reads: Columns, b: Properties, b_reads: Columns) -> Properties:
    """Properties of k₁ + k₂ on the columns that either reads.

    Where each reads a column u or v that the other does not, (δ_u - δ_u') ⊗ (δ_v - δ_v') embeds to zero, and sums of
    functions of either have no mixed differences, nor have their limits.
    """
    found = of_sum(*_on_all_columns(a, a_reads, b, b_reads))
    if _comparable(a_reads, b_reads) and a_reads - b_reads and b_reads - a_reads:  # type: ignore[operator]
        return replace(found, **dict.fromkeys(_DENIED_BY_FINITE_RANK, False))
    return found


def of_product_on(a: Properties, a_reads: Columns, b: Properties, b_reads: Columns) -> Properties:
    """Properties of k₁ k₂ on the columns that either reads: where they have none in common, of k₁ ⊗ k₂."""
    if _comparable(a_reads, b_reads) and not a_reads & b_reads:  # type: ignore[operator]
        return _of_tensor_product(a, b)
    return of_product(*_on_all_columns(a, a_reads, b, b_reads))


def _of_tensor_product(a: Properties, b: Properties) -> Properties:
    """Properties of k₁(x, x') k₂(y, y').

    If both are psd it is a multiple of k₁ at any y with k₂(y, y) > 0, so it lacks what either lacks. Products fg come
    near any continuous function (Stone and Weierstrass). If ∬ k₁k₂ dμ dμ = 0 then ∫ f(x)g(y) dμ = 0 for all functions
    f, g of the two; with bounded strict kernels first ∫ 1_A(x) g(y) dμ and then μ(A × B) vanish.
    """
    psd = all_of(a.positive_definite, b.positive_definite)
    if not psd:
        return of_product(*(replace(each, **dict.fromkeys(_DENIED_BY_FINITE_RANK)) for each in (a, b)))
    strict = _both(
        _is_strict(a) or a.integrally_strictly_positive_definite,
        _is_strict(b) or b.integrally_strictly_positive_definite,
    )
    tame = all_of(a.bounded, b.bounded)
    characteristic = False if False in (a.characteristic, b.characteristic) else None
    return Properties(
        bounded=_both(a.bounded, b.bounded),
        stationary=_both(a.stationary, b.stationary),
        positive=all_of(a.positive, b.positive),
        universal=_both(a.universal, b.universal),
        characteristic=True if strict and tame else characteristic,
        positive_definite=True,
        integrally_strictly_positive_definite=strict if strict is False else strict and tame,
        continuous=_both(a.continuous, b.continuous),
        finite_rank=_both(a.finite_rank, b.finite_rank),
        infinitely_divisible=all_of(a.infinitely_divisible, b.infinitely_divisible),
    )


def _both(a: Known, b: Known) -> Known:
    """True if both are, False if one is known not to be."""
    return False if False in (a, b) else all_of(a, b)


def _comparable(a_reads: Columns, b_reads: Columns) -> bool:
    """Whether the columns of both are known, and all by numbers from the first one or all by names."""
    if a_reads is None or b_reads is None:
        return False
    both = a_reads | b_reads
    return len({type(column) for column in both}) == 1 and not any(isinstance(k, int) and k < 0 for k in both)


def _on_all_columns(a: Properties, a_reads: Columns, b: Properties, b_reads: Columns) -> tuple[Properties, Properties]:
    """Both as kernels of the columns that either reads: measures that differ in others alone it cannot tell apart."""
    if a_reads == b_reads:
        return a, b
    if not _comparable(a_reads, b_reads):
        return _blind(a, None if a_reads is not None else True), _blind(b, None if b_reads is not None else True)
    return _blind(a, not b_reads - a_reads), _blind(b, not a_reads - b_reads)  # type: ignore[operator]


def _blind(a: Properties, sees_all: Known) -> Properties:
    """A kernel on more columns than it reads, or on no more, or perhaps."""
    if sees_all:
        return a
    denied = {
        name: False if sees_all is False or getattr(a, name) is False else None for name in _DENIED_BY_FINITE_RANK
    }
    return replace(a, **denied)


def of_power(a: Properties, exponent: float) -> Properties:
    """Properties of k^p: a product of equal kernels if p is whole, else psd where k is infinitely divisible.

    k^p = f(x)^p f(y)^p exp(p h(x, y)) with a psd h then [BCR], and ∬ exp(p h) dν dν = Σ pⁿ/n! ∬ hⁿ dν dν: whether it
    vanishes does not depend on p. So all powers are universal if one is; those above one are strict if k is, and of
    a stationary k all are, as the support of a symmetric infinitely divisible law is the same at all times.
    """
    if exponent == 1:
        return a
    whole = float(exponent).is_integer()
    found = of_product(a, a) if whole else _of_broken_power(a, exponent)
    even, one_to_one = whole and exponent % 2 == 0, bool(a.positive) or (whole and exponent % 2 == 1)
    return replace(
        found,
        bounded=a.bounded,
        stationary=a.stationary if a.stationary or one_to_one else None,
        positive=True if a.positive or even else (a.positive if whole else None),
        continuous=True if a.continuous else None,
        infinitely_divisible=a.infinitely_divisible or None,
    )


def _of_broken_power(a: Properties, exponent: float) -> Properties:
    """Of a power that is not whole: what the infinite divisibility of k gives."""
    if a.infinitely_divisible is not True:
        return Properties()
    strict = True if _is_strict(a) and (_has_spectrum(a) or (exponent > 1 and a.bounded is True)) else None
    found = Properties(
        universal=all_of(a.universal, a.continuous),
        characteristic=strict and all_of(a.bounded, True),
        positive_definite=True,
        integrally_strictly_positive_definite=strict,
    )
    return _with_rank(found)


def of_normalized(a: Properties) -> Properties:
    """Properties of k(x, y) / sqrt(k(x, x) k(y, y)), zero where k(x, x) = 0.

    Of a stationary kernel it is a multiple. Otherwise functions are divided by sqrt(k(x, x)), which is continuous and
    positive where k is continuous and universal, so that it stays so [SC, lemma 4.55]; whether a kernel that is not
    stationary stays characteristic depends on how small k(x, x) gets. exp(x · y), which is not stationary, becomes so.
    """
    psd = True if a.positive_definite else None
    multiple = psd and all_of(a.stationary, True)
    has_length = psd and all_of(a.continuous, any_of(a.universal, a.stationary))
    found = Properties(
        bounded=psd,
        stationary=multiple,
        positive=True if a.positive else psd and a.positive,
        universal=has_length and all_of(a.universal, True),
        characteristic=multiple and a.characteristic,
        positive_definite=psd,
        integrally_strictly_positive_definite=multiple and a.integrally_strictly_positive_definite,
        continuous=has_length,
        infinitely_divisible=a.infinitely_divisible or None,
    )
    return _with_rank(found, finite=a.finite_rank is True, infinite=bool(psd and a.finite_rank is False))
