"""The family of multiple kernel learning: an SVM and the weights of its kernels."""
