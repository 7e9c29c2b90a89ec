"""The product of simple sets: every answer is that of its members, one block after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.features import Feature
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["Product"]


def _sets(value: Iterable[SimpleSet]) -> tuple[SimpleSet, ...]:
    if isinstance(value, SimpleSet):
        raise InvalidProblem(f"sets is one {type(value).__name__}; expected a tuple of sets")
    sets = tuple(value)
    if not sets:
        raise InvalidProblem("sets is empty; a product needs at least one set")
    for i, member in enumerate(sets):
        if not isinstance(member, SimpleSet):
            raise InvalidProblem(f"sets[{i}] is a {type(member).__name__}; expected a simple set")
    return sets


@attrs.frozen(slots=False)
class Product(SimpleSet):
    """The concatenations of one point of each set.

    Parameters
    ----------
    sets : iterable of SimpleSet
        The factors, in order.

    Examples
    --------
    >>> from klopt.model.sets.simplex import Simplex
    >>> [block.size for block in Product((Simplex(2), Simplex(3))).split(np.zeros(5))]
    [2, 3]
    """

    sets: tuple[SimpleSet, ...] = attrs.field(converter=_sets)

    @property
    def size(self) -> int:
        return sum(member.size for member in self.sets)

    @property
    def features(self) -> frozenset[Feature]:
        return frozenset({Feature.PRODUCT}).union(*(member.features for member in self.sets))

    @property
    def radius(self) -> float:
        return sum(member.radius for member in self.sets)

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return the blocks of x (views, not copies), one for each set."""
        ends = np.cumsum([member.size for member in self.sets])
        return tuple(np.split(x, ends[:-1]))

    def project(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.project(block) for member, block in self._pairs(x)])

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        return np.concatenate([member.linear_minimiser(block) for member, block in self._pairs(g)])

    def linear_minimum(self, g: FloatArray) -> float:
        return sum(member.linear_minimum(block) for member, block in self._pairs(g))

    def centre(self) -> FloatArray:
        return np.concatenate([member.centre() for member in self.sets])

    def violation(self, x: FloatArray) -> float:
        errors = [member.violation(block) for member, block in self._pairs(x)]
        # Unlike the built-in max, NumPy's passes a NaN on.
        return float(np.max(errors))

    def repair(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.repair(block) for member, block in self._pairs(x)])

    @property
    def has_mirror(self) -> bool:
        return all(member.has_mirror for member in self.sets)

    def mirror(self, theta: FloatArray) -> FloatArray:
        return np.concatenate([member.mirror(block) for member, block in self._pairs(theta)])

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.mirror_dual(block) for member, block in self._pairs(x)])

    @property
    def mirror_depth(self) -> float:
        return sum(member.mirror_depth for member in self.sets)

    def dual_norm(self, g: FloatArray) -> float:
        """Return the root of the sum of the squares of the blocks' norms."""
        norms = [member.dual_norm(block) for member, block in self._pairs(g)]
        return float(np.linalg.norm(norms))

    def _pairs(self, x: FloatArray) -> Iterator[tuple[SimpleSet, FloatArray]]:
        """The members, each with its block of x."""
        return zip(self.sets, self.split(x), strict=True)
