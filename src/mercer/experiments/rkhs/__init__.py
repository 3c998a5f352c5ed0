"""The statements and illustrations of the survey on kernels and Nyström's method (RKHS), measured."""
