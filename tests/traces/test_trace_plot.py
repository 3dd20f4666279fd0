"""The picture holds the trace's steps and losses, and goes into a file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need the traces extra")

import numpy as np

from parcae_api.errors import InputError
from parcae_traces import Life, Trace, find_trace
from parcae_traces.plot import figure_of, plot_trace


def test_the_steps_and_the_losses_are_drawn() -> None:
    trace = find_trace("p3-dense-8")
    above, below = figure_of(trace).axes
    (heights,) = [ys for line in above.lines if len(ys := np.asarray(line.get_ydata())) > 2]
    assert heights.tolist() == [
        trace.count_at(0),
        *(count for _, count in trace.counts()),
        trace.count_at(3599),
    ]
    losses = [m.time_s / 60 for m in trace.moments() if m.removed]
    drawn = [
        collection.get_segments()[0][0][0]
        for collection in above.collections
        if hasattr(collection, "get_segments")
    ]
    assert drawn == losses
    assert below.get_xlabel() == "minutes since the start"


def test_a_loss_is_as_tall_as_its_batch_whoever_joins_meanwhile() -> None:
    trace = Trace(
        name="swap",
        source="made up",
        duration_s=100.0,
        capacity=3,
        lives=(Life(1, 0.0, 50.0), Life(2, 0.0, 50.0), Life(3, 0.0), Life(4, 50.0)),
    )
    above = figure_of(trace).axes[0]
    (loss,) = [found for found in above.collections if hasattr(found, "get_segments")]
    assert np.asarray(loss.get_segments()[0])[:, 1].tolist() == [1, 3]


def test_long_traces_have_their_axis_in_hours() -> None:
    below = figure_of(find_trace("p3")).axes[1]
    assert below.get_xlabel() == "hours since the start"
    assert below.get_xlim() == pytest.approx((0, 40980 / 3600))


def test_a_file_is_written(tmp_path: Path) -> None:
    plot_trace(find_trace("p3-lasp"), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["p.trace", "p"])
def test_a_name_without_a_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"let it end in \.png"):
        plot_trace(find_trace("p3-lasp"), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        plot_trace(find_trace("p3-lasp"), tmp_path / "no" / "p.png")
