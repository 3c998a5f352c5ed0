"""Supervised projections: the family of Roweis discriminant analysis, linear and in the space of a kernel."""

from mercer.discriminant.fisher import FisherDiscriminant
from mercer.discriminant.roweis import RoweisDiscriminant
from mercer.discriminant.supervised_pca import SupervisedPCA

__all__ = ["FisherDiscriminant", "RoweisDiscriminant", "SupervisedPCA"]
