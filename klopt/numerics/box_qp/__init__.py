"""Convex quadratics over a box cut by a plane: data and gap, active set, interior point."""
