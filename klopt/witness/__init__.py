"""Proposals for the trusted core: points and multipliers repaired until a proof can rest on them."""
