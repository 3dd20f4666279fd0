"""Pictures of a comparison: samples over time, layouts over time, shares by segment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from parcae_api.errors import InputError
from parcae_optimizer.rules import NOTHING, Floats
from parcae_simulator.outcome import Outcome
from parcae_simulator.scenario import WHOLE, Scenario
from parcae_simulator.sweep import Cell

INK = "#22303c"
CALM = "#2f7f9f"
LOSS = "#d1495b"
FAINT = "#aab4bd"
COLOURS = {
    "ideal": "#8a949c",
    "known": INK,
    "parcae": "#d1495b",
    "nochange": "#2f7f9f",
    "published": "#e08e2b",
    "reactive": "#8d6a9f",
    "varuna": "#3f9b6d",
    "oobleck-joins": "#8c7a2f",
    "oobleck": "#b39b3f",
    "torchft": "#5b7fd1",
    "torchrun": "#9a5b3b",
    "bamboo": "#6aa84f",
}
"""Also the order in legends; policies that are not here are not drawn."""
LEAST_LABELLED = 4
"""Intervals that a layout must last to have its name written."""
_MINUTES_UP_TO = 200


def draw_all(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Draw every picture of a comparison into a folder that exists.

    Raises:
        InputError: a file cannot be written.
    """
    figures: list[tuple[str, Figure]] = []
    for cell in cells:
        name = f"{cell.model.name}-{cell.scenario.trace}-{cell.scenario.segment}"
        figures.append((f"{name}-samples.png", samples_figure(cell)))
        figures.append((f"{name}-layouts.png", layouts_figure(cell)))
    for model, of_model in groupby(cells, key=lambda cell: cell.model.name):
        figures.append((f"{model}-shares.png", shares_figure(list(of_model))))
    paths = []
    for name, figure in figures:
        path = folder / name
        try:
            figure.savefig(path, dpi=140)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error
        paths.append(path)
    return paths


