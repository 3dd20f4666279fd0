"""A picture of a forecast: what was seen, the fan of what may come, and how soon a loss is likely.

Imported on its own, as it needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from parcae_predictor.batches import Floats
from parcae_predictor.forecast import Forecast
from parcae_traces.plot import CALM, DASHED, FAINT, INK, LOSS, save_figure
from parcae_traces.series import Series

BANDS = ((0.5, 0.32), (0.8, 0.2), (0.95, 0.14))
"""Shares of the paths within a band, and how strongly it is drawn."""
SEEN_PER_AHEAD = 2
"""Intervals of the history that are drawn, per interval ahead."""


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is drawn."""

    title: str
    subtitle: str
    capacity: int
    seen: Series
    forecast: Forecast
    came: Series
    """What then came, as far as the recording knows; may be empty."""

    @property
    def minutes(self) -> float:
        """Length of an interval."""
        return self.seen.interval_s / 60

    @property
    def shown(self) -> int:
        """Intervals of the past that are drawn, whether or not there are so many."""
        return SEEN_PER_AHEAD * self.forecast.horizon

    def edges(self, first: int, intervals: int) -> list[float]:
        """Begin of each of some intervals and end of the last one, in minutes from now."""
        return [(first + i) * self.minutes for i in range(intervals + 1)]


def draw_fan(picture: Picture, path: Path) -> None:
    """Draw into a file; its suffix (.png, .svg, .pdf) tells the format.

    Raises:
        InputError: the file cannot be written, or its suffix is of no known format.
    """
    save_figure(figure_of(picture), path)


def figure_of(picture: Picture) -> Figure:
    """The picture, not yet saved. Needs no display."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    _draw_fan(above, picture)
    _draw_past(above, picture)
    _draw_came(above, picture)
    _draw_losses(below, picture)
    _write_heading(above, picture)
    below.set_xlim(-picture.shown * picture.minutes, picture.forecast.horizon * picture.minutes)
    below.set_xlabel("minutes from now", color=INK)
    for axes in (above, below):
        axes.axvline(0, color=INK, linewidth=0.8, linestyle=DASHED)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
        axes.tick_params(colors=INK)
    above.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    return figure


def _draw_fan(axes: Axes, picture: Picture) -> None:
    # Everything of an interval is drawn from its begin on, as recordings have it.
    edges = picture.edges(0, picture.forecast.horizon)
    for share, strength in BANDS:
        low, high = (_stepped(picture.forecast.quantile((1 + d * share) / 2)) for d in (-1, 1))
        axes.fill_between(edges, low, high, step="post", color=CALM, alpha=strength, linewidth=0)
    mean = _stepped(picture.forecast.mean())
    axes.step(edges, mean, where="post", color=CALM, linewidth=2.4)
    axes.axhline(picture.capacity, color=FAINT, linestyle=DASHED, linewidth=1)
    shown = (*low, *picture.seen.available[-picture.shown :], *picture.came.available)
    margin = 0.08 * picture.capacity
    axes.set_ylim(max(min(shown) - 2 * margin, 0), picture.capacity + margin)


def _draw_past(axes: Axes, picture: Picture) -> None:
    counts = picture.seen.available[-picture.shown :]
    removed = picture.seen.removed[-picture.shown :]
    if not counts:
        return
    edges = picture.edges(-len(counts), len(counts))
    steps = [*counts, picture.forecast.now]
    axes.fill_between(edges, steps, step="post", color=CALM, alpha=0.1, linewidth=0)
    axes.step(edges, steps, where="post", color=CALM, linewidth=1.6)
    _draw_batches(axes, edges, counts, removed)


def _draw_came(axes: Axes, picture: Picture) -> None:
    counts = picture.came.available
    if not counts:
        return
    edges = picture.edges(0, len(counts))
    axes.step(edges, [*counts, counts[-1]], where="post", color=INK, linewidth=1.6, zorder=4)
    _draw_batches(axes, edges, counts, picture.came.removed)


def _draw_batches(
    axes: Axes, edges: list[float], counts: Sequence[int], removed: Sequence[int]
) -> None:
    for edge, count, gone in zip(edges, counts, removed, strict=False):
        if gone:
            axes.vlines(edge, count, count + gone, color=LOSS, linewidth=2.4, zorder=5)


def _draw_losses(axes: Axes, picture: Picture) -> None:
    gone = np.cumsum(picture.forecast.removed, axis=1)
    times = (np.arange(picture.forecast.horizon) + 0.5) * picture.minutes
    for least, strength in ((1, 0.3), (_large(picture.forecast), 0.75)):
        chance = 100 * (gone >= least).mean(axis=0)
        axes.bar(times, chance, 0.82 * picture.minutes, color=LOSS, alpha=strength, linewidth=0)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("chance, %", color=INK)
    axes.legend(
        handles=[
            Patch(color=LOSS, alpha=0.3, linewidth=0, label="anything removed by then"),
            Patch(
                color=LOSS,
                alpha=0.75,
                linewidth=0,
                label=f"{_large(picture.forecast)} or more removed by then",
            ),
        ],
        loc="upper left",
        frameon=False,
        labelcolor=INK,
    )


def _write_heading(axes: Axes, picture: Picture) -> None:
    axes.set_title(picture.title, loc="left", color=INK, fontsize=14, fontweight="bold", pad=44)
    axes.text(0, 1.1, picture.subtitle, transform=axes.transAxes, color=INK, fontsize=10)
    axes.set_ylabel("instances", color=INK)
    handles = [
        Line2D([], [], color=CALM, linewidth=1.6, label="seen"),
        Line2D([], [], color=LOSS, linewidth=2.2, label="removed at once"),
        Line2D([], [], color=CALM, linewidth=2.2, label="mean forecast"),
        Patch(color=CALM, alpha=0.5, linewidth=0, label="half of the paths"),
        Patch(color=CALM, alpha=0.3, linewidth=0, label="80 %"),
        Patch(color=CALM, alpha=0.14, linewidth=0, label="95 %"),
    ]
    if len(picture.came):
        handles.append(Line2D([], [], color=INK, linewidth=1.6, label="what came"))
    handles.append(Line2D([], [], color=FAINT, linestyle=DASHED, label="capacity"))
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=len(handles),
        frameon=False,
        labelcolor=INK,
        fontsize=9,
        columnspacing=1.2,
        handlelength=1.4,
        handletextpad=0.5,
    )


def _large(forecast: Forecast) -> int:
    """A loss worth telling apart from any: a tenth of the instances, at least 2."""
    return max(2, round(forecast.now / 10))


def _stepped(values: Floats) -> list[float]:
    """A value per edge: the last interval's lasts until its end."""
    flat: list[float] = values.tolist()
    return [*flat, flat[-1]]
