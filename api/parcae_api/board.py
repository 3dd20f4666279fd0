"""JobBoard: one job's part of etcd, typed. The only channel between operator and agents.

Reading one value that does not parse raises ``BoardError``, which names the key; among many it is
left out. Besides, all methods raise what ``EtcdClient`` raises.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from parcae_api import board_keys as keys
from parcae_api.board_keys import Slot
from parcae_api.board_snapshot import (
    BoardChange,
    BoardReset,
    BoardSnapshot,
    read_change,
    read_reset,
    read_snapshot,
)
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.etcd_types import Change, Reset
from parcae_api.etcd_watch import Watch
from parcae_api.events import AnyEvent, Failed
from parcae_api.history import History
from parcae_api.job import ParcaeJob
from parcae_api.leader import Leader
from parcae_api.membership import Membership
from parcae_api.model import Contract
from parcae_api.plan import Plan, Rendezvous
from parcae_api.profile import Profile
from parcae_api.progress import Progress

M = TypeVar("M", bound=Contract)


@dataclass(frozen=True, slots=True)
class Entry(Generic[M]):
    """A model as it stands on the board."""

    model: M
    mod_revision: int
    """The store's revision that wrote it: what a compare-and-swap compares."""


class JobBoard:
    """The keys of one job.

    Args:
        client: Shared; closing it is its owner's business.
        namespace: The job's namespace.
        job: The job's name.
    """

    def __init__(self, client: EtcdClient, namespace: str, job: str) -> None:
        for name in (namespace, job):
            if not name or "/" in name:
                raise ValueError(f"{name!r} is no name of a namespace or job")
        self._client = client
        self.prefix = f"{keys.ROOT}{namespace}/{job}/"

    # What the operator writes.

    def job(self) -> ParcaeJob | None:
        """The manifest."""
        return self._model(keys.JOB)

    def put_job(self, job: ParcaeJob) -> None:
        """Write the manifest."""
        self._put(keys.JOB, job)

    def plan(self) -> Entry[Plan] | None:
        """The newest plan."""
        return self._entry(keys.PLAN)

    def publish_plan(self, plan: Plan, previous: Entry[Plan] | None) -> Entry[Plan] | None:
        """Replace the plan, if it is still the one that the caller saw.

        Args:
            plan: The new one.
            previous: As read by ``plan``, or published before; None: there was none.

        Returns:
            The new entry; None when the plan on the board is another than ``previous``.

        Raises:
            ValueError: the revision does not grow.
            Indeterminate: whether it was published cannot be told; read the plan to find out.
        """
        if previous is not None and plan.revision <= previous.model.revision:
            raise ValueError(
                f"plan revision {plan.revision} must be above {previous.model.revision}"
            )
        expected = 0 if previous is None else previous.mod_revision
        key = self._key(keys.PLAN)
        revision = self._client.compare_and_swap(key, expected, plan.to_json())
        return None if revision is None else Entry(plan, revision)

    def history(self) -> History | None:
        """How many instances there were."""
        return self._model(keys.HISTORY)

    def put_history(self, history: History) -> None:
        """Write how many instances there were."""
        self._put(keys.HISTORY, history)

    def leader(self) -> Leader | None:
        """Which operator drives the job; None when there is none."""
        return self._model(keys.LEADER)

    def lead(self, leader: Leader, lease: Lease) -> bool:
        """Become the operator that drives the job, unless another is.

        Raises:
            Indeterminate: whether it worked cannot be told; may be called again.
        """
        key = self._key(keys.LEADER)
        if self._client.compare_and_swap(key, 0, leader.to_json(), lease) is not None:
            return True
        return self.leader() == leader

    # What agents and workers write.

    def agents(self) -> dict[str, Membership]:
        """All living agents by incarnation."""
        return self._all(keys.AGENTS)

    def agent(self, incarnation: str) -> Membership | None:
        """One agent; None when its lease ended."""
        return self._model(keys.AGENTS, incarnation)

    def put_agent(self, membership: Membership, lease: Lease) -> None:
        """Write an agent's entry, which lives as long as its lease."""
        self._put(keys.AGENTS, membership, membership.incarnation, lease)

    def epoch(self, revision: int) -> Rendezvous | None:
        """Where the members of a revision meet."""
        return self._model(keys.EPOCHS, str(revision))

    def open_epoch(self, rendezvous: Rendezvous, lease: Lease | None = None) -> bool:
        """Say where the members of a revision meet. False when another said so before.

        Raises:
            Indeterminate: whether it was written cannot be told; may be called again.
        """
        name = str(rendezvous.revision)
        key = self._key(keys.EPOCHS, name)
        if self._client.compare_and_swap(key, 0, rendezvous.to_json(), lease) is not None:
            return True
        return self.epoch(rendezvous.revision) == rendezvous

    def prune_epochs(self, below_revision: int) -> int:
        """Delete the meeting points of older revisions. Returns how many."""
        epochs = self._all(keys.EPOCHS).items()
        old = [name for name, epoch in epochs if epoch.revision < below_revision]
        return sum(self._client.delete(self._key(keys.EPOCHS, name)) for name in old)

    def progress(self) -> Progress | None:
        """What is committed."""
        return self._model(keys.PROGRESS)

    def put_progress(self, progress: Progress) -> None:
        """Write what is committed."""
        self._put(keys.PROGRESS, progress)

    def profile(self) -> Profile | None:
        """What was measured."""
        return self._model(keys.PROFILE)

    def put_profile(self, profile: Profile) -> None:
        """Write what was measured."""
        self._put(keys.PROFILE, profile)

    def failures(self) -> dict[str, Failed]:
        """The failures of the user's code by worker."""
        return self._all(keys.FAILURES)

    def put_failure(self, failed: Failed) -> None:
        """Say that the user's code failed in a worker."""
        self._put(keys.FAILURES, failed, failed.worker)

    # What all write.

    def events(self) -> dict[str, AnyEvent]:
        """The newest events by id, oldest first."""
        return self._all(keys.EVENTS)

    def add_event(self, event: AnyEvent) -> str:
        """Add an event. Returns its id; ids sort by the event's time."""
        event_id = f"{int(event.at_unix_s * 1e6):017d}-{secrets.token_hex(4)}"
        self._put(keys.EVENTS, event, event_id)
        return event_id

    def prune_events(self, keep: int) -> int:
        """Delete all but the newest ``keep`` events. Returns how many."""
        start = self._key(keys.EVENTS, "")
        found = sorted(self._client.list(start).items)
        if len(found) <= keep:
            return 0
        if keep == 0:
            return self._client.delete_prefix(start)
        return self._client.delete_range(start, found[-keep])

    # The whole.

    def snapshot(self) -> BoardSnapshot:
        """Everything, as of one revision."""
        return read_snapshot(self.prefix, self._client.list(self.prefix))

    def clear(self) -> None:
        """Delete everything, when the job is gone."""
        self._client.delete_prefix(self.prefix)

    def watch(
        self,
        on_change: Callable[[BoardChange], None],
        *,
        on_error: Callable[[Exception], None],
        on_reset: Callable[[BoardReset], None] | None = None,
    ) -> Watch:
        """Follow the job's board, beginning with what is there. Returns at once.

        One watch serves all keys, so changes arrive in the order in which they were made. Callbacks
        are as for ``EtcdClient.watch``; a value that does not parse is left out, with a warning.
        """

        def change(raw: Change) -> None:
            if (read := read_change(self.prefix, raw)) is not None:
                on_change(read)

        def reset(raw: Reset) -> None:
            assert on_reset is not None
            on_reset(read_reset(self.prefix, raw))

        return self._client.watch(
            self.prefix, change, on_error=on_error, on_reset=reset if on_reset else None
        )

    def _key(self, slot: Slot[Contract], name: str | None = None) -> str:
        if name is None:
            return self.prefix + slot.kind
        return f"{self.prefix}{slot.kind}/{name}"

    def _put(
        self, slot: Slot[M], model: M, name: str | None = None, lease: Lease | None = None
    ) -> None:
        if not slot.accepts(name or ""):
            raise ValueError(f"{name!r} cannot name a key of {slot.kind}")
        self._client.put(self._key(slot, name), model.to_json(), lease)

    def _entry(self, slot: Slot[M], name: str | None = None) -> Entry[M] | None:
        key = self._key(slot, name)
        item = self._client.get(key)
        return None if item is None else Entry(slot.read(key, item.value), item.mod_revision)

    def _model(self, slot: Slot[M], name: str | None = None) -> M | None:
        entry = self._entry(slot, name)
        return None if entry is None else entry.model

    def _all(self, slot: Slot[M]) -> dict[str, M]:
        snapshot = self._client.list(self._key(slot, ""))
        return read_snapshot(self.prefix, snapshot).all(slot)
