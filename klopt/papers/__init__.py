"""The five papers: their theorems, their experiments, their references."""
