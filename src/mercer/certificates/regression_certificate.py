"""The certificate of a robust regression: its bounds, and what its function risks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mercer.certificates.certificate import Certificate


@dataclass(frozen=True)
class RegressionCertificate(Certificate):
    """A :class:`Certificate` of a regression, with what only a regression has.

    Attributes
    ----------
    robust_risk : float
        The mean squared error of the function is no larger under any distribution that its adversary may choose; of
        penalised least squares, the sample's plus the penalty on f².
    sample_risk : float
        Its mean squared error on the sample.
    """

    robust_risk: float = float("nan")
    sample_risk: float = float("nan")

    def in_units(self, factor: float) -> RegressionCertificate:
        """The same for losses in other units, that is multiplied by a power of two."""
        names = ("lower", "upper", "robust_risk", "sample_risk")
        return replace(self, **{name: factor * getattr(self, name) for name in names})
