"""``parcae forecast``: draw a forecast at a time of a recording, and judge the models."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from typer.core import TyperGroup

from parcae_api.errors import InputError
from parcae_cli.targets import check_writable
from parcae_traces import Trace, bundled_traces, find_trace, series_of

if TYPE_CHECKING:
    from parcae_predictor import Forecast, Scores
    from parcae_traces import Series

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(h|min|m|s)?")
_UNIT_S = {None: 3600.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}


class _ShowUnlessNamed(TyperGroup):
    """``parcae forecast p3 --at 5.5`` is ``parcae forecast show p3 --at 5.5``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb in where there is none."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ShowUnlessNamed,
    help="What may come: forecasts of spot availability, drawn and judged. "
    "`parcae forecast TRACE --at T` is short for `show`.",
    no_args_is_help=True,
)


@app.command()
def show(
    where: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="A file in any readable format, or a bundled name."),
    ],
    at: Annotated[
        str, typer.Option("--at", help="Time from the trace's start: hours like 5.5, or 330m.")
    ],
    model: Annotated[
        str, typer.Option("--model", help="hazard, window, arima, persistence or oracle.")
    ] = "hazard",
    horizon: Annotated[int, typer.Option("--horizon", help="Minutes to look ahead.")] = 12,
    out: Annotated[
        Path, typer.Option("--out", help="The picture: a .png, .svg or .pdf file.")
    ] = Path("fan.png"),
    seed: Annotated[int, typer.Option("--seed", help="Of the drawn paths.")] = 0,
) -> None:
    """Forecast from a moment of a recording: a table, and a fan chart beside what then came."""
    from parcae_predictor import Question
    from parcae_predictor.evaluate import judged_predictor

    trace = find_trace(where)
    series = series_of(trace)
    seen = series.window(0, _intervals_until(at, trace, series.interval_s))
    now = seen.available[-1] if len(seen) else trace.count_at(0)
    question = Question(seen, now, trace.capacity, horizon=horizon, seed=seed)
    forecast = judged_predictor(model, trace).forecast(question)
    came = series.window(len(seen), len(seen) + horizon)
    console = Console(highlight=False, markup=False)
    moment = f"{len(seen) * series.interval_s / 3600:.2f} h"
    console.print(
        f"{trace.name} at {moment}: {now} of {trace.capacity} instances; model {model}, "
        f"{forecast.num_paths} paths",
        soft_wrap=True,
    )
    console.print(_forecast_table(forecast, came))
    # Imported here: matplotlib takes a second that mistakes need not wait for.
    from parcae_predictor.fan import Picture, draw_fan

    title = f"{trace.name} at {moment}: the next {horizon} minutes"
    draw_fan(Picture(title, _summary(forecast), trace.capacity, seen, forecast, came), out)
    console.print(f"drawn into {out}", soft_wrap=True)


@app.command()
def evaluate(
    where: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TRACES]...", help="Files or names; default: the bundled ones."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Judge this one; may be repeated. Default: all."),
    ] = None,
    every: Annotated[int, typer.Option("--every", min=1, help="Minutes between forecasts.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: one per CPU.")] = 0,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Write the scores into this file, too.")
    ] = None,
) -> None:
    """Judge models by rolling origin: 12 minutes seen at least, 12 ahead, nothing peeked at."""
    from parcae_predictor.judging import judge
    from parcae_predictor.registry import NAMES, check_name

    names = list(dict.fromkeys(model or NAMES))
    for name in names:
        check_name(name)
    traces = [find_trace(name) for name in dict.fromkeys(where)] if where else bundled_traces()
    if twice := [name for name, number in Counter(t.name for t in traces).items() if number > 1]:
        raise InputError(f"trace {twice[0]!r} is given twice; rename a file, or leave one out")
    if csv_file is not None:
        check_writable(csv_file)
    console = Console(highlight=False, markup=False)
    scores: dict[tuple[str, str], Scores] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("judging", total=len(traces) * len(names))
        for score in judge(traces, names, every=every, jobs=jobs):
            scores[score.trace, score.model] = score
            progress.advance(task)
    if csv_file is not None:
        _write_csv(csv_file, [scores[trace.name, model] for trace in traces for model in names])
    _print_scores(console, traces, names, scores)


