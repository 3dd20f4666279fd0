"""The cost model against sums done by hand."""

from __future__ import annotations

import pytest
from planning_helpers import make_layout, make_profile

from parcae_optimizer.cost import Costs, layer_bytes, layer_seconds


def test_one_worker_runs_every_micro_batch_through_every_layer() -> None:
    profile = make_profile([0.1, 0.2, 0.3])
    assert Costs(profile).step_seconds(make_layout(1, [0, 3])) == pytest.approx(8 * 0.6)


def test_a_pipeline_has_to_fill_and_runs_at_the_pace_of_its_slowest_stage() -> None:
    profile = make_profile([0.1, 0.2, 0.3])
    layout = make_layout(1, [0, 2, 3])  # 0.3 and 0.3
    assert Costs(profile).step_seconds(layout) == pytest.approx((8 + 1) * 0.3)
    layout = make_layout(1, [0, 1, 3])  # 0.1 and 0.5
    assert Costs(profile).step_seconds(layout) == pytest.approx((8 + 1) * 0.5)


def test_the_step_waits_for_the_pipeline_with_the_most_micro_batches() -> None:
    profile = make_profile([0.1])
    assert make_layout(3, [0, 1]).micro_batches == (3, 3, 2)
    assert Costs(profile).step_seconds(make_layout(3, [0, 1])) == pytest.approx(3 * 0.1)


def test_a_stage_boundary_sends_the_activations_there_and_their_gradients_back() -> None:
    profile = make_profile([0.1, 0.1], activation_bytes=[5_000, 7_777], bandwidth=1e6)
    # Only the first stage sends; its turn is 0.1 s and 2 x 5 ms.
    assert Costs(profile).step_seconds(make_layout(1, [0, 1, 2])) == pytest.approx(9 * 0.11)


def test_replicas_pay_for_the_all_reduce_of_the_largest_stage() -> None:
    profile = make_profile([0.1, 0.1, 0.1], param_bytes=[1_000, 2_000, 4_000], bandwidth=1e6)
    # 4 replicas: 2 micro-batches each; 2 x 3/4 of 6,000 bytes over the link.
    layout = make_layout(4, [0, 1, 3])
    assert Costs(profile).step_seconds(layout) == pytest.approx(3 * 0.2 + 1.5 * 6_000 / 1e6)


def test_a_single_replica_reduces_nothing() -> None:
    profile = make_profile([0.1], param_bytes=10**9, bandwidth=1e6)
    assert Costs(profile).step_seconds(make_layout(1, [0, 1])) == pytest.approx(0.8)


def test_an_unmeasured_link_is_taken_for_a_gigabyte_per_second() -> None:
    profile = make_profile([0.1], param_bytes=10**9, bandwidth=None)
    assert Costs(profile).step_seconds(make_layout(2, [0, 1])) == pytest.approx(0.4 + 1.0)


def test_measured_seconds_are_taken_as_they_are() -> None:
    assert layer_seconds(make_profile([0.25, 0.0])) == [0.25, 0.0]


def test_before_all_layers_are_measured_their_sizes_stand_for_them() -> None:
    profile = make_profile([0.25, None], param_bytes=[10, 30], activation_bytes=[10, 30])
    first, second = layer_seconds(profile)
    assert second == pytest.approx(3 * first)


def test_memory_holds_state_a_gradient_and_the_activations_in_flight() -> None:
    profile = make_profile(
        [0.1] * 4, param_bytes=10, state_bytes=30, activation_bytes=7, micro_batches=8
    )
    layout = make_layout(2, [0, 1, 3, 4])
    # 1F1B: the first of three stages has three micro-batches in flight, the last has one.
    assert Costs(profile).peak_bytes(layout)[0] == 30 + 2 * 10 + 2 * 7 * 3
    assert Costs(profile).peak_bytes(layout)[1] == 2 * (30 + 2 * 10 + 2 * 7 * 2)
    assert Costs(profile).peak_bytes(layout)[2] == 30 + 2 * 10 + 2 * 7 * 1


def test_no_more_micro_batches_are_in_flight_than_there_are() -> None:
    profile = make_profile([0.1] * 3, activation_bytes=7, micro_batches=2)
    layout = make_layout(1, [0, 1, 2, 3], micro_batches=2)
    assert Costs(profile).peak_bytes(layout)[0] == 2 * 7 * 2


def test_the_bytes_of_a_layer_add_up_to_those_of_its_stage() -> None:
    profile = make_profile([0.1] * 2, param_bytes=[1, 2], state_bytes=[3, 5], activation_bytes=7)
    assert Costs(profile).peak_bytes(make_layout(1, [0, 2]))[0] == sum(
        map(layer_bytes, profile.layers)
    )
