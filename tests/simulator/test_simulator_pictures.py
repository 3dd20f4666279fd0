"""What the pictures work out before they draw."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("matplotlib", reason="pictures need the traces extra")

from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_simulator.models import find_model
from parcae_simulator.plots import best_variants, layouts_figure, samples_figure, spread
from parcae_simulator.scenario import scenario_of
from parcae_simulator.simulate import Options
from parcae_simulator.sweep import run_cell
from parcae_traces import find_trace


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=12), st.floats(0.1, 1e4))
def test_labels_keep_their_distance_and_their_middle(values: list[float], gap: float) -> None:
    falling = sorted(values, reverse=True)
    places = spread(falling, gap)
    assert all(a - b >= gap * (1 - 1e-6) - 1e-6 for a, b in pairwise(places))
    assert sum(places) == pytest.approx(sum(falling), abs=1e-3)


def test_labels_far_apart_stay() -> None:
    assert spread([9.0, 5.0, 1.0], 2.0) == [9.0, 5.0, 1.0]
    assert spread([5.0, 5.0], 2.0) == [6.0, 4.0]


def test_the_best_variant_is_drawn_and_empty_recordings_draw_too() -> None:
    options = Options(policies=("ideal", "varuna", "bamboo"), draws=1)
    cell = run_cell(find_model("gpt-6.7b"), scenario_of(find_trace("p3-dense-8")), options)
    shown = best_variants(cell.outcomes)
    assert list(shown) == ["ideal", "varuna", "bamboo"]
    assert cell.ideal.samples == 0  # eight instances hold no GPT 6.7B
    for figure in (samples_figure(cell), layouts_figure(cell)):
        figure.canvas.draw()
