"""A job at a glance: its object in, something that rich prints out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from parcae_api.errors import ParcaeError
from parcae_api.job import explain
from parcae_api.job_status import Condition, ConditionType, JobStatus, Phase

_PHASES = {
    Phase.PENDING: "yellow",
    Phase.TRAINING: "bold green",
    Phase.MIGRATING: "bold cyan",
    Phase.PAUSED: "bold yellow",
    Phase.SUSPENDED: "yellow",
    Phase.COMPLETED: "bold green",
    Phase.FAILED: "bold red",
}
_BAD = (ConditionType.DEGRADED, ConditionType.FAILED)
_BAR = 30


@dataclass(frozen=True)
class JobView:
    """What is shown of a job."""

    name: str
    namespace: str
    generation: int
    deleting: bool
    status: JobStatus

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status.holds(ConditionType.COMPLETED) or self.status.holds(ConditionType.FAILED)


def read_view(body: dict[str, Any]) -> JobView:
    """What is shown of an object.

    Raises:
        ParcaeError: its status is of another version than this program.
    """
    metadata = body.get("metadata") or {}
    name = str(metadata.get("name", ""))
    try:
        status = JobStatus.model_validate(body.get("status") or {})
    except ValidationError as error:
        raise ParcaeError(
            f"{name}: its status is of another version than this command ({explain(error)}); "
            "`-o json` shows it as it is"
        ) from error
    return JobView(
        name=name,
        namespace=str(metadata.get("namespace", "")),
        generation=int(metadata.get("generation") or 0),
        deleting=bool(metadata.get("deletionTimestamp")),
        status=status,
    )


def render(view: JobView, now_unix_s: float) -> RenderableType:
    """The job at a glance."""
    status = view.status
    parts: list[RenderableType] = [_headline(view), *_remarks(view)]
    if status.conditions:
        parts += [Text(), _numbers(status, now_unix_s), Text(), _conditions(status, now_unix_s)]
    if status.decisions:
        parts += [Text(), _decisions(status, now_unix_s)]
    return Group(*parts)


def _headline(view: JobView) -> Text:
    status = view.status
    parts = [
        (view.name, "bold"),
        (f"  {view.namespace}", "dim"),
        (f"   {status.phase}", _PHASES[status.phase]),
    ]
    if status.configuration:
        parts.append((f"   {_layout(status.configuration)}", "bold magenta"))
    if status.revision:
        parts.append((f"   revision {status.revision}", "dim"))
    return Text.assemble(*[(clean(text), style) for text, style in parts])


def _remarks(view: JobView) -> list[Text]:
    remarks = []
    if view.deleting:
        remarks.append("is being deleted")
    if not view.status.conditions:
        remarks.append("no operator has written a status yet; is one running?")
    elif view.status.observed_generation < view.generation:
        remarks.append("the newest edit of its spec is not acted on yet")
    return [Text(remark, "yellow") for remark in remarks]


def _numbers(status: JobStatus, now_unix_s: float) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("step", _progress(status))
    table.add_row("samples", Text(f"{status.samples:,} committed"))
    table.add_row("speed", _speed(status))
    table.add_row("instances", _instances(status))
    lost = f"{status.preemptions} lost, {status.preemptions_noticed} of them after a notice"
    crashes = f"; {status.failures} crashes of the user's code" if status.failures else ""
    table.add_row("preemptions", Text(lost + crashes))
    table.add_row("migrations", _migrations(status, now_unix_s))
    if status.start_time:
        table.add_row("started", Text(_ago(status.start_time, now_unix_s)))
    if status.completion_time:
        table.add_row("over", Text(_ago(status.completion_time, now_unix_s)))
    return table


def _progress(status: JobStatus) -> RenderableType:
    if not status.total_steps:
        return Text(f"{status.step:,}")
    grid = Table.grid(padding=(0, 2))
    done = min(status.step, status.total_steps)
    grid.add_row(
        Text(f"{status.step:,} of {status.total_steps:,}", "bold"),
        ProgressBar(total=status.total_steps, completed=done, width=_BAR),
        Text(f"{100 * done / status.total_steps:.1f} %"),
    )
    return grid


def _speed(status: JobStatus) -> Text:
    text = Text.assemble((f"{status.throughput_samples_per_second:.1f}", "bold"), " samples/s now")
    if status.liveput_samples_per_second:
        text.append(f"; {status.liveput_samples_per_second:.1f} expected under preemptions")
    return text


def _instances(status: JobStatus) -> Text:
    counts = status.instance_counts
    parts = {
        "training": counts.training,
        "standby": counts.standby,
        "starting": counts.starting,
        "pending": counts.pending,
        "leaving": counts.leaving,
    }
    shown = [f"{count} {state}" for state, count in parts.items() if count]
    return Text(", ".join(shown) or "none")


def _migrations(status: JobStatus, now_unix_s: float) -> Text:
    last = status.last_migration
    if last is None:
        return Text(str(status.migrations))
    kind = last.kind.replace("_", "-")
    steps = "1 step" if last.steps_replayed == 1 else f"{last.steps_replayed} steps"
    replayed = f", {steps} replayed" if last.steps_replayed else ""
    return Text(
        clean(
            f"{status.migrations}; the last one {_ago(last.time, now_unix_s)}: revision "
            f"{last.revision}, {kind}, paused {last.pause_seconds:.2f} s, "
            f"{_bytes(last.bytes_moved)} moved{replayed}"
        )
    )


def _conditions(status: JobStatus, now_unix_s: float) -> Table:
    table = _table("condition", "", "since", "reason", "message")
    for condition in status.conditions:
        style = _condition_style(condition)
        table.add_row(
            Text(condition.type, style),
            Text(condition.status, style),
            Text(age(condition.last_transition_time, now_unix_s)),
            Text(clean(condition.reason)),
            Text(clean(condition.message)),
        )
    return table


def _condition_style(condition: Condition) -> str:
    if condition.status != "True":
        return "dim"
    return "bold red" if condition.type in _BAD else "green"


def _decisions(status: JobStatus, now_unix_s: float) -> Table:
    table = _table("decided", "revision", "answers", "layout", "why")
    for decision in status.decisions:
        table.add_row(
            Text(_ago(decision.time, now_unix_s)),
            Text(str(decision.revision), justify="right"),
            Text(clean(decision.reason)),
            Text(clean(_layout(decision.configuration)), "magenta"),
            Text(clean(decision.why)),
        )
    return table


def _table(*headings: str) -> Table:
    """All columns but the last one keep to one line."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    return table


def clean(text: str) -> str:
    """Printable: what users' code says may hold commands to a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def age(time: str, now_unix_s: float) -> str:
    """How long ago that was, as people say it; empty where nothing tells."""
    try:
        seconds = max(0.0, now_unix_s - datetime.fromisoformat(time).timestamp())
    except (ValueError, OverflowError):
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def _ago(time: str, now_unix_s: float) -> str:
    return f"{found} ago" if (found := age(time, now_unix_s)) else "-"


def _layout(configuration: str) -> str:
    return configuration.replace("x", "×") if configuration != "paused" else configuration


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
