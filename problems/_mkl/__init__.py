"""The family of multiple kernel learning: a support vector machine and the weights of its kernels."""
