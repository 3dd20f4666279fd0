"""``parcae simulate``: replay recordings of spot instances under every policy, and compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from parcae_api.errors import InputError
from parcae_cli.targets import check_writable
from parcae_traces import PUBLISHED, find_trace

if TYPE_CHECKING:
    from parcae_simulator.models import Model
    from parcae_simulator.report import Prices, Row
    from parcae_simulator.scenario import Scenario
    from parcae_simulator.simulate import Options
    from parcae_simulator.sweep import Cell

_WIDEST = 300
MOST_DETAILED = 2
"""More cells than this are summed up in one table."""


class RulesChoice(StrEnum):
    """Of ``--rules``."""

    PUBLISHED = "published"
    MEASURED = "measured"


class TimingChoice(StrEnum):
    """Of ``--timing``."""

    SEEN = "seen"
    BEFORE = "before"
    BOTH = "both"


class NoticesChoice(StrEnum):
    """Of ``--notices``."""

    NOTICED = "noticed"
    SUDDEN = "sudden"
    BOTH = "both"


class StoreChoice(StrEnum):
    """Of ``--store``."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    BOTH = "both"


def simulate(
    rules: Annotated[
        RulesChoice,
        typer.Option(help="Changes cost restarts (published), or live migration (measured)."),
    ] = RulesChoice.PUBLISHED,
    model: Annotated[
        str,
        typer.Option(help="Bundled models or profile files, separated by commas, or all."),
    ] = "gpt-6.7b",
    trace: Annotated[
        str, typer.Option(help="A recording: a file, or the name of a bundled one.")
    ] = "p3",
    segment: Annotated[
        str | None,
        typer.Option(help="Parts of it, separated by commas: hadp, hasp, ladp, lasp, 0.5-1.5."),
    ] = None,
    policies: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
    everything: Annotated[
        bool, typer.Option("--all", help="All bundled models on all four published segments.")
    ] = False,
    timing: Annotated[
        TimingChoice, typer.Option(help="Planners decide when an event is seen, or before it.")
    ] = TimingChoice.BOTH,
    notices: Annotated[
        NoticesChoice, typer.Option(help="Whether removals are announced.")
    ] = NoticesChoice.NOTICED,
    store: Annotated[
        StoreChoice, typer.Option(help="Checkpoints go through one store, or one link a stage.")
    ] = StoreChoice.BOTH,
    seeds: Annotated[int, typer.Option(help="Draws of who vanishes, averaged.")] = 20,
    spot_price: Annotated[float, typer.Option(help="Per instance and hour.")] = 0.918,
    ondemand_price: Annotated[float, typer.Option(help="Per instance and hour.")] = 3.06,
    sequence_tokens: Annotated[
        int | None, typer.Option(help="Tokens of one sample, to count tokens too.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all figures into this file.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Draw pictures into this folder.")] = None,
    cores: Annotated[
        int | None, typer.Option(help="Processes for several cells; default: one per core.")
    ] = None,
) -> None:
    """Compare policies on a recording: samples, shares of what is possible, pauses, costs."""
    from parcae_simulator.baselines.common import Notices, Store
    from parcae_simulator.engine import Timing
    from parcae_simulator.models import RuleSet
    from parcae_simulator.report import Prices, rows_of, write_csv
    from parcae_simulator.simulate import Options

    _check_positive("--spot-price", spot_price)
    _check_positive("--ondemand-price", ondemand_price)
    for name, number in (
        ("--seeds", seeds),
        ("--cores", cores),
        ("--sequence-tokens", sequence_tokens),
    ):
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}; give at least 1")
    prices = Prices(spot_price, ondemand_price)
    models = _models("all" if everything else model, sequence_tokens)
    options = Options(
        rules=RuleSet(rules.value),
        policies=_policies(policies, models),
        timings=tuple(t for t in Timing if timing.value in (t.value, "both")),
        notices=tuple(n for n in Notices if notices.value in (n.value, "both")),
        stores=tuple(s for s in Store if store.value in (s.value, "both")),
        draws=seeds,
        spot_share=prices.spot_share,
    )
    scenarios = _scenarios(trace, ",".join(PUBLISHED) if everything and not segment else segment)
    if csv is not None:
        check_writable(csv)
    if plots is not None:
        _make_folder(plots)
    cells = _run(models, scenarios, options, cores)
    rows = [row for cell in cells for row in rows_of(cell, prices)]
    console = Console(highlight=False)
    if len(cells) <= MOST_DETAILED:
        for cell in cells:
            console.print(_heading(cell, options, prices), soft_wrap=True)
            _print_whole(console, _table(list(rows_of(cell, prices))))
    else:
        console.print(_summary_heading(cells, options), soft_wrap=True)
        _print_whole(console, _summary(rows))
    if csv is not None:
        write_csv(rows, csv)
        console.print(f"figures in {csv}", soft_wrap=True)
    if plots is not None:
        from parcae_simulator.plots import draw_all

        drawn = draw_all(cells, plots)
        console.print(f"{len(drawn)} pictures in {plots}", soft_wrap=True)


