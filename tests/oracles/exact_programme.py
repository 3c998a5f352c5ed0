"""The programme of a density with 60 digits, from the points, weights, bandwidth, measure, λ and the two spans alone."""

import mpmath
import numpy as np

mpmath.mp.dps = 60
mpf = mpmath.mpf


def exactly(matrix):
    return mpmath.matrix([[mpf(float(v)) for v in row] for row in np.atleast_2d(matrix)])


def squared(x, y):
    return mpmath.fsum((mpf(float(a)) - mpf(float(b))) ** 2 for a, b in zip(x, y, strict=True))


class ExactProgramme:
    """min ‖P(w_p - v)‖² + λ Tr(B K̃) over B = T C Tᵀ, C ≽ 0, Tr(B W) = 1, for the Gaussian kernel on R^d."""

    def __init__(self, X, weights, support, sigma, regularization, basis, whitening, normal=None):
        m, d = support.shape
        a = 1 / mpf(float(sigma)) ** 2
        b = mpf(0) if normal is None else 1 / (2 * mpf(float(normal[1])) ** 2)
        centre = np.zeros(d) if normal is None else normal[0]

        def volume(n):
            return ((mpmath.pi if normal is None else b) / (n * a + b)) ** (mpf(d) / 2)

        def lone(z, n):
            return mpmath.exp(-a * b / (n * a + b) * squared(z, centre))

        def pair(y, z, n):
            return mpmath.exp(-(a**2) / (n * a + b) * squared(y, z))

        self.m, self.T, self.Omega = m, exactly(basis), exactly(whitening)
        indices = range(m)
        self.W = mpmath.matrix(m)
        self.K = mpmath.matrix(m)
        two, three = volume(2), volume(3)
        for p in indices:
            for q in indices:
                z, w = support[p], support[q]
                self.W[p, q] = two * lone(z, 2) * lone(w, 2) * pair(z, w, 2)
                self.K[p, q] = mpmath.exp(-a * squared(z, w))
        ones = [lone(z, 3) for z in support]
        pairs = [[pair(z, w, 3) for w in support] for z in support]
        self.u = [
            [
                [three * ones[p] * ones[q] * ones[r] * pairs[p][q] * pairs[p][r] * pairs[q][r] for r in indices]
                for q in indices
            ]
            for p in indices
        ]
        weights = np.ones(len(X)) if weights is None else weights
        total = mpmath.fsum(mpf(float(w)) for w in weights)
        self.target = mpmath.matrix(
            [
                mpmath.fsum(mpf(float(w)) * mpmath.exp(-a * squared(x, z)) for w, x in zip(weights, X, strict=True))
                / total
                for z in support
            ]
        )
        self.strength = mpf(float(regularization))
        self.S = self.T.T * self.W * self.T
        self.projected = mpmath.inverse(self.Omega.T * self.K * self.Omega)

    def embed(self, B):
        indices = range(self.m)
        return mpmath.matrix(
            [mpmath.fsum(self.u[p][q][r] * B[p, q] for p in indices for q in indices) for r in indices]
        )

    def trace(self, A, B):
        return mpmath.fsum(A[i, j] * B[i, j] for i in range(A.rows) for j in range(A.cols))

    def density(self, F):
        """B of mass one for C = F Fᵀ."""
        L = self.T * exactly(F)
        B = L * L.T
        return B / self.trace(B, self.W)

    def value(self, B):
        rest = self.Omega.T * (self.embed(B) - self.target)
        return (rest.T * self.projected * rest)[0] + self.strength * self.trace(B, self.K)

    def dual_bound(self, B):
        """What the linear oracle proves at B, without rounding."""
        rest = self.Omega.T * (self.embed(B) - self.target)
        c = self.Omega * (self.projected * rest)
        indices = range(self.m)
        M = self.K * self.strength
        for p in indices:
            for q in indices:
                M[p, q] += 2 * mpmath.fsum(self.u[p][q][r] * c[r] for r in indices)
        G = self.T.T * M * self.T
        inverse = mpmath.inverse(mpmath.cholesky((self.S + self.S.T) / 2))
        G = inverse * G * inverse.T
        theta = min(mpmath.eigsy((G + G.T) / 2, eigvals_only=True))
        return theta - 2 * (c.T * self.target)[0] - (c.T * self.K * c)[0]
