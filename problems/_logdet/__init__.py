"""The family of LogDet kernels with bounds on the distances of pairs."""