def _print_scores(
    console: Console,
    traces: Sequence[Trace],
    models: list[str],
    scores: dict[tuple[str, str], Scores],
) -> None:
    from parcae_predictor.evaluate import geometric_mean, independent

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("trace", overflow="fold")
    table.add_column("model", no_wrap=True)
    for heading in ("MAE", "CRPS", "ratio", "removals", "ratio", "in 80 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for trace in traces:
        for model in models:
            name = trace.name if model == models[0] else ""
            table.add_row(name, model, *_score_cells(scores[trace.name, model]))
    eventful = [trace for trace in traces if scores[trace.name, models[0]].still_count > 0]
    counted = independent(eventful)
    for model in models if len(counted) > 1 else ():
        rows = [scores[name, model] for name in counted]
        count = geometric_mean(row.count_ratio for row in rows)
        removals = geometric_mean(row.removals_ratio for row in rows)
        name = "geometric mean" if model == models[0] else ""
        table.add_row(name, model, "", "", f"{count:.3f}", "", f"{removals:.3f}", "")
    console.print(table)
    console.print(
        "MAE: of the mean; CRPS: of the count; removals: CRPS of those since the forecast; all in "
        "instances, means over the next 12 minutes. ratio: to persistence, below 1 is better; "
        "in 80 %: counts within the band that should hold 80 %. The hazard model's prior leaves "
        "out the judged recording."
    )
    if len(counted) > 1:
        console.print(f"geometric mean: over {', '.join(counted)}", soft_wrap=True)
        if parts := [trace.name for trace in eventful if trace.name not in counted]:
            console.print(f"not in it, as parts of these: {', '.join(parts)}", soft_wrap=True)
        if calm := [trace.name for trace in traces if trace not in eventful]:
            console.print(f"not in it, as nothing happens: {', '.join(calm)}", soft_wrap=True)


def _write_csv(path: Path, rows: list[Scores]) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow((*asdict(rows[0]), "count_ratio", "removals_ratio"))
            for row in rows:
                writer.writerow((*asdict(row).values(), row.count_ratio, row.removals_ratio))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _score_cells(score: Scores) -> tuple[str, ...]:
    return (
        f"{score.mae_mean:.3f}",
        f"{score.crps_count:.3f}",
        f"{score.count_ratio:.3f}",
        f"{score.crps_removals:.3f}",
        f"{score.removals_ratio:.3f}",
        f"{score.coverage:.0%}",
    )


def _forecast_table(forecast: Forecast, came: Series) -> Table:
    import numpy as np

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("minute", "mean", "80 % within", "removed", "any removed", "came"):
        table.add_column(heading, justify="right", no_wrap=True)
    gone = np.cumsum(forecast.removed, axis=1)
    mean, low, high = forecast.mean(), forecast.quantile(0.1), forecast.quantile(0.9)
    for ahead in range(forecast.horizon):
        table.add_row(
            f"+{ahead + 1}",
            f"{mean[ahead]:.1f}",
            f"{low[ahead]:.0f} to {high[ahead]:.0f}",
            f"{gone[:, ahead].mean():.1f}",
            f"{(gone[:, ahead] > 0).mean():.0%}",
            str(came.available[ahead]) if ahead < len(came) else "",
        )
    return table


def _summary(forecast: Forecast) -> str:
    gone = forecast.removed.sum(axis=1)
    low, high = forecast.quantile(0.1)[-1], forecast.quantile(0.9)[-1]
    return (
        f"{forecast.now} instances now, {forecast.mean()[-1]:.1f} expected at the end and 80 % of "
        f"paths within {low:.0f} to {high:.0f}; chance of a removal by then "
        f"{(gone > 0).mean():.0%}; model {forecast.model}"
    )


def _intervals_until(at: str, trace: Trace, interval_s: float) -> int:
    """Whole intervals that have passed.

    Raises:
        InputError: it is no time, or beyond the trace.
    """
    match = _TIME.fullmatch(at.strip())
    if match is None:
        raise InputError(f"--at {at!r} is no time; give hours like 5.5, or minutes like 330m")
    time_s = float(match[1]) * _UNIT_S[match[2]]
    if not time_s <= trace.duration_s:
        raise InputError(
            f"--at {at!r} is beyond {trace.name}, which lasts {trace.duration_s / 3600:.4g} hours; "
            "give hours like 0.5, or minutes like 30m"
        )
    # Decimal hours are seldom whole minutes in binary: 4.35 h must be 261 of them, not 260.
    return math.floor(time_s / interval_s + 1e-6)
