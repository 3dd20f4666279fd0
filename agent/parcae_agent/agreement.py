"""What the members of a new epoch agree on, from what each of them brings. Pure.

Every member gathers the same records and computes the same answer:

- who is stale: a member that sat out the newest epoch any of them agreed on holds nothing;
- where to resume: if anyone committed step s, everyone had reduced it (the vote came before),
  so those who had not applied it do so now; else the step is dropped and run again;
- what is lost: layers with no holder, or held only by those who left the grid before the newest
  checkpoint. Then all take that checkpoint's state, or the initial one, which is a checkpoint
  that anyone can rebuild;
- who sends which layer to whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parcae_api.plan import Plan, WorkerId


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a member brings. Steps are counts of committed steps."""

    worker: WorkerId
    applied: int = 0
    layers: tuple[int, ...] = ()
    """Layer indices held, sorted."""
    pending: int | None = None
    """The step whose reduced gradient is kept and not applied, or None."""
    agreed_revision: int = 0
    agreed_members: tuple[WorkerId, ...] = ()
    formed_revision: int = 0
    """The newest epoch that it saw formed, and the stage boundaries of that one."""
    boundaries: tuple[int, ...] = ()
    commit_scale: float | None = None
    """Factor on the gradient (clipping) of step ``applied - 1``: the vote's outcome. None where
    it was not told: it got the state of that step as a copy."""
    reached: int = 0
    """The most steps it had committed, or was told of, since an epoch last formed: more than
    ``applied`` where an agreement rolled back and its epoch did not form."""
    attempting: bool = False
    """Work on step ``reached`` had begun when the epoch ended."""
    checkpoints: tuple[int, ...] = ()
    """Complete checkpoints it can read, rising."""
    last_commit_unix_s: float | None = None


@dataclass(frozen=True)
class Transfer:
    """One layer from one rank to another."""

    layer: int
    source: int
    target: int


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The answer, the same on every member."""

    resume: int
    """Committed steps when the new epoch starts."""
    reached: int
    """Committed steps before anything was rolled back."""
    attempted: bool
    """Step ``reached`` had begun: its work is thrown away."""
    stale: frozenset[int] = frozenset()
    """Ranks whose state is out of date and dropped."""
    roll_forward_scale: float | None = None
    """The clipping factor with which kept gradients of step ``resume - 1`` are applied."""
    transfers: tuple[Transfer, ...] = ()
    restore: tuple[int, ...] = ()
    """Layers that everyone who needs them restores from the checkpoint at ``resume``."""
    rolled_back_from: int | None = None
    """Set when all state was dropped: the step that had been reached."""
    first: bool = False
    """Nobody held anything: the job starts (or starts again after all was lost)."""
    previous_boundaries: tuple[int, ...] = ()
    last_commit_unix_s: float | None = None

    @property
    def steps_replayed(self) -> int:
        """Steps, or parts of one, whose work was thrown away and is done again."""
        return max(0, self.reached + self.attempted - self.resume)


Holders = Mapping[int, Sequence[int]]
"""Ranks by the layer that they hold."""


def agree(plan: Plan, records: Sequence[Record]) -> Agreement:
    """Decide from the records of all members, in rank order.

    Raises:
        ValueError: the plan has no layout, or the records are not one per member.
    """
    if plan.layout is None or len(records) != len(plan.members):
        raise ValueError("an epoch needs a layout and a record of every member")
    newest = max(records, key=lambda record: record.agreed_revision)
    took_part = [r for r in records if r.worker in newest.agreed_members]
    reached = max((r.reached for r in took_part), default=0)
    attempted = any(r.attempting for r in took_part if r.reached == reached)
    boundaries = max(records, key=lambda record: record.formed_revision).boundaries
    commits = [r.last_commit_unix_s for r in records if r.last_commit_unix_s is not None]
    last_commit_unix_s = max(commits, default=None)

    held = [r for r in took_part if r.layers]
    applied = max((r.applied for r in held), default=0)
    scales = [r.commit_scale for r in held if r.applied == applied and r.commit_scale is not None]
    scale = scales[0] if scales else None
    current = {r.worker for r in held if _is_current(r, applied, scale)}
    valid = [rank for rank, r in enumerate(records) if r.worker in current]
    holders = _holders(valid, records)
    saved = records[0].checkpoints[-1] if records[0].checkpoints else 0
    if applied < saved or any(layer not in holders for layer in range(plan.layout.num_layers)):
        if 0 < reached < saved:
            reached, attempted = saved, False
        return Agreement(
            resume=saved,
            reached=reached,
            attempted=attempted,
            stale=frozenset(range(len(records))),
            restore=tuple(range(plan.layout.num_layers)),
            rolled_back_from=reached if reached > 0 else None,
            first=newest.agreed_revision == 0,
            previous_boundaries=boundaries,
            last_commit_unix_s=last_commit_unix_s,
        )
    return Agreement(
        resume=applied,
        reached=max(reached, applied),
        attempted=attempted,
        stale=frozenset(rank for rank, r in enumerate(records) if r.layers) - frozenset(valid),
        roll_forward_scale=scale if any(records[r].applied < applied for r in valid) else None,
        transfers=_transfers(plan, holders),
        previous_boundaries=boundaries,
        last_commit_unix_s=last_commit_unix_s,
    )


def _is_current(record: Record, applied: int, scale: float | None) -> bool:
    """Whether its state is that of ``applied`` steps, or becomes so with its kept gradient."""
    if record.applied == applied:
        return True
    return scale is not None and record.applied == record.pending == applied - 1


def _holders(valid: Sequence[int], records: Sequence[Record]) -> Holders:
    holders: dict[int, list[int]] = {}
    for rank in valid:
        for layer in records[rank].layers:
            holders.setdefault(layer, []).append(rank)
    return holders


def _transfers(plan: Plan, holders: Holders) -> tuple[Transfer, ...]:
    """For every cell and layer it lacks, the least loaded holder; alike on all members."""
    assert plan.layout is not None
    load = [0] * len(plan.members)
    transfers = []
    for target, (_, cell) in enumerate(plan.cells()):
        for layer in plan.layout.layers(cell.stage):
            sources = holders[layer]
            if target in sources:
                continue
            source = min(sources, key=lambda rank: (load[rank], rank))
            load[source] += 1
            transfers.append(Transfer(layer, source, target))
    return tuple(transfers)
