"""Methods for maximum variance unfolding."""
