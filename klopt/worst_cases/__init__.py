"""Worst cases of first-order methods: performance estimation with proven ends."""
