"""A published plan as an event: what was decided, and why. Pure."""

from __future__ import annotations

from parcae_api.events import Planned
from parcae_operator.actions import PublishPlan


def planned(action: PublishPlan, num_staying: int) -> Planned:
    """The event of a plan that was just published.

    Args:
        action: The plan, with the planner's answer if there was one.
        num_staying: Workers that were there to stay.
    """
    plan, answer = action.plan, action.answer
    event = Planned(
        at_unix_s=plan.created_unix_s,
        revision=plan.revision,
        reason=plan.reason,
        why=plan.why,
        configuration=str(plan.layout.configuration) if plan.layout else "paused",
        instances=num_staying,
    )
    if answer is None:
        return event
    # Before layers are measured speeds only rank layouts: they are no samples per second.
    knows = answer.ideal_samples_per_second is not None
    return event.model_copy(
        update={
            "samples_per_second": answer.samples_per_second if knows else None,
            "liveput_samples_per_second": answer.liveput_samples_per_second if knows else None,
            "expected_pause_seconds": answer.pause_seconds,
            "runner_up": answer.runner_up,
            "forecast": answer.forecast,
        }
    )
