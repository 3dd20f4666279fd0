"""``timeline.png``: instances, configuration, throughput and loss over the run's time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from parcae_agent.ledger import CommittedStep
from parcae_api.events import AnyEvent, InstanceLost, Migration, NoticeGiven, RolledBack
from parcae_cli.local.recorder import Count

_INK = "#22303c"
_BLUE, _GREEN, _AMBER, _RED, _PURPLE = "#2f6fb0", "#2a9d6f", "#d98f1f", "#c8443c", "#7a4fa3"


def draw_timeline(
    path: Path,
    *,
    title: str,
    started_unix_s: float,
    end_s: float,
    counts: Sequence[Count],
    events: Sequence[AnyEvent],
    steps: Sequence[CommittedStep],
    batch: int,
) -> None:
    """Draw the run.

    Args:
        path: The PNG to write.
        title: Above the picture.
        started_unix_s: When the run started.
        end_s: Its length in seconds.
        counts: Instances over time.
        events: The run's events.
        steps: The committed steps.
        batch: Samples per step.
    """
    figure = Figure(figsize=(12, 9), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(4, 1, sharex=True, height_ratios=[2.2, 1.5, 2, 2.2])
    figure.suptitle(title, fontsize=13, fontweight="bold", color=_INK, x=0.01, ha="left")
    times = [s.at_unix_s - started_unix_s for s in steps]
    _draw_counts(axes[0], counts, events, started_unix_s, end_s)
    _draw_configurations(axes[1], steps, times, end_s)
    _draw_speed(axes[2], times, batch, end_s)
    _draw_loss(axes[3], steps, times)
    for axis in axes:
        _mark(axis, events, started_unix_s)
        axis.set_xlim(0, end_s)
        axis.grid(axis="y", color="#e5e9ed", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=_INK, labelsize=9)
    axes[3].set_xlabel("seconds since the start", color=_INK)
    figure.savefig(path)


def _draw_counts(
    axis: Any, counts: Sequence[Count], events: Sequence[AnyEvent], started: float, end_s: float
) -> None:
    if counts:
        x = [c.at_s for c in counts] + [end_s]
        y = [c.instances for c in counts] + [counts[-1].instances]
        axis.step(x, y, where="post", color=_BLUE, linewidth=1.8)
        axis.fill_between(x, y, step="post", color=_BLUE, alpha=0.12)
        axis.set_ylim(0, max(y) * 1.25)
        top = max(y) * 1.12
        noticed = [e.at_unix_s - started for e in events if isinstance(e, NoticeGiven)]
        lost = [e for e in events if isinstance(e, InstanceLost)]
        _points(axis, noticed, top, "v", _AMBER, "notice")
        gone = [e.at_unix_s - started for e in lost if e.noticed]
        sudden = [e.at_unix_s - started for e in lost if not e.noticed]
        _points(axis, gone, top, "|", _AMBER, "gone as announced")
        _points(axis, sudden, top, "x", _RED, "gone without notice")
        if noticed or gone or sudden:
            axis.legend(loc="lower left", ncols=3, fontsize=8, frameon=False)
    axis.set_ylabel("instances", color=_INK)


def _points(axis: Any, x: list[float], y: float, marker: str, color: str, label: str) -> None:
    if x:
        axis.scatter(x, [y] * len(x), marker=marker, color=color, s=36, label=label, zorder=3)


def _draw_configurations(
    axis: Any, steps: Sequence[CommittedStep], times: Sequence[float], end_s: float
) -> None:
    """A bar per epoch: its length is its time, its rows are pipelines cut into stages."""
    shades = ["#d9e7f5", "#d8efe3", "#fbe8cc", "#e9dff3", "#f6d9d6", "#dfe4e8"]
    names = list(dict.fromkeys(s.configuration for s in steps))
    start = 0
    for index in range(1, len(steps) + 1):
        if index < len(steps) and steps[index].revision == steps[start].revision:
            continue
        left = times[start]
        right = times[index] if index < len(steps) else min(end_s, times[-1])
        name = steps[start].configuration
        shade = shades[names.index(name) % len(shades)]
        axis.barh(0, right - left, left=left, height=0.9, color=shade, edgecolor="white")
        if right - left > end_s / 45:
            d, _, p = name.partition("x")
            text = f"{d}×{p}"
            axis.text((left + right) / 2, 0, text, ha="center", va="center", fontsize=9, color=_INK)
        start = index
    axis.set_ylim(-0.6, 0.6)
    axis.set_yticks([])
    axis.set_ylabel("layout D×P", color=_INK)


def _draw_speed(axis: Any, times: Sequence[float], batch: int, end_s: float) -> None:
    """Committed samples per second in windows of a hundredth of the run, pauses included."""
    width = max(end_s / 100, 0.5)
    bins = [0] * (int(end_s / width) + 1)
    for at in times:
        if 0 <= at <= end_s:
            bins[int(at / width)] += batch
    x = [i * width for i in range(len(bins))]
    axis.step(x, [b / width for b in bins], where="post", color=_GREEN, linewidth=1.4)
    axis.fill_between(x, [b / width for b in bins], step="post", color=_GREEN, alpha=0.15)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("samples/s", color=_INK)


def _draw_loss(axis: Any, steps: Sequence[CommittedStep], times: Sequence[float]) -> None:
    known = [(t, s.loss) for t, s in zip(times, steps, strict=True) if s.loss is not None]
    if known:
        axis.plot([t for t, _ in known], [v for _, v in known], color=_PURPLE, linewidth=1.2)
        axis.annotate(
            f"{known[-1][1]:.3f}",
            known[-1],
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=9,
            color=_PURPLE,
            va="center",
            annotation_clip=False,
        )
    axis.set_ylabel("loss", color=_INK)


def _mark(axis: Any, events: Sequence[AnyEvent], started: float) -> None:
    """A line at every change of plan, red at the sudden ones, thick at a rollback."""
    for event in events:
        if isinstance(event, Migration):
            color = _RED if event.sudden else "#9aa7b2"
            axis.axvline(event.at_unix_s - started, color=color, linewidth=0.7, alpha=0.6, zorder=0)
        elif isinstance(event, RolledBack):
            axis.axvline(event.at_unix_s - started, color=_RED, linewidth=2, alpha=0.5, zorder=0)
