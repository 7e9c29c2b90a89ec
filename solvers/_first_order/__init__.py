"""What the first-order methods share: the loop, geometries, averaging, cuts."""
