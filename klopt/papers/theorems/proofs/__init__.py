"""Proofs of claims: certificates that the independent checkers accept, and the argument that joins them."""
