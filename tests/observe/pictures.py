"""A dashboard drawn from its queries' answers, panel by panel in its own grid.

Not by Grafana: the layout, titles, units, stacking and steps are the dashboard's, the looks ours.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import questions
from .compare import STEP_S
from .prometheus import Series
from .questions import Question

_UNIT_IN = 0.72, 0.36
"""Of a dashboard's grid, in inches."""
_DPI = 80
_COLORS = ("#3274d9", "#e0a429", "#299c46", "#c4162a", "#8f3bb8", "#6ed0e0", "#ef843c")
_INK, _PALE = "#222222", "#8a8a8a"
_NAMED = {"green": "#299c46", "red": "#c4162a", "blue": "#3274d9", "text": "#555555"}
_MOST_ROWS = 9

Object = dict[str, Any]
Answers = Mapping[Question, Sequence[Series]]
Line = tuple[str, list[float], list[float]]


class Span(NamedTuple):
    """Where time axes begin and end, and the moment of single values and tables."""

    began_s: float
    ended_s: float
    now_s: float


def draw(page: str, answers: Answers, span: Span, file: Path) -> None:
    """Writes the picture of a dashboard.

    Args:
        page: the dashboard.
        answers: to all of its queries, over time.
        span: what of them.
        file: a PNG.
    """
    panels = questions.panels(page)
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels)
    wide, high = _UNIT_IN
    figure = Figure(figsize=(24 * wide, height * high), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    for panel in panels:
        place = panel["gridPos"]
        box = _box(place, height)
        if panel["type"] == "row":
            figure.text(box[0], box[1] + box[3] / 2, panel["title"], size=13, weight="bold")
            continue
        own = {q: s for q, s in answers.items() if q.page == page and q.title == panel["title"]}
        axes = figure.add_axes(_inner(panel, box, height))
        figure.text(
            box[0] + 0.004,
            box[1] + box[3] - 0.16 / (height * high),
            panel["title"],
            size=9.5,
            va="top",
            color=_INK,
        )
        _KINDS[panel["type"]](axes, panel, own, span)
    figure.savefig(file, pil_kwargs={"optimize": True})


def _box(place: Object, height: int) -> tuple[float, float, float, float]:
    left, bottom = place["x"] / 24, 1 - (place["y"] + place["h"]) / height
    return left + 0.004, bottom, place["w"] / 24 - 0.008, place["h"] / height


def _inner(
    panel: Object, box: tuple[float, float, float, float], height: int
) -> tuple[float, float, float, float]:
    """Room for the axes inside of a panel's box."""
    wide, high = 24 * _UNIT_IN[0], height * _UNIT_IN[1]
    left, bottom, right, top = {
        "stat": (0.0, 0.0, 0.0, 0.35),
        "table": (0.1, 0.1, 0.1, 0.45),
        "text": (0.1, 0.1, 0.1, 0.45),
        "state-timeline": (0.95, 0.35, 0.15, 0.45),
    }.get(panel["type"], (0.55, 0.35, 0.15, 0.45))
    return (
        box[0] + left / wide,
        box[1] + bottom / high,
        box[2] - (left + right) / wide,
        box[3] - (bottom + top) / high,
    )


def _curves(axes: Axes, panel: Object, own: Answers, span: Span) -> None:
    custom = panel["fieldConfig"]["defaults"]["custom"]
    lines = _lines(own, span)
    steps = custom.get("lineInterpolation") == "stepAfter"
    stacks = custom.get("stacking", {}).get("mode") == "normal"
    style = "steps-post" if steps else "default"
    stacked = [line for line in lines if not (stacks and line[0] in ("min", "max"))]
    if stacks and stacked:
        every = sorted({at_s for _, times, _ in stacked for at_s in times})
        colors = [_COLORS[n % len(_COLORS)] for n in range(len(stacked))]
        axes.stackplot(
            every,
            [_on(every, line) for line in stacked],
            labels=[name for name, *_ in stacked],
            colors=colors,
            alpha=0.55,
            step="post" if steps else None,
            linewidth=0,
        )
    for number, (name, times, values) in enumerate(lines):
        if stacks and (name, times, values) in stacked:
            continue
        if not custom.get("spanNulls"):
            times, values = _with_gaps(times, values)
        color, dashed = _look(panel, name, _COLORS[number % len(_COLORS)])
        axes.plot(
            times,
            values,
            label=name,
            color=color,
            linewidth=1.3,
            drawstyle=style,
            linestyle="--" if dashed else "-",
            marker="." if len(times) == 1 else "",
        )
    if any(line[0] == "forecast 90 %" for line in lines):
        low, high = (next(line for line in lines if line[0] == f"forecast {n} %") for n in (10, 90))
        axes.fill_between(low[1], low[2], high[2], color=_NAMED["blue"], alpha=0.15, linewidth=0)
    _time_axis(axes, span)
    axes.grid(color="#e4e4e4", linewidth=0.5)
    axes.margins(y=0.08)
    if lines and min(min(values) for _, _, values in lines) >= 0:
        axes.set_ylim(0.0, max(axes.get_ylim()[1] * 1.3, 0.01))  # room for the legend
    if "samples" in panel["fieldConfig"]["defaults"].get("unit", ""):
        axes.set_ylabel("samples/s", size=7, color=_PALE)
    if lines:
        axes.legend(fontsize=6.5, loc="upper left", ncols=3, framealpha=0.75, borderpad=0.3)
    else:
        axes.text(0.5, 0.5, "no data in this run", transform=axes.transAxes, ha="center",
                  size=8, color=_PALE)  # fmt: skip


def _number(axes: Axes, panel: Object, own: Answers, span: Span) -> None:
    axes.axis("off")
    by_name = panel["options"].get("textMode") == "name"
    mapped = {
        value: told["text"]
        for each in panel["fieldConfig"]["defaults"].get("mappings") or ()
        for value, told in each["options"].items()
    }
    told = []
    for name, _, values in _lines(own, span, until_s=span.now_s):
        text = mapped.get(f"{values[-1]:g}", _short(values[-1], panel))
        told.append(name if by_name else f"{name} {text}".strip())
    text = "   ".join(told) or panel["fieldConfig"]["defaults"].get("noValue") or "no data"
    size = 18 if len(text) < 14 else 12
    axes.text(0.5, 0.42, text, transform=axes.transAxes, ha="center", va="center", size=size,
              color=_NAMED["blue"])  # fmt: skip


def _timeline(axes: Axes, panel: Object, own: Answers, span: Span) -> None:
    lines = _lines(own, span)
    for row, (_, times, values) in enumerate(lines):
        color = _NAMED["blue"] if panel["title"] == "Phase" else _NAMED["green"]
        for at_s, value in zip(times, values, strict=True):
            shade = color if value else "#f1f1f1"
            if not value and panel["title"].startswith("Reached"):
                shade = _NAMED["red"]
            axes.barh(row, STEP_S, left=at_s, height=0.75, color=shade, linewidth=0)
    axes.set_yticks(range(len(lines)), [name for name, *_ in lines])
    axes.invert_yaxis()
    _time_axis(axes, span)


def _table(axes: Axes, panel: Object, own: Answers, span: Span) -> None:
    axes.axis("off")
    if panel["title"] == "Last plans":
        header, rows = _last_plans(own, span)
    elif panel["title"] == "Forecast now":
        header, rows = _forecast(own, span)
    else:
        header, rows = _jobs(own, span)
    if not rows:
        axes.text(0.5, 0.5, "no data in this run", transform=axes.transAxes, ha="center",
                  size=8, color=_PALE)  # fmt: skip
        return
    drawn = axes.table([header, *rows[:_MOST_ROWS]], loc="upper center", edges="horizontal")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    drawn.scale(1, 1.15)
    for cell in drawn.get_celld().values():
        cell.set_edgecolor("#dddddd")


def _words(axes: Axes, panel: Object, own: Answers, span: Span) -> None:
    axes.axis("off")
    text = panel["options"]["content"].replace("$job", "gpt").replace("$namespace", "default")
    axes.text(0, 1, text, transform=axes.transAxes, va="top", size=8, family="monospace")


_KINDS = {
    "timeseries": _curves,
    "stat": _number,
    "state-timeline": _timeline,
    "table": _table,
    "text": _words,
}


def _last_plans(own: Answers, span: Span) -> tuple[list[str], list[list[str]]]:
    """One row for each revision, at the first moment that shows it, newest first."""
    columns = {name: (times, values) for name, times, values in _lines(own, span)}
    rows: dict[float, list[str]] = {}
    times, revisions = columns.get("revision", ([], []))
    for at_s, revision in zip(times, revisions, strict=True):
        cells = [f"{at_s - span.began_s:.0f} s", f"{revision:.0f}"]
        for name in ("replicas", "stages"):
            found = dict(zip(*columns.get(name, ([], [])), strict=True))
            cells.append(f"{found[at_s]:.0f}" if at_s in found else "")
        rows.setdefault(revision, cells)
    return ["time", "revision", "replicas", "stages"], list(rows.values())[::-1]


def _forecast(own: Answers, span: Span) -> tuple[list[str], list[list[str]]]:
    """What was told then, a row for each horizon."""
    [all_series] = own.values()
    told = [each for each in all_series if each.values]
    newest = max((t for each in told for t in each.values if t <= span.now_s), default=0.0)
    found = {
        (dict(e.labels)["horizon_seconds"], dict(e.labels)["quantile"]): e.values[newest]
        for e in told
        if newest in e.values
    }
    horizons = sorted({horizon for horizon, _ in found}, key=float)
    quantiles = sorted({quantile for _, quantile in found})
    rows = [[h, *(f"{found[h, q]:.1f}" for q in quantiles)] for h in horizons]
    return ["seconds ahead", *quantiles], rows


def _jobs(own: Answers, span: Span) -> tuple[list[str], list[list[str]]]:
    """A row for each job, as of the end."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for question, all_series in own.items():
        for each in all_series:
            marks = dict(each.labels)
            value = _last(each, span.now_s)
            if value is not None:
                row = cells.setdefault((marks["namespace"], marks["job"]), {})
                row[question.name] = marks.get("phase", f"{value:.4g}")
    names = [question.name for question in own]
    rows = [[*key, *(row.get(name, "") for name in names)] for key, row in sorted(cells.items())]
    return ["namespace", "job", *names], rows


def _lines(own: Answers, span: Span, *, until_s: float | None = None) -> list[Line]:
    """Named as their legends say, in the order of the queries."""
    found: list[Line] = []
    for question, all_series in own.items():
        for each in sorted(all_series, key=lambda s: sorted(s.labels)):
            marks = dict(each.labels)
            name = question.name
            for label in re.findall(r"{{(\w+)}}", name):
                name = name.replace(f"{{{{{label}}}}}", marks.get(label, ""))
            points = sorted(each.values.items())
            if until_s is not None:
                points = [p for p in points if until_s - 2 * STEP_S < p[0] <= until_s]
            if points:
                found.append((name, [t for t, _ in points], [v for _, v in points]))
    return found


def _last(series: Series, until_s: float) -> float | None:
    """Its value then; None where it is not told any more."""
    points = [(t, v) for t, v in series.values.items() if until_s - 2 * STEP_S < t <= until_s]
    return max(points)[1] if points else None


def _with_gaps(times: list[float], values: list[float]) -> tuple[list[float], list[float]]:
    """Where a series was not told, its line is broken."""
    found = [(times[0], values[0])]
    for (before, _), (at_s, value) in itertools.pairwise(zip(times, values, strict=True)):
        if at_s - before > 1.5 * STEP_S:
            found.append((before + STEP_S, math.nan))
        found.append((at_s, value))
    return [at_s for at_s, _ in found], [value for _, value in found]


def _on(times: Sequence[float], line: Line) -> list[float]:
    known = dict(zip(line[1], line[2], strict=True))
    return [known.get(at_s, 0.0) for at_s in times]


def _look(panel: Object, name: str, color: str) -> tuple[str, bool]:
    """Colour, and whether dashed, as the panel's overrides say."""
    dashed = False
    for override in panel["fieldConfig"].get("overrides") or ():
        matcher = override["matcher"]
        exact = matcher["id"] == "byName" and matcher["options"] == name
        regex = matcher["id"] == "byRegexp" and re.fullmatch(matcher["options"].strip("/"), name)
        if exact or regex:
            for each in override["properties"]:
                if each["id"] == "color":
                    color = _NAMED.get(each["value"]["fixedColor"], color)
                if each["id"] == "custom.lineStyle":
                    dashed = True
    return color, dashed


def _time_axis(axes: Axes, span: Span) -> None:
    """Seconds since the run began."""
    axes.set_xlim(span.began_s, span.ended_s)
    ticks = range(0, int(span.ended_s - span.began_s) + 1, 60)
    axes.set_xticks([span.began_s + t for t in ticks], [f"{t} s" for t in ticks])
    axes.tick_params(labelsize=7, colors=_PALE, length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#cccccc")


def _short(value: float, panel: Object) -> str:
    unit = panel["fieldConfig"]["defaults"].get("unit", "")
    if unit == "percentunit":
        return f"{100 * value:.0f} %"
    return f"{value:.3g} s" if unit == "s" else f"{value:.4g}"
