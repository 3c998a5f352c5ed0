"""Integrals of products of kernel sections: in closed form, by quadrature, and with proved errors."""
