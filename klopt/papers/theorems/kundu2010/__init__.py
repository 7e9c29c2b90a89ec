"""Claims of Kundu, Tankasali, Bhattacharyya and Ben-Tal (2010) on kernels from similarity matrices."""
