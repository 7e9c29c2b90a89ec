"""The family of LogDet kernels on the supervised complete graph."""
