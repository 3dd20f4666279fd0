"""``parcae status``: a job on Kubernetes at a glance, once or until it is over."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from parcae_api.errors import InputError
from parcae_cli.kube_jobs import JobReader, check_name
from parcae_cli.kube_options import Context, Kubeconfig, Namespace, Output
from parcae_cli.status_view import JobView, read_view, render
from parcae_operator.kube.errors import ClusterUnavailable, NotFound

_EVERY_S = 2.0


def status(
    name: Annotated[str, typer.Argument(help="The job's name.", metavar="NAME")],
    namespace: Namespace = None,
    watch: Annotated[
        bool, typer.Option("-w", "--watch", help="Go on showing it until it is over.")
    ] = False,
    output: Annotated[
        Output, typer.Option("-o", "--output", help="For people, or the object as JSON.")
    ] = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show a job on Kubernetes: phase, layout, progress, instances, and why they are so."""
    check_name(name)
    if watch and output is Output.JSON:
        raise InputError(
            "--watch: shows text only; leave -o json out, or use kubectl get -w -o json"
        )
    reader = JobReader(kubeconfig=kubeconfig, context=context, namespace=namespace)
    body = _read(reader, name)
    if output is Output.JSON:
        print(json.dumps(_without_noise(body), indent=2))
        return
    console = Console(highlight=False)
    view = read_view(body)
    if watch and not view.is_over:
        _follow(reader, name, view, console)
    else:
        console.print(render(view, time.time()))


def _read(reader: JobReader, name: str) -> dict[str, Any]:
    try:
        return reader.job(name)
    except NotFound as error:
        raise InputError(str(error)) from error


def _follow(reader: JobReader, name: str, view: JobView, console: Console) -> None:
    """Until the job is over, it is deleted, or the user has seen enough."""
    try:
        with Live(console=console, auto_refresh=False) as live:
            trouble = ""
            while True:
                live.update(_screen(view, trouble), refresh=True)
                if view.is_over:
                    return
                time.sleep(_EVERY_S)
                try:
                    view, trouble = read_view(reader.job(name)), ""
                except NotFound:
                    live.update(_screen(view, "it is deleted"), refresh=True)
                    return
                except ClusterUnavailable as error:
                    trouble = f"{error}; this is what was last seen"
    except KeyboardInterrupt:
        sys.exit(130)


def _screen(view: JobView, trouble: str) -> RenderableType:
    shown = render(view, time.time())
    return Group(shown, Text(), Text(trouble, "bold yellow")) if trouble else shown


def _without_noise(body: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if k != "managedFields"}
    return {**body, "metadata": metadata}
