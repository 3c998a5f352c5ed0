"""Methods for positive semi-definite matrices of trace one: the programme of a density."""
