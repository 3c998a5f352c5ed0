"""Methods for sparse measures: the quadratic programmes of a quadrature, and fewer or better nodes for it."""
