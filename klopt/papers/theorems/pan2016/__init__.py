"""Claims of Pan, Chen, Chen and Xu (2016) on supervised kernels with a graph-based loss."""
