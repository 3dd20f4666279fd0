"""The summation tree: one order of additions, whoever ran which micro-batch, in whatever order."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from parcae_agent.tree import Node, TreeSum, nodes_of

QUICK = settings(max_examples=150, deadline=None)


def by_definition(leaves: list[Tensor]) -> Tensor:
    """Complete subtrees from the left, each half plus half; then folded from the left."""
    size = 1 << (len(leaves).bit_length() - 1)
    left = _complete(leaves[:size])
    return left if size == len(leaves) else _fold(left, leaves[size:])


def _complete(leaves: list[Tensor]) -> Tensor:
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return _complete(leaves[:half]) + _complete(leaves[half:])


def _fold(total: Tensor, rest: list[Tensor]) -> Tensor:
    size = 1 << (len(rest).bit_length() - 1)
    total = total + _complete(rest[:size])
    return total if size == len(rest) else _fold(total, rest[size:])


def tensors(count: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scales = torch.randint(-12, 12, (count, 1), generator=generator)
    return list(torch.randn(count, 5, generator=generator) * 10.0**scales)


def new_sum() -> TreeSum[Tensor]:
    return TreeSum(lambda left, right: left.add_(right))


@st.composite
def splits(draw: st.DrawFn) -> list[list[int]]:
    """Micro-batches over workers: runs of any lengths, each in any order."""
    total = draw(st.integers(1, 33))
    cuts = sorted(draw(st.sets(st.integers(1, total - 1), max_size=8))) if total > 1 else []
    edges = [0, *cuts, total]
    runs = [list(range(a, b)) for a, b in pairwise(edges)]
    return [draw(st.permutations(run)) for run in runs]


@QUICK
@given(split=splits(), seed=st.integers(0, 2**31), data=st.data())
def test_any_split_in_any_order_gives_the_bits_of_the_definition(
    split: list[list[int]], seed: int, data: st.DataObject
) -> None:
    leaves = tensors(sum(map(len, split)), seed)
    held: list[tuple[Node, Tensor]] = []
    for run in split:
        own = new_sum()
        for leaf in run:
            own.insert(Node(0, leaf), leaves[leaf].clone())
        assert [node for node, _ in own.nodes()] == nodes_of(sorted(run))
        held += own.nodes()
    whole = new_sum()
    for node, value in data.draw(st.permutations(held)):
        whole.insert(node, value)
    assert torch.equal(whole.total(), by_definition(leaves))


@QUICK
@given(total=st.integers(1, 33), data=st.data())
def test_a_micro_batch_that_is_in_already_is_refused(total: int, data: st.DataObject) -> None:
    """Also when it has been merged into a larger node since."""
    summed: TreeSum[int] = TreeSum(lambda left, right: left + right)
    for leaf in range(total):
        summed.insert(Node(0, leaf), 1)
    level = data.draw(st.integers(0, 6))
    position = data.draw(st.integers(0, (total - 1) >> level))
    with pytest.raises(ValueError, match="summed already"):
        summed.insert(Node(level, position), 1)


@given(first=st.integers(0, 40), count=st.integers(1, 40))
def test_nodes_cover_the_leaves_once(first: int, count: int) -> None:
    nodes = nodes_of(range(first, first + count))
    covered = [leaf for node in nodes for leaf in range(node.start, node.stop)]
    assert covered == list(range(first, first + count))
    assert len(nodes) <= 2 * count.bit_length()


def test_adding_sees_left_before_right() -> None:
    summed: TreeSum[str] = TreeSum(lambda left, right: f"({left}{right})")
    for leaf in (3, 0, 6, 2, 1, 5, 4):
        summed.insert(Node(0, leaf), str(leaf))
    assert summed.total() == "((((01)(23))(45))6)"
