"""A job's phase and conditions over time, and where their reasons are."""

from __future__ import annotations

from charts.dashboards.panels import curves, named_values, timeline, words
from charts.dashboards.queries import of_job, over_time
from grafana_foundation_sdk.builders import statetimeline, text, timeseries
from grafana_foundation_sdk.models.dashboard import ValueMap

_WHY = """\
Plans, their reasons in words, and the conditions' messages are on the job itself:

    parcae status $job --namespace $namespace
    kubectl --namespace $namespace describe parcaejob $job

Each reason is explained in `docs/parcaejob.md`, each alert in `docs/alerts.md`.
"""


def panels() -> list[statetimeline.Panel | text.Panel | timeseries.Panel]:
    """Phase and conditions above."""
    return [_phases(), _conditions(), _checkpoint(), words("Why", 12, _WHY)]


def _phases() -> statetimeline.Panel:
    tells = (
        "When the job was in which phase. Migrating in thin lines is normal; Paused: fewer "
        "instances than it needs; Pending: pods wait for nodes."
    )
    query = over_time(f"max by (phase) ({of_job('job_phase')})", "{{phase}}")
    return timeline("Phase", tells, 12, query).mappings([_holds("blue")])


def _conditions() -> statetimeline.Panel:
    tells = (
        "Conditions that held when. Ready should hold nearly always. Degraded: something is not "
        "as it should be though training may go on; its message says what."
    )
    query = over_time(f"max by (type) ({of_job('job_condition')})", "{{type}}")
    return timeline("Conditions", tells, 12, query).mappings([_holds("green")])


def _checkpoint() -> timeseries.Panel:
    tells = (
        "Age of the newest complete checkpoint: a saw-tooth as high as the checkpoint interval. "
        "A line that only climbs: checkpoints fail, see the workers' logs."
    )
    query = over_time(f"max({of_job('checkpoint_age_seconds')})", "age")
    return curves("Checkpoint age", tells, 12, query, unit="s").min(0)


def _holds(color: str) -> ValueMap:
    return named_values({"0": ("no", "transparent"), "1": ("yes", color)})
