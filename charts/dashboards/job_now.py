"""How a job stands at this moment."""

from __future__ import annotations

from charts.dashboards.panels import limits, number
from charts.dashboards.queries import newest, now, of_job
from grafana_foundation_sdk.builders.stat import Panel
from grafana_foundation_sdk.models.common import BigValueTextMode


def panels() -> list[Panel]:
    """Numbers in large."""
    return [_phase(), _share(), _layout(), _steps(), _preemptions(), _checkpoint()]


def _phase() -> Panel:
    expr = f"max by (phase) ({of_job('job_phase')}) == 1"
    tells = "The job in one word. Paused or Pending for long: see Instances, and the conditions."
    panel = number("Phase now", tells, 4, now(expr, "{{phase}}"))
    return panel.text_mode(BigValueTextMode.NAME).no_value("no such job")


def _share() -> Panel:
    ideal = f"max({of_job('ideal_samples_per_second')})"
    expr = f"max({of_job('throughput_samples_per_second')}) / ({ideal} > 0)"
    tells = (
        "Throughput as a share of the ideal: what the fastest layout would train on the instances "
        "that are there, if none went. Under 70 % for long: look at pauses and replays below."
    )
    panel = number("Throughput of ideal", tells, 4, now(expr), unit="percentunit")
    return panel.thresholds(limits("red", orange=0.4, green=0.7)).no_value("no ideal yet")


def _layout() -> Panel:
    by_axis = f"max by (axis) ({of_job('configuration')})"
    tells = "The layout: data replicas and pipeline stages. 0: paused."
    return number("Layout now", tells, 4, now(by_axis, "{{axis}}")).no_value("paused")


def _steps() -> Panel:
    tells = "Steps committed since the job began, each on all workers or on none."
    return number("Steps committed", tells, 4, now(newest("steps_committed_total"))).decimals(0)


def _preemptions() -> Panel:
    expr = f"sum({newest('preemptions_total', 'noticed')})"
    tells = "Instances lost since the job began, with a notice or without."
    return number("Preemptions so far", tells, 4, now(expr)).decimals(0)


def _checkpoint() -> Panel:
    tells = (
        "Age of the newest complete checkpoint: the work that is done again if all instances go "
        "at once. Much older than the checkpoint interval: saving fails."
    )
    expr = f"max({of_job('checkpoint_age_seconds')})"
    panel = number("Checkpoint age now", tells, 4, now(expr), unit="s")
    return panel.thresholds(limits("green", orange=1800, red=7200)).no_value("no checkpoint")
