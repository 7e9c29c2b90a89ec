"""The family of kernels learned from similarity matrices."""
