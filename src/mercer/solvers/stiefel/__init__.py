"""Methods for functions of a matrix with orthonormal columns."""
