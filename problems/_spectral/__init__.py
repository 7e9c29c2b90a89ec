"""The family of spectral kernels for regularised least squares."""
