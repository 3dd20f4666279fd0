"""``parcae logs``: what operator, planner and agents say of a job, or of one revision, in order."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from parcae_api.errors import InputError, ParcaeError
from parcae_cli.kube_jobs import JobReader, Object, check_name
from parcae_cli.kube_logs import Found, LogReader
from parcae_cli.kube_options import Context, Kubeconfig, Namespace, Output
from parcae_cli.log_story import EVENT, OPERATOR, PLANNER, Line, story
from parcae_cli.run_logs import read_run
from parcae_operator.kube.errors import NotFound

_COLOURS = {EVENT: "cyan", OPERATOR: "green", PLANNER: "magenta"}
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SINCE = re.compile(r"(\d+(\.\d+)?[smhd])+")


def logs(
    name: Annotated[
        str | None, typer.Argument(help="The job's name.", metavar="[NAME]", show_default=False)
    ] = None,
    namespace: Namespace = None,
    revision: Annotated[
        int | None, typer.Option("--revision", help="Of this change of plan alone.", min=1)
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="How far back, as in 90s, 10m or 1h30m.")
    ] = None,
    output: Annotated[
        Output, typer.Option("-o", "--output", help="For people, or a JSON object a line.")
    ] = Output.TEXT,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Of a local run: the folder of its records.", metavar="FOLDER"),
    ] = None,
    system_namespace: Annotated[
        str | None,
        typer.Option("--system-namespace", help="Where operator and planner run; else looked for."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Tell a job's story from the logs of all its programs: what was decided, and what it did."""
    since_s = None if since is None else _seconds(since)
    if run is not None:
        if name is not None or namespace is not None:
            raise InputError("--run: is of one job only; leave NAME and -n out")
        found, job = Found(lines=_newer(read_run(run), since_s)), str(run)
    else:
        if name is None:
            raise InputError("NAME: is missing; name a job, or a local run with --run")
        check_name(name)
        reader = JobReader(kubeconfig=kubeconfig, context=context, namespace=namespace)
        body = _job(reader, name, revision)
        job = f"{reader.namespace}/{name}"
        found = LogReader(
            reader, body, system_namespace=system_namespace, since_s=since_s, revision=revision
        ).read()
    told = story(found.lines, revision)
    if told:
        _print(told, output)
    for sentence in found.left_out:
        print(f"parcae: left out: {sentence}", file=sys.stderr)
    if not told:
        raise ParcaeError(_nothing(job, revision, since, is_run=run is not None))


def _job(reader: JobReader, name: str, revision: int | None) -> Object:
    """The job's object.

    Raises:
        InputError: there is no such job, or it has not come to that revision.
    """
    try:
        body = reader.job(name)
    except NotFound as error:
        raise InputError(str(error)) from error
    status = body.get("status")
    newest = status.get("revision") if isinstance(status, dict) else None
    newest = newest if isinstance(newest, int) else 0
    if revision is not None and revision > newest:
        raise InputError(
            f"--revision: {name} has not come to revision {revision}; its newest is {newest}"
        )
    return body


def _nothing(job: str, revision: int | None, since: str | None, *, is_run: bool) -> str:
    if revision is None:
        return f"{job}: nothing is told{f' since {since}' if since else ' yet'}"
    if is_run:
        return f"{job}: its logs tell nothing of revision {revision}"
    return (
        f"{job}: nothing is left of revision {revision}: Events are kept for an hour, and logs as "
        "long as their pods; a collector of logs keeps more (docs/logs.md)"
    )


def _seconds(text: str) -> float:
    """A time such as 1h30m.

    Raises:
        InputError: it is none.
    """
    if not _SINCE.fullmatch(text):
        raise InputError(f"--since: is {text!r}; give a time like 90s, 10m or 1h30m")
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def _newer(lines: Sequence[Line], since_s: float | None) -> list[Line]:
    oldest = 0.0 if since_s is None else time.time() - since_s
    return [line for line in lines if line.at_unix_s >= oldest]


def _print(lines: Sequence[Line], output: Output) -> None:
    if output is Output.JSON:
        for line in lines:
            print(json.dumps(line.as_json()))
        return
    console = Console(highlight=False)
    width = max(len(line.who) for line in lines)
    day = ""
    for line in lines:
        at = datetime.fromtimestamp(line.at_unix_s)
        if f"{at:%A, %d %B %Y}" != day:
            day = f"{at:%A, %d %B %Y}"
            console.print(Text(day, "bold"))
        text = Text(f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}  ")
        text.append(f"{line.who:{width}}  ", _COLOURS.get(line.who, "blue"))
        text.append(line.message, "bold yellow" if line.is_bad else "")
        if line.repeats:
            text.append(f" (asked {line.repeats} times before)", "dim")
        console.print(text, soft_wrap=True)
