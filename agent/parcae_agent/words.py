"""What a plan means for one worker, in words for its log. Pure."""

from __future__ import annotations

from parcae_api.plan import Plan, WorkerId


def words_on(plan: Plan, worker: WorkerId) -> str:
    """What a plan has a worker do; why there is one, the operator's log says."""
    return f"{_part_in(plan, worker)} ({plan.reason})"


def _part_in(plan: Plan, worker: WorkerId) -> str:
    if plan.layout is None:
        return "training pauses"
    cell = plan.cell_of(worker)
    if cell is not None:
        return f"replica {cell.replica}, stage {cell.stage} of {plan.layout.configuration}"
    if worker in plan.donors:
        return "outside the grid, with state that others need"
    return f"outside the grid of {plan.layout.configuration}"
