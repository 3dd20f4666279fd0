"""What the members of a new epoch agree on, from what each of them brings. Pure.

Every member gathers the same records and computes the same answer:

- who is stale: a member that sat out the newest epoch any of them agreed on holds nothing;
- where to resume: if anyone committed step s, everyone had reduced it (the vote came before),
  so those who had not applied it do so now; else the step is dropped and run again;
- what is lost: layers with no holder. Then all go back to the newest checkpoint, or to the
  initial state, which is a checkpoint that anyone can rebuild;
- who sends which layer to whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    boundaries: tuple[int, ...] = ()
    """Stage boundaries of the epoch it was in."""
    commit_scale: float | None = None
    """Factor on the gradient (clipping) of the last step it applied: the vote's outcome."""
    attempting: bool = False
    """It had begun step ``applied`` when the epoch ended."""
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
    steps_replayed: int = 0
    previous_boundaries: tuple[int, ...] = ()
    last_commit_unix_s: float | None = None


@dataclass
class _Holders:
    by_layer: dict[int, list[int]] = field(default_factory=dict)

    def add(self, rank: int, layers: Sequence[int]) -> None:
        for layer in layers:
            self.by_layer.setdefault(layer, []).append(rank)


def agree(plan: Plan, records: Sequence[Record]) -> Agreement:
    """Decide from the records of all members, in rank order.

    Raises:
        ValueError: the plan has no layout, or the records are not one per member.
    """
    if plan.layout is None or len(records) != len(plan.members):
        raise ValueError("an epoch needs a layout and a record of every member")
    newest = max(records, key=lambda record: record.agreed_revision)
    fresh = [
        rank
        for rank, record in enumerate(records)
        if record.layers
        and (newest.agreed_revision == 0 or record.worker in newest.agreed_members)
    ]
    reached = max((records[rank].applied for rank in fresh), default=0)
    valid = [rank for rank in fresh if _is_current(records[rank], reached)]
    holders = _Holders()
    for rank in valid:
        holders.add(rank, records[rank].layers)
    common = {
        "last_commit_unix_s": max(
            (r.last_commit_unix_s for r in records if r.last_commit_unix_s is not None),
            default=None,
        ),
        "previous_boundaries": newest.boundaries,
    }
    missing = [k for k in range(plan.layout.num_layers) if k not in holders.by_layer]
    if missing:
        resume = records[0].checkpoints[-1] if records[0].checkpoints else 0
        reached = max((record.applied for record in records), default=0)
        return Agreement(
            resume=resume,
            stale=frozenset(range(len(records))),
            restore=tuple(range(plan.layout.num_layers)),
            rolled_back_from=reached if reached > 0 else None,
            first=newest.agreed_revision == 0,
            steps_replayed=max(0, reached - resume),
            **common,
        )
    scales = [records[rank].commit_scale for rank in valid if records[rank].applied == reached]
    rolls = any(records[rank].applied < reached for rank in valid)
    attempted = any(records[rank].attempting for rank in valid if records[rank].applied == reached)
    return Agreement(
        resume=reached,
        stale=frozenset(rank for rank, r in enumerate(records) if r.layers) - frozenset(valid),
        roll_forward_scale=scales[0] if rolls else None,
        transfers=_transfers(plan, holders),
        steps_replayed=int(attempted),
        **common,
    )


def _is_current(record: Record, reached: int) -> bool:
    """Whether its state is that of ``reached`` steps, or becomes so with its kept gradient."""
    behind_by_one = record.applied == reached - 1 and record.pending == reached - 1
    return record.applied == reached or behind_by_one


def _transfers(plan: Plan, holders: _Holders) -> tuple[Transfer, ...]:
    """For every cell and layer it lacks, the least loaded holder; alike on all members."""
    assert plan.layout is not None
    load = [0] * len(plan.members)
    transfers = []
    for target, (_, cell) in enumerate(plan.cells()):
        for layer in plan.layout.layers(cell.stage):
            sources = holders.by_layer[layer]
            if target in sources:
                continue
            source = min(sources, key=lambda rank: (load[rank], rank))
            load[source] += 1
            transfers.append(Transfer(layer, source, target))
    return tuple(transfers)
