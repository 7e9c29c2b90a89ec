"""Numerical methods that problems and solvers both use, written once."""
