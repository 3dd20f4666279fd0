"""Nodes and the instances that jobs make of them."""

from __future__ import annotations

from charts.dashboards.panels import stacked, steps
from charts.dashboards.queries import PER_JOB, of_jobs, over_time
from grafana_foundation_sdk.builders.timeseries import Panel

_NODES = "max by (zone, spot, state) (parcae_nodes)"


def panels() -> list[Panel]:
    """Nodes by what they are, then what jobs hold of them and lost."""
    return [_zones(), _kinds(), _states(), _instances(), _wanted(), _preemptions()]


def _zones() -> Panel:
    tells = (
        "Spot nodes by zone. All in one zone: one shortage takes them all; give the node pool "
        "more zones."
    )
    spot = '(max by (zone, spot, state) (parcae_nodes{spot="true"}))'
    return stacked("Spot nodes by zone", tells, 8, over_time(f"sum by (zone) {spot}", "{{zone}}"))


def _kinds() -> Panel:
    tells = "Nodes by kind. spot true: may be preempted. What trains should be spot."
    query = over_time(f"sum by (spot) ({_NODES})", "spot {{spot}}")
    return stacked("Nodes by kind", tells, 8, query)


def _states() -> Panel:
    tells = (
        "Nodes by what is known of their end. suspect: not ready or silent, most often it passes; "
        "hinted: may go, nobody moves yet; leaving: a notice with a deadline. Hints that never "
        "become notices cost nothing but careful plans."
    )
    return stacked("Nodes by state", tells, 8, over_time(f"sum by (state) ({_NODES})", "{{state}}"))


def _instances() -> Panel:
    tells = (
        "Instances of all chosen jobs, by what they do. Much pending: spot capacity or quota is "
        "short, or pods fit no node. Much standby: jobs ask for more than their layouts can use."
    )
    each = f"max by ({PER_JOB}, state) ({of_jobs('instances')})"
    return stacked("Instances", tells, 8, over_time(f"sum by (state) ({each})", "{{state}}"))


def _wanted() -> Panel:
    tells = (
        "Instances that are ready in all chosen jobs, against what those ask for at least and at "
        "most; those that are over or suspended ask for nothing. Near min for long: the pool is "
        "too small for its jobs."
    )
    ready = of_jobs("instances", 'state=~"training|standby"')
    resting = of_jobs("job_phase", 'phase=~"Suspended|Completed|Failed"')
    at_work = f"unless on ({PER_JOB}) max by ({PER_JOB}) ({resting}) == 1"
    queries = [
        over_time(f"sum(max by ({PER_JOB}, state) ({ready}))", "ready"),
        *(
            over_time(f"sum(max by ({PER_JOB}) ({of_jobs(f'instances_{bound}')}) {at_work})", bound)
            for bound in ("min", "max")
        ),
    ]
    return steps("Ready against asked for", tells, 8, *queries).min(0)


def _preemptions() -> Panel:
    tells = (
        "Preemptions per hour in all chosen jobs, noticed and sudden. A rising rate is what makes "
        "the planner choose shallower pipelines and more spares."
    )
    each = f"rate({of_jobs('preemptions_total')}[1h])"
    query = over_time(f"3600 * sum by (noticed) ({each})", "noticed {{noticed}}")
    return stacked("Preemptions per hour", tells, 8, query).decimals(1)
