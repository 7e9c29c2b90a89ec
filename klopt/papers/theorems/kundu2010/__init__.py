"""Claims on kernels from similarity matrices (Kundu et al., 2010)."""
