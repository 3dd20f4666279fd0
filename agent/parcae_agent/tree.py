"""The one fixed binary tree in which ``exact`` reduction sums micro-batches.

Leaf (0, m) is micro-batch m; node (k, i) sums leaves i·2^k … (i+1)·2^k-1. A worker that ran a
run of micro-batches merges what it can; the rest is merged across workers, always in the tree's
own order. Floating-point addition then sees the same operands whoever ran what: the bits
depend on the number of micro-batches, not on D×P.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Node(NamedTuple):
    """A complete subtree."""

    level: int
    position: int

    @property
    def start(self) -> int:
        """First leaf below."""
        return self.position << self.level

    @property
    def stop(self) -> int:
        """One past its last leaf."""
        return (self.position + 1) << self.level

    @property
    def sibling(self) -> Node:
        """The other child of its parent."""
        return Node(self.level, self.position ^ 1)

    @property
    def parent(self) -> Node:
        """The node above."""
        return Node(self.level + 1, self.position >> 1)


class TreeSum(Generic[T]):
    """Collects leaves or nodes in any order, merging siblings as soon as both are there."""

    def __init__(self, add: Callable[[T, T], T]) -> None:
        """``add(left, right)`` may destroy ``left`` and return it."""
        self._add = add
        self._nodes: dict[Node, T] = {}

    def insert(self, node: Node, value: T) -> None:
        """Add a node and merge upwards.

        Raises:
            ValueError: a leaf below it is in already: a micro-batch would count twice.
        """
        if any(held.start < node.stop and node.start < held.stop for held in self._nodes):
            raise ValueError(f"{node} was summed already, or a part of it")
        while (sibling := self._nodes.pop(node.sibling, None)) is not None:
            left, right = (sibling, value) if node.position & 1 else (value, sibling)
            value = self._add(left, right)
            node = node.parent
        self._nodes[node] = value

    def nodes(self) -> list[tuple[Node, T]]:
        """What is left unmerged, in leaf order."""
        return sorted(self._nodes.items(), key=lambda item: item[0].start)

    def total(self) -> T:
        """Fold the remaining nodes from the left: the tree's root."""
        (_, value), *rest = self.nodes()
        for _, other in rest:
            value = self._add(value, other)
        return value


def nodes_of(leaves: Iterable[int]) -> list[Node]:
    """The nodes that a worker with those micro-batches is left with, in leaf order."""
    shape: TreeSum[bool] = TreeSum(lambda left, right: True)
    for leaf in leaves:
        shape.insert(Node(0, leaf), True)
    return [node for node, _ in shape.nodes()]
