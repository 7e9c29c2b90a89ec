"""`Feature`: what a form needs and a backend offers, as one vocabulary."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CURVED_CONES", "Feature"]


class Feature(StrEnum):
    """What a form needs and a backend offers; the text is how a refusal names it.

    A form needs one shape, then what its parts ask for. A backend takes a form when it offers all
    of it.
    """

    # The shape of a form.
    CONE = "cone programs"
    SIMPLEX = "functions over simple sets"
    SADDLE = "saddle points"
    SPLIT = "saddle points that split into two proximal steps"
    EXPLICIT = "closed forms"

    # Parts of a cone program.
    QUADRATIC = "a quadratic objective"
    SOC = "second-order cones"
    PSD = "semidefinite cones"
    EXP = "exponential cones"
    POWER = "power cones"
    GENERAL_POWER = "power cones of more than three rows"

    # A function over a simple set is exactly one of these, or QUADRATIC.
    LINEAR = "a linear objective"
    MARGIN = "a support-vector-machine objective"
    SMOOTH = "a smooth function by oracle"
    CURVED = "a smooth function that knows its curvature"
    APPLIED = "a smooth function whose curvature can be applied and nearly inverted"
    NONSMOOTH = "a nonsmooth function by oracle"
    ROWS = "a dual function that moves one row at a time"

    # Simple sets other than the plain simplex.
    BOX = "boxes cut by a plane"
    ORDERED = "ordered simplices"
    SPECTRAL = "spectrahedra"
    PRODUCT = "products of simple sets"


CURVED_CONES = frozenset(
    {Feature.SOC, Feature.PSD, Feature.EXP, Feature.POWER, Feature.GENERAL_POWER}
)
"""All kinds of cones that are not polyhedral."""
