"""Methods for positive semi-definite matrices with a given diagonal: the programme of the embedding."""
