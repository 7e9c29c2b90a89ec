"""Kernel matrices, similarities and graphs, and how what is learned on them reaches new points."""
