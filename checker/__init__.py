"""Checks certificates without klopt: one file that needs nothing but Python."""
