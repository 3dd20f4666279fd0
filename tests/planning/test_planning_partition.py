"""Cutting layers into stages: as good as trying every cut, and the same cut every time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parcae_optimizer.partition import even_split, partition, partitions

# Whole numbers: their sums are exact, so that equal really is equal.
weights = st.lists(st.integers(0, 9).map(float), min_size=1, max_size=9)


def largest(weights: Sequence[float], boundaries: Sequence[int]) -> float:
    return max(sum(weights[a:b]) for a, b in itertools.pairwise(boundaries))


def all_cuts(layers: int, parts: int) -> list[tuple[int, ...]]:
    inner = itertools.combinations(range(1, layers), parts - 1)
    return [(0, *cut, layers) for cut in inner]


@given(weights, st.data())
def test_no_cut_is_better(weights: list[float], data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, len(weights)))
    cut = partition(weights, parts)
    assert cut in all_cuts(len(weights), parts)
    best = min(largest(weights, other) for other in all_cuts(len(weights), parts))
    assert largest(weights, cut) == best


@given(weights, st.data())
def test_among_equally_good_cuts_the_last_stage_is_the_longest(
    weights: list[float], data: st.DataObject
) -> None:
    parts = data.draw(st.integers(1, len(weights)))
    cuts = all_cuts(len(weights), parts)
    best = min(largest(weights, cut) for cut in cuts)
    cut = partition(weights, parts)
    assert cut[-2] == min(good[-2] for good in cuts if largest(weights, good) == best)
    if parts > 1:
        assert cut[:-1] == partition(weights[: cut[-2]], parts - 1)


@given(weights)
def test_one_table_holds_all_numbers_of_parts(weights: list[float]) -> None:
    table = partitions(weights, len(weights))
    assert table == [partition(weights, parts) for parts in range(1, len(weights) + 1)]


def test_a_heavy_layer_stands_alone() -> None:
    assert partition([1, 1, 9, 1, 1], 3) == (0, 2, 3, 5)


def test_layers_of_no_weight_still_have_a_stage() -> None:
    assert partition([0, 0, 0], 3) == (0, 1, 2, 3)


@pytest.mark.parametrize("parts", [0, 4])
def test_there_are_as_many_parts_as_layers_at_most(parts: int) -> None:
    with pytest.raises(ValueError, match="3 layers cannot be cut into"):
        partition([1, 2, 3], parts)


@given(st.integers(1, 600), st.integers(1, 64))
def test_even_split(total: int, parts: int) -> None:
    shares = even_split(total, parts)
    assert sum(shares) == total
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1
    assert list(shares) == sorted(shares, reverse=True)


def test_eight_over_three() -> None:
    assert even_split(8, 3) == (3, 3, 2)
