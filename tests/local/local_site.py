"""Local runs of a tiny training: in this process (fast) or as the command itself (real signals)."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from crew import await_true
from rich.console import Console

from parcae_api.job import Reduction
from parcae_cli.local.command import run_local
from parcae_cli.local.options import LocalOptions

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What a user is left with."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return loaded


@dataclass
class Site:
    """A folder with the user's module, a manifest and room for runs."""

    root: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def manifest(
        self, function: str = "models:gpt", *, spec: Manifest | None = None, **args: Any
    ) -> Path:
        """Write a manifest; ``spec`` overrides parts of its spec."""
        document = {
            "apiVersion": "parcae.dev/v1alpha1",
            "kind": "ParcaeJob",
            "metadata": {"name": "tiny"},
            "spec": {
                "instances": {"min": 1, "max": 4},
                "entrypoint": {"function": function, "args": args},
                "seed": 7,
                **(spec or {}),
            },
        }
        path = self.root / "job.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def trace(self, *moments: str, duration_s: float = 20, capacity: int = 4) -> str:
        """Write a trace in the project's own format; its path."""
        head = (
            f"# parcae-trace 1\n# name: tiny\n# source: made for a test\n# capacity: {capacity}\n"
        )
        head += f"# duration_s: {duration_s}\n# notice_s: 2\n"
        path = self.root / "tiny.trace"
        path.write_text(head + "\n".join(moments) + "\n")
        return str(path)

    def run(
        self,
        manifest: Path,
        *,
        trace: str | None = None,
        verify: bool = False,
        unnoticed: float = 0.0,
        speedup: float = 1.0,
        reduction: Reduction | None = None,
        name: str = "run",
    ) -> Result:
        """Run in this process, whose fork server is warm."""
        out, err = io.StringIO(), io.StringIO()
        options = LocalOptions(
            manifest=manifest,
            trace=trace,
            segment=None,
            speedup=speedup,
            out=self.root / name,
            verify=verify,
            unnoticed=unnoticed,
            seed=0,
            reduction=reduction,
        )
        code = run_local(
            options, Console(file=out, width=200), Console(file=err, width=200, soft_wrap=True)
        )
        return Result(code, out.getvalue(), err.getvalue(), self.root / name)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command itself."""
        process = subprocess.Popen(
            [sys.executable, "-m", "parcae_cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def await_commits(self, count: int, name: str = "run") -> None:
        """Until some worker of the run has committed that many steps."""
        folder = self.root / name / "ledger"

        def reached() -> bool:
            texts = [path.read_text() for path in folder.glob("*.jsonl")]
            return any(text.count('"kind":"commit"') >= count for text in texts)

        await_true(reached, f"{count} steps committed")


def agents_of(command: psutil.Process) -> list[psutil.Process]:
    """Supervisors of a command: they lead their own process groups below its fork server."""
    found = []
    for process in command.children(recursive=True):
        try:
            if process.ppid() != command.pid and _leads_group(process):
                found.append(process)
        except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            continue
    return found


def _leads_group(process: psutil.Process) -> bool:
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(stat[2]) == process.pid and stat[0] != "Z"


def worker_of(supervisor: psutil.Process) -> psutil.Process:
    """The worker of a supervisor."""
    (worker,) = supervisor.children()
    return worker
