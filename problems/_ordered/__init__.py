"""The family of ordered spectral kernels and their alignment."""
