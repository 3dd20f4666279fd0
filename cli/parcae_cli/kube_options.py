"""Options of all commands that ask a cluster."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How it is told."""

    TEXT = "text"
    JSON = "json"


Namespace = Annotated[
    str | None, typer.Option("-n", "--namespace", help="The job's; else the context's.")
]
Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", help="Instead of kubectl's.", metavar="FILE")
]
Context = Annotated[
    str | None, typer.Option("--context", help="Of the kubeconfig; else the current one.")
]
