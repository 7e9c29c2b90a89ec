"""Semidefinite programs over a factor V of X = VV': the program, its minimiser, its multipliers."""
