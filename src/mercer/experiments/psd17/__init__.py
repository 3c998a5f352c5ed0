"""The SDP embedding and diffusion maps: the figures of PSD17."""
