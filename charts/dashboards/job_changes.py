"""Preemptions, and what the answers to them cost."""

from __future__ import annotations

from charts.dashboards.panels import also, curves, steps
from charts.dashboards.queries import newest, of_job, over_time, rate
from grafana_foundation_sdk.builders.timeseries import Panel

_PAUSE_WINDOW = "15m"


def panels() -> list[Panel]:
    """What happened above, what it cost below."""
    return [_preemptions(), _migrations(), _replays(), _pauses(), _paused(), _moved()]


def _preemptions() -> Panel:
    tells = (
        "Instances lost since the job began. noticed: announced, and their state was out before "
        "they went. sudden: not announced, or too late, so the step in flight was lost. Many "
        "sudden ones where the cloud gives notice: its source is not on, see docs/notices.md."
    )
    queries = [
        over_time(newest("preemptions_total", matchers=f'noticed="{flag}"'), legend)
        for flag, legend in (("true", "noticed"), ("false", "sudden"))
    ]
    sudden = [also("color", {"mode": "fixed", "fixedColor": "red"})]
    return steps("Preemptions", tells, 8, *queries).override_by_name("sudden", sudden)


def _migrations() -> Panel:
    tells = (
        "Changes of plan since the job began, by what moved. intra_stage: nothing, workers only "
        "regroup; inter_stage: one stage's state; pipeline: layers were cut anew, the dearest. "
        "Mostly pipeline: the depth follows every instance; a wider `pipeline` range or more "
        "instances make it rarer."
    )
    query = over_time(newest("migrations_total", "kind"), "{{kind}}")
    return steps("Migrations by kind", tells, 8, query)


def _replays() -> Panel:
    tells = (
        "Steps per minute that were committed, and those that were trained once more because "
        "their state was lost. Replays only at sudden losses, one step each, are as designed; "
        "many at once are a rollback: all holders of a layer went."
    )
    queries = [
        over_time(f"60 * {rate(f'steps_{what}_total')}", what) for what in ("committed", "replayed")
    ]
    red = [also("color", {"mode": "fixed", "fixedColor": "red"})]
    return curves("Steps per minute", tells, 8, *queries).min(0).override_by_name("replayed", red)


def _pauses() -> Panel:
    tells = (
        "How long one change of plan pauses training, from the last step before to the first one "
        "after, by kind; with the wait for instances, where its first worker trained before it. "
        "Growing: state is larger than the network between instances carries, or workers are slow "
        "to form. Gaps: no change in that time."
    )
    pause = "migration_pause_seconds"
    expr = f"{rate(f'{pause}_sum', 'kind')} / ({rate(f'{pause}_count', 'kind')} > 0)"
    panel = curves("Pause of a migration", tells, 8, over_time(expr, "{{kind}}"), unit="s")
    return panel.min(0).span_nulls(3_600_000)


def _paused() -> Panel:
    tells = (
        "Share of the last 15 minutes that went to pauses: what preemptions cost in training time, "
        "replays aside. A pause counts when it ends. Above a tenth for long: instances come and go "
        "faster than the layout is worth."
    )
    # Not over a few scrapes: a pause of minutes, told at its end, would be several times all of it.
    lost = f"rate({of_job('migration_pause_seconds_sum')}[{_PAUSE_WINDOW}])"
    expr = f"clamp_max(sum by (kind) ({lost}), 1)"
    panel = curves("Time in pauses", tells, 8, over_time(expr, "{{kind}}"), unit="percentunit")
    return panel.min(0).fill_opacity(20)


def _moved() -> Panel:
    tells = (
        "Model state that went from worker to worker since the job began, by kind of change; "
        "with the pauses it tells what the network gives."
    )
    query = over_time(newest("migration_bytes_total", "kind"), "{{kind}}")
    return curves("State moved", tells, 8, query, unit="bytes")
