"""``timeline.png``: instances and layouts, throughput and loss over the run's time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from parcae_agent.ledger import CommittedStep
from parcae_api.events import InstanceLost, Migration, NoticeGiven, RolledBack
from parcae_cli.local.recorder import Recorder

_INK, _PALE = "#22303c", "#e5e9ed"
_BLUE, _GREEN, _AMBER, _RED, _PURPLE = "#2f6fb0", "#2a9d6f", "#d98f1f", "#c8443c", "#7a4fa3"
_DEPTHS = ("#cfe3f5", "#cdeadb", "#fbe3bf", "#e2d5f0", "#f5d0cc", "#d5dce2", "#f3e9b8", "#cfeaea")
"""Shades of the pipeline depths 1, 2, … in turn."""


class _Frame:
    """The span of time that is shown, in seconds since the run's start."""

    def __init__(self, recorder: Recorder, steps: Sequence[CommittedStep]) -> None:
        self.started_unix_s = recorder.started_unix_s
        self.left = recorder.playing_since_s
        times = [step.at_unix_s for step in steps] + [e.at_unix_s for e in recorder.events]
        self.right = max([self.left + 1.0, *(self.at(time) for time in times)])

    def at(self, unix_s: float) -> float:
        """Seconds since the run's start."""
        return unix_s - self.started_unix_s


