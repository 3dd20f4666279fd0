"""``parcae trace``: look at, cut, scale and convert recordings of spot instances."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from parcae_api.errors import InputError
from parcae_traces import (
    Statistics,
    Trace,
    bundled_traces,
    cut,
    find_trace,
    parse_segment,
    save_compact,
    scale,
    statistics_of,
)

app = typer.Typer(
    help="Look at, cut, scale and convert recordings of spot instances.", no_args_is_help=True
)

TraceArgument = Annotated[
    str, typer.Argument(metavar="TRACE", help="A file in any readable format, or a bundled name.")
]
SegmentOption = Annotated[
    str | None,
    typer.Option("--segment", help="hadp, hasp, ladp, lasp, or start-end in hours: 1.5-2.5."),
]
InstancesOption = Annotated[
    int | None, typer.Option("--instances", help="Scale down to this many instances.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Which instances scaling keeps.")]


@app.command("list")
def list_traces() -> None:
    """List the bundled traces with their statistics."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("trace", no_wrap=True)
    for heading in (
        "hours",
        "cap.",
        "mean",
        "range",
        "added",
        "removed",
        "batch",
        "busy",
        "life",
        "soon",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for trace in bundled_traces():
        table.add_row(trace.name, *_cells(statistics_of(trace)))
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "cap.: capacity; range: fewest to most at once; batch: mean/most removed at once; busy: "
        "minutes with an event; life: mean, minutes; soon: batches followed by another within "
        "2 minutes"
    )


@app.command()
def show(
    where: TraceArgument,
    segment: SegmentOption = None,
    instances: InstancesOption = None,
    seed: SeedOption = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw it into this .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """Show one trace: where it comes from, its statistics, and a picture if wanted."""
    trace = _derived(find_trace(where), segment, instances, seed)
    figures = statistics_of(trace)
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _details(trace, figures):
        table.add_row(label, value)
    console = Console(highlight=False, markup=False)
    console.print(table)
    if plot is not None:
        # Imported here: matplotlib takes a second that the other commands need not wait for.
        from parcae_traces.plot import plot_trace

        plot_trace(trace, plot)
        console.print(f"drawn into {plot}", soft_wrap=True)


@app.command()
def convert(
    where: Annotated[
        str,
        typer.Argument(metavar="IN", help="A file in any readable format, or a bundled name."),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write, in this project's own format.")
    ],
    segment: SegmentOption = None,
    instances: InstancesOption = None,
    seed: SeedOption = 0,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the new trace; default: OUT's.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="What was recorded, where and when, in one sentence."),
    ] = None,
    notice: Annotated[
        float | None,
        typer.Option("--notice", help="Seconds of warning where a removal says nothing."),
    ] = None,
) -> None:
    """Restate a trace in this project's own format, cut and scaled down if wanted."""
    trace = find_trace(where)
    try:
        if source is not None:
            trace = replace(trace, source=source)
        if notice is not None:
            trace = replace(trace, notice_s=notice)
        trace = _derived(trace, segment, instances, seed)
        trace = replace(trace, name=target.stem if name is None else name)
    except ValueError as error:
        raise InputError(f"{error}; change --name, --source or --notice") from error
    save_compact(trace, target)
    Console(highlight=False, markup=False).print(
        f"{target}: {statistics_of(trace).line()}", soft_wrap=True
    )


def _derived(trace: Trace, segment: str | None, instances: int | None, seed: int) -> Trace:
    if segment is not None:
        trace = cut(trace, parse_segment(segment))
    return trace if instances is None else scale(trace, instances, seed)


def _cells(figures: Statistics) -> tuple[str, ...]:
    return (
        f"{figures.duration_s / 3600:.1f}",
        str(figures.capacity),
        f"{figures.mean_count:.1f}",
        f"{figures.min_count}-{figures.max_count}",
        str(figures.num_added),
        str(figures.num_removed),
        f"{figures.mean_batch:.1f}/{figures.max_batch}",
        str(figures.num_eventful_minutes),
        _life(figures),
        f"{figures.share_followed_soon:.0%}",
    )


def _details(trace: Trace, figures: Statistics) -> tuple[tuple[str, str], ...]:
    return (
        ("trace", trace.name),
        ("source", trace.source),
        ("duration", f"{figures.duration_s / 3600:.2f} hours"),
        ("capacity", f"{figures.capacity} instances"),
        (
            "instances",
            f"{figures.mean_count:.1f} on average, {figures.min_count} to {figures.max_count}",
        ),
        ("added", f"{figures.num_added} after {trace.count_at(0)} at the start"),
        (
            "removed",
            f"{figures.num_removed} in {figures.num_batches} batches of "
            f"{figures.mean_batch:.2f} on average, {figures.max_batch} at most",
        ),
        ("changes", f"at {figures.num_moments} times, in {figures.num_eventful_minutes} minutes"),
        ("mean life", f"{_life(figures)} minutes"),
        ("followed", f"{figures.share_followed_soon:.0%} of batches by another within 2 minutes"),
        ("notice", f"{trace.notice_s:g} s unless a removal says otherwise"),
    )


def _life(figures: Statistics) -> str:
    return "∞" if math.isinf(figures.mean_life_s) else f"{figures.mean_life_s / 60:.0f}"
