"""The papers' claims, one file per paper, each claim a check with a verdict."""
