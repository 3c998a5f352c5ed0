"""Methods for a regression against the worst distribution of a ball, and for its relaxation."""