def draw_timeline(
    path: Path,
    *,
    title: str,
    recorder: Recorder,
    steps: Sequence[CommittedStep],
    batch: int,
    speedup: float | None,
) -> None:
    """Draw the run.

    Args:
        path: The PNG to write.
        title: Above the picture.
        recorder: Instances over time, and events.
        steps: The committed steps.
        batch: Samples per step.
        speedup: Recorded seconds per second; None without a recording.
    """
    figure = Figure(figsize=(13, 9), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(3, 1, sharex=True, height_ratios=[3.2, 2, 2])
    figure.suptitle(title, fontsize=13, fontweight="bold", color=_INK, x=0.01, ha="left")
    frame = _Frame(recorder, steps)
    shades = _draw_layouts(axes[0], steps, frame)
    _draw_instances(axes[0], recorder, frame)
    _draw_speed(axes[1], steps, batch, frame)
    _draw_loss(axes[2], steps, frame)
    for axis in axes:
        axis.set_xlim(frame.left, frame.right + 0.04 * (frame.right - frame.left))
        axis.grid(axis="y", color=_PALE, linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=_INK, labelsize=9)
    for axis in axes[1:]:
        _mark_changes(axis, recorder, frame)
    explained = [*axes[0].get_legend_handles_labels()[0], *shades]
    explained += axes[1].get_legend_handles_labels()[0]
    if explained:
        figure.legend(
            handles=explained, loc="outside lower center", ncols=6, fontsize=9, frameon=False
        )
    axes[-1].set_xlabel("seconds since the start", color=_INK)
    if speedup is not None:
        _draw_recorded_minutes(axes[0], frame, speedup)
    figure.savefig(path)


def _draw_layouts(axis: Any, steps: Sequence[CommittedStep], frame: _Frame) -> list[Patch]:
    """A block per epoch: as high as it has workers, a row per pipeline, shaded by its depth.

    Returns:
        What a legend has to explain.
    """
    depths: set[int] = set()
    for first, last, until in _epochs(steps):
        d, p = (int(number) for number in first.configuration.split("x"))
        depths.add(p)
        left, right = frame.at(first.at_unix_s), frame.at(until or last.at_unix_s)
        shade = _DEPTHS[(p - 1) % len(_DEPTHS)]
        for row in range(d):
            axis.bar(
                left,
                p,
                width=right - left,
                bottom=row * p,
                align="edge",
                color=shade,
                edgecolor="white",
                linewidth=1.0,
            )
        # A label takes about a fiftieth of the width; narrower epochs speak by their shade.
        if right - left > 0.022 * (frame.right - frame.left):
            middle = (left + right) / 2
            axis.text(
                middle, d * p / 2, f"{d}×{p}", ha="center", va="center", fontsize=9, color=_INK
            )
    return [
        Patch(color=_DEPTHS[(p - 1) % len(_DEPTHS)], label=f"{p} stage{'s'[: p > 1]}")
        for p in sorted(depths)
    ]


def _epochs(
    steps: Sequence[CommittedStep],
) -> list[tuple[CommittedStep, CommittedStep, float | None]]:
    """First and last step of each epoch, and when the next one committed its first."""
    found: list[tuple[CommittedStep, CommittedStep, float | None]] = []
    start = 0
    for index in range(1, len(steps) + 1):
        if index == len(steps) or steps[index].revision != steps[start].revision:
            until = steps[index].at_unix_s if index < len(steps) else None
            found.append((steps[start], steps[index - 1], until))
            start = index
    return found


def _draw_instances(axis: Any, recorder: Recorder, frame: _Frame) -> None:
    counts = recorder.counts
    top = max([1, *(count.instances for count in counts)])
    if counts:
        x = [count.at_s for count in counts] + [frame.right]
        y = [count.instances for count in counts] + [counts[-1].instances]
        axis.step(x, y, where="post", color=_BLUE, linewidth=2, label="instances there")
    noticed = [e.at_unix_s for e in recorder.events if isinstance(e, NoticeGiven)]
    lost = [e for e in recorder.events if isinstance(e, InstanceLost)]
    gone = [e.at_unix_s for e in lost if e.noticed]
    sudden = [e.at_unix_s for e in lost if not e.noticed]
    for times, height, marker, color, label in (
        (noticed, 1.17, "v", _AMBER, "notice"),
        (gone, 1.08, "|", _AMBER, "gone as announced"),
        (sudden, 1.08, "x", _RED, "gone without notice"),
    ):
        if times:
            x = [frame.at(time) for time in times]
            axis.scatter(x, [top * height] * len(x), marker=marker, color=color, s=40, label=label)
    axis.set_ylim(0, top * 1.26)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("instances, layout D×P", color=_INK)


def _draw_speed(axis: Any, steps: Sequence[CommittedStep], batch: int, frame: _Frame) -> None:
    """Committed samples per second over a window of a fiftieth of the run, pauses included."""
    if len(steps) > 1:
        times = np.array([frame.at(step.at_unix_s) for step in steps])
        times = np.maximum.accumulate(times)
        samples = batch * np.arange(len(steps), dtype=float)
        width = (frame.right - frame.left) / 50
        x = np.linspace(times[0], times[-1], 500)
        left, right = np.maximum(x - width / 2, times[0]), np.minimum(x + width / 2, times[-1])
        gained = np.interp(right, times, samples) - np.interp(left, times, samples)
        y = gained / np.maximum(right - left, 1e-9)
        axis.plot(x, y, color=_GREEN, linewidth=1.6)
        axis.fill_between(x, y, color=_GREEN, alpha=0.15)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("samples/s", color=_INK)


def _draw_loss(axis: Any, steps: Sequence[CommittedStep], frame: _Frame) -> None:
    known = [(frame.at(step.at_unix_s), step.loss) for step in steps if step.loss is not None]
    if known:
        axis.plot([t for t, _ in known], [v for _, v in known], color=_PURPLE, linewidth=1.4)
        axis.annotate(
            f"{known[-1][1]:.3f}",
            known[-1],
            xytext=(5, 0),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color=_PURPLE,
            va="center",
        )
    axis.set_ylabel("loss", color=_INK)


def _mark_changes(axis: Any, recorder: Recorder, frame: _Frame) -> None:
    """A line at every change of plan, red at the sudden ones, thick at a rollback."""
    explained: set[str] = set()
    for event in recorder.events:
        match event:
            case Migration(sudden=False):
                label, color, width = "change of plan", "#9aa7b2", 0.8
            case Migration():
                label, color, width = "after a sudden loss", _RED, 0.8
            case RolledBack() if event.to_step < event.from_step:
                label, color, width = "back to a checkpoint", _RED, 2.5
            case _:
                continue
        axis.axvline(
            frame.at(event.at_unix_s),
            color=color,
            linewidth=width,
            alpha=0.6,
            zorder=0,
            label=None if label in explained else label,
        )
        explained.add(label)


def _draw_recorded_minutes(axis: Any, frame: _Frame, speedup: float) -> None:
    def to_minutes(seconds: Any) -> Any:
        return (np.asarray(seconds) - frame.left) * speedup / 60

    def to_seconds(minutes: Any) -> Any:
        return np.asarray(minutes) * 60 / speedup + frame.left

    above = axis.secondary_xaxis("top", functions=(to_minutes, to_seconds))
    above.set_xlabel("minutes of the recording", color=_INK, fontsize=9)
    above.tick_params(colors=_INK, labelsize=8)
    above.spines["top"].set_visible(False)
