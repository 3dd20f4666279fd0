"""A picture of a trace: the count over time, and beneath it every instance in its slot."""

from __future__ import annotations

import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from parcae_api.errors import InputError
from parcae_traces.model import Trace
from parcae_traces.scaling import slots_of
from parcae_traces.segments import HOUR_S
from parcae_traces.statistics import statistics_of

INK = "#22303c"
CALM = "#2f7f9f"
LOSS = "#d1495b"
FAINT = "#aab4bd"
DASHED = (0, (4, 4))
BAR = 0.72
"""Height of an instance's bar; slots are 1 apart."""

_MINUTES_UP_TO_S = 3 * HOUR_S
"""Longer traces have their axis in hours."""


def plot_trace(trace: Trace, path: Path) -> None:
    """Draw the trace into a file; its suffix (.png, .svg, .pdf) tells the format.

    Raises:
        InputError: the file cannot be written, or its suffix is of no known format.
    """
    save_figure(figure_of(trace), path)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture; the file's suffix (.png, .svg, .pdf) tells the format.

    Raises:
        InputError: the file cannot be written, or its suffix is of no known format.
    """
    if path.suffix.lower().removeprefix(".") not in figure.canvas.get_supported_filetypes():
        raise InputError(f"{path}: its name tells no format; let it end in .png, .svg or .pdf")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def figure_of(trace: Trace) -> Figure:
    """The picture, not yet saved. Needs no display."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.25, 1))
    unit_s, unit = (60.0, "minutes") if trace.duration_s <= _MINUTES_UP_TO_S else (HOUR_S, "hours")
    _write_heading(above, trace)
    _draw_count(above, trace, unit_s)
    _draw_slots(below, trace, unit_s)
    below.set_xlim(0, trace.duration_s / unit_s)
    below.set_xlabel(f"{unit} since the start", color=INK)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
        axes.tick_params(colors=INK)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    return figure


def _draw_count(axes: Axes, trace: Trace, unit_s: float) -> None:
    last = (trace.duration_s, trace.count_at(math.inf))
    steps = [(0.0, trace.count_at(0)), *trace.counts(), last]
    times = [time_s / unit_s for time_s, _ in steps]
    counts = [count for _, count in steps]
    axes.axhline(trace.capacity, color=FAINT, linestyle=DASHED, linewidth=1)
    axes.fill_between(times, counts, step="post", color=CALM, alpha=0.16, linewidth=0)
    axes.step(times, counts, where="post", color=CALM, linewidth=1.6)
    for moment, (_, after) in zip(trace.moments(), trace.counts(), strict=True):
        if moment.removed:
            # The batch's own fall: who joined at the same moment does not shorten it.
            left = after - len(moment.joined)
            axes.vlines(
                moment.time_s / unit_s,
                left,
                left + len(moment.removed),
                color=LOSS,
                linewidth=2.2,
                zorder=3,
            )
    axes.set_ylim(0, trace.capacity * 1.08)
    axes.set_ylabel("instances", color=INK)


def _draw_slots(axes: Axes, trace: Trace, unit_s: float) -> None:
    for slot, lives in enumerate(slots_of(trace), start=1):
        low, high = slot - BAR / 2, slot + BAR / 2
        spans = [
            (life.joined_s / unit_s, life.seconds_until(trace.duration_s) / unit_s)
            for life in lives
        ]
        axes.broken_barh(spans, (low, BAR), color=CALM, alpha=0.55, linewidth=0)
        losses = [life.removed_s / unit_s for life in lives if life.removed_s is not None]
        axes.vlines(losses, low, high, color=LOSS, linewidth=2.2)
    axes.set_ylim(0.3, trace.capacity + 0.7)
    axes.set_ylabel("slot", color=INK)


def _write_heading(axes: Axes, trace: Trace) -> None:
    figures = statistics_of(trace)
    axes.set_title(trace.name, loc="left", color=INK, fontsize=14, fontweight="bold", pad=24)
    summary = (
        f"{figures.mean_count:.1f} of {figures.capacity} instances on average, "
        f"{figures.num_added} added, {figures.num_removed} removed in {figures.num_batches} "
        f"batches of up to {figures.max_batch}"
    )
    axes.text(0, 1.04, summary, transform=axes.transAxes, color=INK, fontsize=10)
    axes.legend(
        handles=[
            Line2D([], [], color=CALM, label="instances"),
            Line2D([], [], color=LOSS, linewidth=2.2, label="removed at once"),
            Line2D([], [], color=FAINT, linestyle=DASHED, label="capacity"),
        ],
        loc="lower right",
        bbox_to_anchor=(1, 1.0),
        ncols=3,
        frameon=False,
        labelcolor=INK,
    )
