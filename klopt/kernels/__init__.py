"""Kernel matrices: Gram, RBF, Nystroem, similarities, graphs, eigenpairs, side information, new points."""
