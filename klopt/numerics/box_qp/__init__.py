"""Convex quadratic programs over a box cut by a plane: the program, two methods for it."""
