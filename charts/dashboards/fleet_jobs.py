"""All jobs at a glance."""

from __future__ import annotations

from charts.dashboards.panels import SAMPLES, also, curves, listing, stacked, transform
from charts.dashboards.queries import PER_JOB, of_jobs, over_time, rows
from grafana_foundation_sdk.builders import table, timeseries

_JOB_PAGE = (
    "/d/parcae-job?var-datasource=${datasource}"
    "&var-namespace=${__data.fields.namespace}&var-job=${__data.fields.job}"
)


def panels() -> list[table.Panel | timeseries.Panel]:
    """A table, and sums over time."""
    return [_table(), _phases(), _throughput(), _share()]


def _table() -> table.Panel:
    tells = (
        "A row for each job; its name leads to its dashboard. Look for a throughput far under the "
        "ideal, for phases Paused and Failed, and for more sudden preemptions than noticed ones."
    )
    columns = {
        "phase": f"max by ({PER_JOB}, phase) ({of_jobs('job_phase')}) == 1",
        "throughput": f"max by ({PER_JOB}) ({of_jobs('throughput_samples_per_second')})",
        "liveput": f"max by ({PER_JOB}) ({of_jobs('liveput_samples_per_second')})",
        "ideal": f"max by ({PER_JOB}) ({of_jobs('ideal_samples_per_second')})",
        "training": _counted("instances", 'state="training"'),
        "pending": _counted("instances", 'state="pending"'),
        "noticed": _counted("preemptions_total", 'noticed="true"'),
        "sudden": _counted("preemptions_total", 'noticed="false"'),
        "steps": _counted("steps_committed_total"),
    }
    letters = {chr(ord("A") + i): name for i, name in enumerate(columns)}
    named = {f"Value #{letter}": name for letter, name in letters.items() if name != "phase"}
    tidy = [
        transform("merge"),
        transform(
            "organize",
            excludeByName={"Time": True, "Value #A": True},
            indexByName={"namespace": 0, "job": 1, "phase": 2},
            renameByName=named,
        ),
    ]
    panel = listing("Jobs", tells, 24, [rows(expr) for expr in columns.values()], tidy).decimals(0)
    rates = [also("unit", SAMPLES), also("decimals", 1)]
    return panel.override_by_regexp("/^(throughput|liveput|ideal)$/", rates).override_by_name(
        "job", [also("links", [{"title": "Open", "url": _JOB_PAGE}])]
    )


def _counted(metric: str, matchers: str = "") -> str:
    return f"max by ({PER_JOB}) ({of_jobs(metric, matchers)})"


def _phases() -> timeseries.Panel:
    tells = "Jobs by phase. Many Pending or Paused at once: spot capacity is short."
    each = f"max by ({PER_JOB}, phase) ({of_jobs('job_phase')})"
    return stacked("Jobs by phase", tells, 8, over_time(f"sum by (phase) ({each})", "{{phase}}"))


def _throughput() -> timeseries.Panel:
    tells = "Committed samples per second, by namespace: who uses the capacity, and how well."
    each = f"max by ({PER_JOB}) ({of_jobs('throughput_samples_per_second')})"
    query = over_time(f"sum by (namespace) ({each})", "{{namespace}}")
    return curves("Throughput", tells, 8, query, unit=SAMPLES).min(0)


def _share() -> timeseries.Panel:
    tells = (
        "Each job's throughput as a share of its ideal. One job low: look at its own dashboard. "
        "All low together: preemptions, or a planner that is away."
    )
    measured = f"max by ({PER_JOB}) ({of_jobs('throughput_samples_per_second')})"
    ideal = f"max by ({PER_JOB}) ({of_jobs('ideal_samples_per_second')})"
    query = over_time(f"{measured} / ({ideal} > 0)", "{{namespace}}/{{job}}")
    return curves("Throughput of ideal", tells, 8, query, unit="percentunit").min(0)
