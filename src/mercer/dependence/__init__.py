"""Distributions as vectors of a reproducing kernel Hilbert space: mean embeddings, distances, tests, dependence."""

from mercer.dependence.conditional import ConditionalTestResult, conditional_independence_test
from mercer.dependence.conditional_mean import ConditionalMeanEmbedding
from mercer.dependence.difference import DifferenceExplanation, FeatureDifference, explain_difference
from mercer.dependence.drift import DriftDetector
from mercer.dependence.herding import Herding, kernel_herding
from mercer.dependence.hsic import hsic
from mercer.dependence.hsic_result import HSICTestResult
from mercer.dependence.hsic_test import hsic_test
from mercer.dependence.k_sample import KSampleTestResult, SamplePair, k_sample_test
from mercer.dependence.kdr import KernelDimensionReduction
from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.dependence.mmd import mmd
from mercer.dependence.mmd_test import MMDTestResult, mmd_test
from mercer.dependence.result import KernelPart, KernelTestResult
from mercer.dependence.stein_test import SteinTestResult, stein_test

__all__ = [
    "conditional_independence_test",
    "ConditionalMeanEmbedding",
    "ConditionalTestResult",
    "DifferenceExplanation",
    "DriftDetector",
    "explain_difference",
    "FeatureDifference",
    "Herding",
    "hsic",
    "hsic_test",
    "HSICTestResult",
    "k_sample_test",
    "kernel_herding",
    "KernelDimensionReduction",
    "KernelPart",
    "KernelTestResult",
    "KSampleTestResult",
    "MeanEmbedding",
    "mmd",
    "mmd_test",
    "MMDTestResult",
    "SamplePair",
    "stein_test",
    "SteinTestResult",
]
