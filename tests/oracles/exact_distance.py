"""The whole squared MMD between densities and a sample with 60 digits: every component of the mixtures by itself."""

import mpmath
import numpy as np
from exact_programme import ExactProgramme, mpf, squared


class ExactDistance(ExactProgramme):
    """min ‖w_p - v‖² + λ Tr(B K̃) over the densities of :class:`ExactProgramme`.

    k(x, z_p) k(x, z_q) dρ is W_pq times a normal law of variance τ² = 1/(2(2a + b)) around (a(z_p + z_q) + bμ)/(2a + b),
    and a Gaussian kernel between two normal laws, or a law and a point, is a Gaussian of their distance.
    """

    def __init__(self, X, weights, support, sigma, regularization, basis, normal=None):
        super().__init__(X, weights, support, sigma, regularization, basis, np.eye(len(support)), normal=normal)
        d = support.shape[1]
        a = 1 / mpf(float(sigma)) ** 2
        b = mpf(0) if normal is None else 1 / (2 * mpf(float(normal[1])) ** 2)
        centre = [mpf(float(c)) for c in (np.zeros(d) if normal is None else normal[0])]
        points = [[mpf(float(c)) for c in z] for z in support]
        weights = [mpf(float(w)) for w in (np.ones(len(X)) if weights is None else weights)]
        shares = [w / mpmath.fsum(weights) for w in weights]
        variance = 1 / (2 * (2 * a + b))

        def gaussian(distance, spread):
            return spread ** (-mpf(d) / 2) * mpmath.exp(-a * distance / spread)

        def apart(x, y):
            return mpmath.fsum((s - t) ** 2 for s, t in zip(x, y, strict=True))

        def mean(y, z):
            return [(a * (s + t) + b * c) / (2 * a + b) for s, t, c in zip(y, z, centre, strict=True)]

        pairs = [(p, q) for p in range(self.m) for q in range(self.m)]
        means = [mean(points[p], points[q]) for p, q in pairs]
        self.masses = [self.W[p, q] for p, q in pairs]
        one, two = 1 + 2 * a * variance, 1 + 4 * a * variance
        self.among = [[gaussian(apart(x, y), two) for y in means] for x in means]
        rows = [[mpf(float(c)) for c in x] for x in X]
        self.sample = [
            mpmath.fsum(w * gaussian(apart(x, y), one) for w, x in zip(shares, rows, strict=True)) for y in means
        ]
        self.squared_norm = mpmath.fsum(
            s * t * mpmath.exp(-a * squared(x, y))
            for s, x in zip(shares, X, strict=True)
            for t, y in zip(shares, X, strict=True)
        )

    def _parts(self, B):
        """Weights of the mixture, ‖w_p‖² and ⟨v, w_p⟩."""
        omega = [B[k // self.m, k % self.m] * mass for k, mass in enumerate(self.masses)]
        image = [mpmath.fsum(w * k for w, k in zip(omega, row, strict=True)) for row in self.among]
        own = mpmath.fsum(w * g for w, g in zip(omega, image, strict=True))
        return image, own, mpmath.fsum(w * g for w, g in zip(omega, self.sample, strict=True))

    def value(self, B):
        _, own, cross = self._parts(B)
        return self.squared_norm - 2 * cross + own + self.strength * self.trace(B, self.K)

    def dual_bound(self, B):
        """The least of the tangent at B over all densities, without rounding."""
        image, own, _ = self._parts(B)
        M = self.K * self.strength
        for k, mass in enumerate(self.masses):
            M[k // self.m, k % self.m] += 2 * mass * (image[k] - self.sample[k])
        inverse = mpmath.inverse(mpmath.cholesky((self.S + self.S.T) / 2))
        G = inverse * (self.T.T * M * self.T) * inverse.T
        return min(mpmath.eigsy((G + G.T) / 2, eigvals_only=True)) + self.squared_norm - own
