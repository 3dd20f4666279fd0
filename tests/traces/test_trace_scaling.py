"""Scaling down keeps whole slots, and with them the batches."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_strategies import QUICK, traces

from parcae_api.errors import InputError
from parcae_traces import Trace, find_trace, scale, series_of, slots_of


@QUICK
@given(traces())
def test_slots_hold_every_life_once_and_one_at_a_time(trace: Trace) -> None:
    slots = slots_of(trace)
    assert len(slots) == trace.capacity
    assert sorted(life.instance for slot in slots for life in slot) == sorted(
        life.instance for life in trace.lives
    )
    for slot in slots:
        for earlier, later in itertools.pairwise(slot):
            assert earlier.removed_s is not None
            assert earlier.removed_s <= later.joined_s


@QUICK
@given(traces(), st.data())
def test_scaling_keeps_whole_slots(trace: Trace, data: st.DataObject) -> None:
    num_kept = data.draw(st.integers(1, trace.capacity))
    scaled = scale(trace, num_kept, seed=data.draw(st.integers(0, 5)))
    kept = set(scaled.lives)
    assert kept <= set(trace.lives)
    whole = [slot for slot in slots_of(trace) if slot and set(slot) <= kept]
    assert sum(len(slot) for slot in whole) == len(kept)
    assert len(whole) <= num_kept == scaled.capacity


@pytest.mark.parametrize("num_kept", [4, 8, 13, 16])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_count_follows_its_share_of_the_recorded_one(num_kept: int, seed: int) -> None:
    p3 = find_trace("p3")
    scaled = series_of(scale(p3, num_kept, seed)).available
    share = num_kept / p3.capacity
    deviations = [
        abs(got - whole * share) for got, whole in zip(scaled, series_of(p3).available, strict=True)
    ]
    assert fmean(deviations) < 0.09 * num_kept


def test_who_is_kept_is_still_taken_together() -> None:
    p3 = find_trace("p3")
    scaled = scale(p3, 16, seed=0)
    together = [moment.removed for moment in scaled.moments() if len(moment.removed) > 1]
    recorded = {moment.time_s: set(moment.removed) for moment in p3.moments()}
    assert len(together) >= 15
    for batch in together:
        assert set(batch) <= recorded[batch[0].removed_s or 0.0]


def test_the_seed_chooses_and_the_same_seed_chooses_the_same() -> None:
    p3 = find_trace("p3")
    assert scale(p3, 8, seed=4) == scale(p3, 8, seed=4)
    assert scale(p3, 8, seed=4).lives != scale(p3, 8, seed=5).lives


def test_scaling_to_the_capacity_changes_nothing() -> None:
    p3 = find_trace("p3")
    assert scale(p3, 32) is p3


@pytest.mark.parametrize("num_kept", [0, -1, 33])
def test_scaling_up_or_to_nothing_is_refused(num_kept: int) -> None:
    with pytest.raises(InputError, match="give a number from 1 to its capacity, 32"):
        scale(find_trace("p3"), num_kept)
