"""The SDP embedding and diffusion maps: the figures and the table of PSD22, and a study of outliers."""
