"""Theorems of the first-order methods that klopt runs, known from other papers."""