def best_variants(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Each policy that has a colour, in its variant that trains the most."""
    found: dict[str, Outcome] = {}
    for policy in COLOURS:
        variants = [outcome for outcome in outcomes if outcome.policy == policy]
        if variants:
            found[policy] = max(variants, key=lambda outcome: outcome.samples)
    return found


def samples_figure(cell: Cell) -> Figure:
    """Samples so far, and how far each policy has fallen behind the ideal."""
    figure, (above, below) = _figure(
        f"{cell.model.name} on {_scene(cell)}: samples trained",
        f"{cell.rules} rules, each policy in its best variant; below, what it lacks to the ideal",
        rows=(1.3, 1),
    )
    times, unit = _edges(cell.scenario)
    possible = _sums(cell.ideal)
    ends: list[tuple[float, str, str]] = []
    for policy, outcome in best_variants(cell.outcomes).items():
        sums = _sums(outcome)
        colour, width = COLOURS[policy], 2.4 if policy == "parcae" else 1.5
        style = "dashed" if policy == "ideal" else "solid"
        above.plot(times, sums, color=colour, linewidth=width, linestyle=style)
        if policy != "ideal":
            below.plot(times, possible - sums, color=colour, linewidth=width)
        share = outcome.samples / cell.ideal.samples if cell.ideal.samples else 0.0
        ends.append((float(sums[-1]), f"{outcome.label} {share:.0%}", colour))
    above.set_xlim(times[0], times[-1])
    above.set_ylim(0, max(1.0, float(possible[-1])) * 1.06)
    below.set_ylim(bottom=min(0.0, below.get_ylim()[0] if _any_ahead(cell) else 0.0))
    _label_ends(above, ends)
    above.set_ylabel("samples", color=INK)
    below.set_ylabel("behind the ideal", color=INK)
    below.set_xlabel(f"{unit} since the start", color=INK)
    for axes in (above, below):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return figure


def layouts_figure(cell: Cell) -> Figure:
    """Instances, and the layout of each policy with its pauses."""
    shown = best_variants(cell.outcomes)
    figure, (above, below) = _figure(
        f"{cell.model.name} on {_scene(cell)}: layouts",
        f"{cell.rules} rules; replicas × stages over time, darker with more workers; red: paused",
        rows=(1, max(1.0, 0.32 * len(shown))),
    )
    times, unit = _edges(cell.scenario)
    counts = cell.scenario.counts
    above.stairs(counts, times, fill=True, color=CALM, alpha=0.16)
    above.stairs(counts, times, baseline=None, color=CALM, linewidth=1.6)
    above.axhline(cell.scenario.capacity, color=FAINT, linestyle=(0, (4, 4)), linewidth=1, zorder=0)
    above.set_ylim(0, cell.scenario.capacity * 1.1)
    above.set_ylabel("instances", color=INK)
    above.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    for row, (policy, outcome) in enumerate(shown.items()):
        _draw_layouts(below, row, outcome, cell.scenario, times)
        below.text(
            -0.008,
            row,
            policy,
            transform=below.get_yaxis_transform(),
            ha="right",
            va="center",
            color=COLOURS[policy],
            fontweight="bold" if policy == "parcae" else "normal",
        )
    below.set_ylim(len(shown) - 0.4, -0.6)
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xlim(times[0], times[-1])
    below.set_xlabel(f"{unit} since the start", color=INK)
    return figure


def shares_figure(cells: Sequence[Cell]) -> Figure:
    """Share of the ideal by segment, each policy in its best and its worst variant."""
    policies = [p for p in COLOURS if p != "ideal" and any(cell.of(p) for cell in cells)]
    figure, (axes,) = _figure(
        f"{cells[0].model.name}: share of what is possible",
        f"{cells[0].rules} rules; bar: the best variant of a policy; dark line: its worst (notice, "
        "store, timing)",
        rows=(1,),
    )
    width = 0.86 / max(1, len(policies))
    for place, policy in enumerate(policies):
        shares = [_shares(cell, policy) for cell in cells]
        at = np.arange(len(cells)) + (place - (len(policies) - 1) / 2) * width
        best = [max(values) for values in shares]
        bars = axes.bar(at, best, width * 0.9, color=COLOURS[policy])
        axes.hlines([min(values) for values in shares], at - width * 0.45, at + width * 0.45, INK)
        if len(cells) * len(policies) <= 50:
            labels = [f"{share:.0f}" for share in best]
            axes.bar_label(bars, labels, padding=2, fontsize=7, color=INK)
    axes.set_xticks(range(len(cells)), [_scene(cell) for cell in cells], color=INK)
    axes.set_ylim(0, 108)
    axes.set_ylabel("% of ideal", color=INK)
    axes.legend(
        handles=[Patch(color=COLOURS[policy], label=policy) for policy in policies],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        labelcolor=INK,
    )
    return figure


def _figure(title: str, subtitle: str, rows: tuple[float, ...]) -> tuple[Figure, list[Axes]]:
    height = 2.2 + 2.4 * sum(rows) / rows[0] if len(rows) > 1 else 5.2
    figure = Figure(figsize=(11, min(height, 9.5)), layout="constrained")
    FigureCanvasAgg(figure)
    parts = figure.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)
    axes = [row[0] for row in parts]
    axes[0].set_title(title, loc="left", color=INK, fontsize=14, fontweight="bold", pad=24)
    axes[0].text(0, 1.03, subtitle, transform=axes[0].transAxes, color=INK, fontsize=10)
    for part in axes:
        part.spines[["top", "right"]].set_visible(False)
        part.spines[["left", "bottom"]].set_color(FAINT)
        part.tick_params(colors=INK)
    return figure, axes


def _edges(scenario: Scenario) -> tuple[Floats, str]:
    """[intervals + 1] times, in minutes or, where there are many, in hours."""
    minutes = np.arange(len(scenario.counts) + 1) * scenario.interval_s / 60
    if minutes[-1] <= _MINUTES_UP_TO:
        return minutes, "minutes"
    return minutes / 60, "hours"


def _sums(outcome: Outcome) -> Floats:
    """[intervals + 1] samples so far."""
    return np.concatenate([[0.0], np.cumsum(outcome.samples_by_interval)])


def _label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names beside the ends of lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    ordered = sorted(ends, reverse=True)
    places = spread([value for value, _, _ in ordered], (high - low) / 16)
    for (value, text, colour), place in zip(ordered, places, strict=True):
        axes.annotate(
            text,
            (1.0, value),
            xytext=(1.025, place),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            color=colour,
            va="center",
            fontsize=9,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.7,
                "relpos": (0.0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
            annotation_clip=False,
        )


def _any_ahead(cell: Cell) -> bool:
    """Whether a policy trains more than the ideal, as sets of unequal pipelines may."""
    shown = best_variants(cell.outcomes).values()
    return any(outcome.samples > cell.ideal.samples for outcome in shown)


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Falling values moved apart to at least ``gap``, groups of them staying where they were."""
    groups: list[tuple[float, int]] = []  # (middle, how many)
    for value in values:
        groups.append((value, 1))
        while len(groups) > 1:
            (upper, many), (lower, few) = groups[-2:]
            if upper - lower >= gap * (many + few) / 2:
                break
            # Joined about the mean of their wishes, the wish of a group being its middle.
            groups[-2:] = [((upper * many + lower * few) / (many + few), many + few)]
    return [
        middle + gap * ((count - 1) / 2 - place)
        for middle, count in groups
        for place in range(count)
    ]


def _draw_layouts(
    axes: Axes, row: int, outcome: Outcome, scenario: Scenario, times: Floats
) -> None:
    shades = colormaps["Blues"]
    start = 0
    for grid, run in groupby(outcome.layouts):
        stop = start + len(list(run))
        left, right = times[start], times[stop]
        if grid != NOTHING:
            shade = 0.12 + 0.6 * grid.workers / max(1, scenario.capacity)
            axes.barh(row, right - left, 0.74, left=left, color=shades(shade), edgecolor="white")
            if stop - start >= LEAST_LABELLED * len(outcome.layouts) / 60:
                colour = "white" if shade > 0.5 else INK
                middle = (left + right) / 2
                axes.text(
                    middle, row, str(grid), ha="center", va="center", fontsize=7, color=colour
                )
        start = stop
    paused = outcome.paused_by_interval_s / scenario.interval_s
    widths = np.diff(times) * paused
    there = paused > 0
    axes.barh(
        np.full(there.sum(), row + 0.29), widths[there], 0.16, left=times[:-1][there], color=LOSS
    )


def _shares(cell: Cell, policy: str) -> list[float]:
    whole = cell.ideal.samples or 1.0
    found = [100 * o.samples / whole for o in cell.outcomes if o.policy == policy]
    return found or [0.0]


def _scene(cell: Cell) -> str:
    scenario = cell.scenario
    return scenario.trace if scenario.segment == WHOLE else f"{scenario.trace} {scenario.segment}"
