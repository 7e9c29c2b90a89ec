"""Claims of Liu, Huang, Gong, Yang and Li (2020) on data-adaptive kernels (DANK)."""
