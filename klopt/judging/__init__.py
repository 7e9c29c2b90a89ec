"""Answers made elsewhere, brought to klopt's proofs: one file for each place they come from."""
