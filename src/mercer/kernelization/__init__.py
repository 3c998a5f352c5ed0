"""Linear methods in the space of a kernel: features of points, and any linear estimator behind them."""

from mercer.kernelization.kernelized import Kernelized

__all__ = ["Kernelized"]
