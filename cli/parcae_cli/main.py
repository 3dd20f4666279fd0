"""The ``parcae`` command: its verbs, and how errors reach a user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from parcae_api.errors import InputError, ParcaeError
from parcae_api.job import Reduction
from parcae_cli import forecast, logs, planner, render, simulate, status, trace
from parcae_cli.local.options import LocalOptions, PlannerKind, check

app = typer.Typer(
    help="Train PyTorch models on spot instances: layouts change alive, every sample counts once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(trace.app, name="trace", help="Recordings of spot instances.")
app.add_typer(forecast.app, name="forecast", help="What may come: forecasts, drawn and judged.")
app.command()(simulate.simulate)
app.add_typer(planner.app, name="planner", help="The planner as a service.")
app.command()(planner.plan)
app.command()(status.status)
app.command()(logs.logs)
app.command()(render.render)


@app.command()
def local(
    manifest: Annotated[Path, typer.Argument(help="A ParcaeJob manifest.", metavar="JOB.yaml")],
    trace: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(help="A recording to replay: a file, or the name of a bundled one."),
    ] = None,
    segment: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="A part of it: hadp, hasp, ladp, lasp, or hours like 0.5-1.5."),
    ] = None,
    speedup: Annotated[float, typer.Option(help="Recorded seconds per second.")] = 30.0,
    out: Annotated[Path, typer.Option(help="Folder for the run's records.")] = Path("runs/local"),
    verify: Annotated[
        bool, typer.Option("--verify", help="Train undisturbed afterwards and compare bit for bit.")
    ] = False,
    unnoticed: Annotated[
        float, typer.Option(help="Share of the preemptions that come without a notice.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Draws which ones, and how a trace is scaled.")] = 0,
    reduction: Annotated[
        Optional[Reduction],  # noqa: UP045
        typer.Option(help="Instead of the manifest's."),
    ] = None,
    kind: Annotated[
        PlannerKind,
        typer.Option(
            "--planner", help="Plan by forecast (liveput), or by what is there (reactive)."
        ),
    ] = PlannerKind.LIVEPUT,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Let agents answer Prometheus; agents.log says where."),
    ] = False,
) -> None:
    """Run a job on this machine, through a recording of spot instances."""
    options = LocalOptions(
        manifest=manifest,
        trace=trace,
        segment=segment,
        speedup=speedup,
        out=out,
        verify=verify,
        unnoticed=unnoticed,
        seed=seed,
        reduction=reduction,
        planner=kind,
        metrics=metrics,
    )
    plan = check(options)
    # Loads much, and a mistake in the options is told sooner.
    from parcae_cli.local.command import run_checked

    raise typer.Exit(run_checked(plan, Console(), Console(stderr=True)))


@app.command()
def ledger(
    run: Annotated[Path, typer.Argument(help="Folder of a run (its --out).", metavar="RUN")],
) -> None:
    """Check a run's sample ledger, from what each worker itself recorded."""
    from parcae_cli.ledger import show_ledger

    raise typer.Exit(show_ledger(run, Console()))


def main() -> None:
    """Run the command; a user's mistake is one line on stderr and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"parcae: {error}", file=sys.stderr)
        sys.exit(2)
    except ParcaeError as error:
        print(f"parcae: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
