"""``parcae planner`` serves plans over HTTP; ``parcae plan`` answers one what-if question."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from parcae_api.errors import InputError
from parcae_api.history import History, IntervalCounts
from parcae_api.job import HORIZON, LONGEST_HORIZON, MAX_INSTANCES, Pipeline, explain
from parcae_api.log_lines import log_format_of
from parcae_api.planning import MOST_WORKERS, PlanAnswer, PlanRequest
from parcae_api.profile import Profile
from parcae_traces import check_within, find_trace, parse_segment, series_of

app = typer.Typer(help="The planner as a service.", no_args_is_help=True)

ModelOption = Annotated[
    str, typer.Option("--model", help="Forecast: hazard, window, arima or persistence.")
]


@app.callback()
def planner() -> None:
    """The planner as a service."""


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8080,
    model: ModelOption = "hazard",
) -> None:
    """Answer /v1/plan and /v1/forecast until interrupted; /docs describes them."""
    from parcae_optimizer.serving import ServiceSettings
    from parcae_optimizer.serving import serve as serve_until_told

    if not host:
        raise InputError("--host is empty; give an address to listen on")
    settings = ServiceSettings(host=host, port=port, model=model, log_format=log_format_of())
    serve_until_told(settings)


def plan(
    profile: Annotated[
        Path, typer.Option("--profile", help="A profile.json that `parcae local` recorded.")
    ],
    instances: Annotated[int, typer.Option("--instances", help="Instances that are there.")],
    most: Annotated[
        int | None, typer.Option("--max", help="Instances that are asked for (instances.max).")
    ] = None,
    min_stages: Annotated[int, typer.Option("--min-stages", help="Least pipeline depth.")] = 1,
    max_stages: Annotated[int, typer.Option("--max-stages", help="Most pipeline depth.")] = 512,
    memory_gb: Annotated[
        float | None, typer.Option("--memory-gb", help="Of one worker's device.")
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", help="A recording whose last hours are the history."),
    ] = None,
    segment: Annotated[
        str | None, typer.Option("--segment", help="Of the recording; its end is now.")
    ] = None,
    horizon: Annotated[
        int, typer.Option("--horizon", help="Intervals that are looked ahead.")
    ] = HORIZON,
    model: ModelOption = "hazard",
    top: Annotated[int, typer.Option("--top", help="Layouts to show.", min=1, max=20)] = 10,
) -> None:
    """Compare layouts by liveput and throughput for a forecast."""
    from parcae_optimizer.liveput_planner import LiveputPlanner
    from parcae_predictor import predictor_of

    if segment is not None and trace is None:
        raise InputError("--segment: needs a --trace to cut")
    # Without --max, the instances that are there are all that were asked for.
    _check("--instances", instances, 1 if most is None else 0, MOST_WORKERS)
    if most is not None:
        _check("--max", most, max(1, instances), MOST_WORKERS)
    _check("--horizon", horizon, 1, LONGEST_HORIZON)
    _check("--max-stages", max_stages, 1, MAX_INSTANCES)
    _check("--min-stages", min_stages, 1, max_stages)
    if memory_gb is not None and not (memory_gb > 0 and math.isfinite(memory_gb * 1e9)):
        raise InputError(f"--memory-gb: is {memory_gb:g}; give gigabytes above 0")
    try:
        request = PlanRequest(
            profile=_profile(profile),
            num_workers=instances,
            capacity=most,
            pipeline=Pipeline(min_stages=min_stages, max_stages=max_stages),
            worker_memory_bytes=None if memory_gb is None else int(memory_gb * 1e9),
            history=_history(trace, segment) if trace is not None else None,
            horizon=horizon,
        )
    except ValidationError as error:
        raise InputError(explain(error)) from error
    answer = LiveputPlanner(predictor_of(model)).plan(request)
    console = Console()
    if answer.layout is not None:
        console.print(_table(answer, top))
    if answer.forecast is not None:
        expected = answer.forecast
        console.print(
            f"forecast ({expected.model}): {expected.mean[-1]:.1f} instances after "
            f"{len(expected.mean)} intervals of {expected.interval_s:g} s, most likely "
            f"{expected.low[-1]:.0f} to {expected.high[-1]:.0f}; {expected.removed:.1f} losses, "
            f"{expected.added:.1f} joins",
            highlight=False,
            soft_wrap=True,
        )
    console.print(answer.why, highlight=False, soft_wrap=True)
    if answer.layout is None:
        raise typer.Exit(1)


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{option}: is {value}; give a number from {least} to {most}")


def _profile(path: Path) -> Profile:
    try:
        return Profile.from_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"--profile: {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"--profile: {path}: {explain(error)}") from error


def _history(where: str, segment: str | None) -> History:
    """What happened in a recording until the segment's end, as an operator would have seen it."""
    trace = find_trace(where)
    series = series_of(trace)
    stop = len(series)
    if segment is not None:
        part = parse_segment(segment)
        check_within(part, trace)
        stop = int(part.end_s // series.interval_s)
    first = max(0, stop - 240)
    return History(
        interval_s=series.interval_s,
        intervals=tuple(
            IntervalCounts(
                start_unix_s=i * series.interval_s,
                available=series.available[i],
                added=series.added[i],
                removed=series.removed[i],
            )
            for i in range(first, stop)
        ),
    )


def _table(answer: PlanAnswer, top: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("layout", no_wrap=True)
    for heading in ("liveput", "samples/s", "pause"):
        table.add_column(heading, justify="right", no_wrap=True)
    chosen = str(answer.layout.configuration) if answer.layout else ""
    for each in answer.alternatives[:top]:
        table.add_row(
            each.configuration,
            _speed(each.liveput_samples_per_second),
            _speed(each.samples_per_second),
            f"{each.pause_seconds:.2f} s",
            style="bold green" if each.configuration == chosen else "",
        )
    return table


def _speed(samples_per_second: float) -> str:
    """Three digits at least, also of a model that takes hours for a sample."""
    return format(samples_per_second, ".1f" if samples_per_second >= 10 else ".3g")