def _models(text: str, sequence_tokens: int | None) -> list[Model]:
    from parcae_simulator.models import find_model
    from parcae_simulator.profiles import bundled_profiles

    names = bundled_profiles() if text.strip() == "all" else _listed(text, "--model")
    models = [find_model(name) for name in names]
    doubled = {m.name for m in models if sum(m.name == other.name for other in models) > 1}
    if doubled:
        raise InputError(f"model {min(doubled)} is given twice; give each once")
    if sequence_tokens is None:
        return models
    return [replace(model, sequence_tokens=sequence_tokens) for model in models]


def _policies(text: str, models: Sequence[Model]) -> tuple[str, ...]:
    """Those that all models can be replayed under; who asked for all hears which are left out."""
    from parcae_simulator.registry import check_policies, restarting, times_missing

    names = check_policies(text)
    recorded = next((model for model in models if model.published is None), None)
    left_out = restarting(names) if recorded is not None else ()
    if recorded is None or not left_out:
        return names
    if text.strip() != "all":
        raise times_missing(left_out, recorded)
    Console(stderr=True, highlight=False).print(
        f"left out: {', '.join(left_out)}; they need restart times, which the recorded profile "
        f"{recorded.name} does not have",
        soft_wrap=True,
        markup=False,
    )
    return tuple(name for name in names if name not in left_out)


def _scenarios(trace: str, segments: str | None) -> list[Scenario]:
    from parcae_simulator.scenario import scenario_of

    found = find_trace(trace)
    if segments is None:
        return [scenario_of(found)]
    return [scenario_of(found, name) for name in _listed(segments, "--segment")]


def _listed(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{option} is empty; give at least one name")
    return list(dict.fromkeys(names))


def _run(
    models: Sequence[Model], scenarios: Sequence[Scenario], options: Options, cores: int | None
) -> list[Cell]:
    from parcae_simulator.sweep import sweep

    found: dict[int, Cell] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("replaying", total=len(models) * len(scenarios))
        for place, cell in sweep(models, scenarios, options, cores):
            found[place] = cell
            progress.update(
                task, advance=1, description=f"{cell.model.name} {cell.scenario.segment}"
            )
    return [found[place] for place in sorted(found)]


def _heading(cell: Cell, options: Options, prices: Prices) -> str:
    scenario = cell.scenario
    counts = scenario.counts
    hours = len(counts) * scenario.interval_s / 3600
    return (
        f"[bold]{cell.model.name} on {scenario.trace} {scenario.segment}[/bold], "
        f"{options.rules} rules: {hours:.3g} h, {sum(counts) / len(counts):.1f} instances on "
        f"average, {min(counts)} to {max(counts)}; {options.draws} draws; "
        f"{prices.spot_per_hour:g} $ spot, {prices.on_demand_per_hour:g} $ on demand an hour; "
        "paused in seconds, lost in samples, $ per 1000 samples"
    )


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("policy", "timing"):
        table.add_column(heading, no_wrap=True)
    tokens = any(row.tokens is not None for row in rows)
    headings = ["samples", *(["tokens"] if tokens else []), "% ideal", "% known"]
    for heading in (*headings, "paused", "lost", "$/1000"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            _label(row),
            row.timing,
            f"{row.samples:,.0f}",
            *([_thousands(row.tokens)] if tokens else []),
            _percent(row.share_of_ideal),
            _percent(row.share_of_known),
            f"{row.paused_s:,.0f}",
            f"{row.lost_samples:,.0f}",
            "-" if row.cost_per_1000_samples is None else f"{row.cost_per_1000_samples:.3g}",
            style="bold" if row.policy == "parcae" else None,
        )
    return table


def _summary_heading(cells: Sequence[Cell], options: Options) -> str:
    segments = dict.fromkeys(cell.scenario.segment for cell in cells)
    return (
        f"[bold]% of ideal[/bold] under {options.rules} rules, mean over "
        f"{cells[0].scenario.trace} {', '.join(segments)}; then over all cells the mean and the "
        "worst, and the mean % of the known future; decided when the event is seen, or before it"
    )


def _summary(rows: Sequence[Row]) -> Table:
    models = list(dict.fromkeys(row.model for row in rows))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("policy", no_wrap=True)
    for heading in (*models, "mean", "worst", "known"):
        table.add_column(heading, justify="right", no_wrap=True)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        late = f" {row.timing}" if row.timing == "before" else ""
        groups.setdefault(_label(row) + late, []).append(row)
    for label, group in groups.items():
        shares = [row.share_of_ideal for row in group if row.share_of_ideal is not None]
        known = [row.share_of_known for row in group if row.share_of_known is not None]
        table.add_row(
            label,
            *(
                _percent(_mean([row.share_of_ideal for row in group if row.model == m]))
                for m in models
            ),
            _percent(_mean(shares)),
            _percent(min(shares, default=None)),
            _percent(_mean(known)),
            style="bold" if group[0].policy == "parcae" else None,
        )
    return table


def _label(row: Row) -> str:
    return " ".join(word for word in (row.policy, row.notices, row.store) if word)


def _print_whole(console: Console, table: Table) -> None:
    """Print a table without cutting its cells, even where the terminal is too narrow."""
    wide = console.options.update(max_width=_WIDEST)
    console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}".removesuffix("%")


def _thousands(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _check_positive(option: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{option} is {value:g}; give a price above 0")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--plots {folder}: cannot be made: {error.strerror}") from error
