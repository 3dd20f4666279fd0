"""The process groups of an epoch: connecting them, and leaving them whatever state they are in."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo, Store, _unregister_all_process_groups
from torch.distributed import distributed_c10d

from parcae_agent.wire import OPERATION_TIMEOUT, Wire
from parcae_api.plan import Cell, Plan

_log = logging.getLogger(__name__)
MEETING_TIMEOUT = timedelta(seconds=60)
"""How long members wait for one another in a revision that nobody replaces."""
CONNECT_TIMEOUT = timedelta(seconds=10)
"""How long they connect once all are there; gloo makes five times that of it."""
_BACKEND = "parcae_gloo"


@dataclass(frozen=True)
class Groups:
    """What a worker of the grid is a member of."""

    grid: dist.ProcessGroup | None
    """All workers of the grid, without donors; None for a grid of one."""
    replicas: dist.ProcessGroup | None
    """The D holders of this worker's stage, in order; None when D is 1."""
    pipeline: dist.ProcessGroup
    """The P stages of this worker's pipeline, in order."""


class Connector:
    """Connects the groups of epochs, for one worker."""

    def __init__(self, backend: str, device: torch.device, wire: Wire) -> None:
        """``backend`` is ``gloo`` or ``nccl``."""
        self._backend = _BACKEND if backend == "gloo" else backend
        self._device = device
        self._wire = wire

    def connect(self, store: Store, rank: int, size: int) -> None:
        """Wait until all members are there, then connect all to all.

        Raises:
            RuntimeError, OSError: a member died, or the guard broke the epoch.
        """
        store.set(f"here/{rank}", "")
        store.wait([f"here/{other}" for other in range(size)], MEETING_TIMEOUT)
        hook = sys.excepthook
        with _connecting_by(self._wire):
            dist.init_process_group(
                self._backend, store=store, rank=rank, world_size=size, timeout=CONNECT_TIMEOUT
            )
        sys.excepthook = hook  # torch puts a rank before every line, once more in every epoch
        self._take_time(dist.group.WORLD)

    def split(self, plan: Plan, cell: Cell) -> Groups:
        """Connect the groups of a worker's cell. Every worker of the grid calls this.

        Raises:
            RuntimeError, OSError: as ``connect``.
        """
        assert plan.layout is not None
        configuration = plan.layout.configuration
        d, p = configuration.data, configuration.pipeline
        everyone = list(range(configuration.workers))
        pipeline = self._group(plan, [cell.replica * p + stage for stage in range(p)])
        replicas = None
        if d > 1:
            replicas = self._group(plan, [replica * p + cell.stage for replica in range(d)])
        grid = self._group(plan, everyone) if len(everyone) > 1 else None
        return Groups(grid, replicas, pipeline)

    def _group(self, plan: Plan, ranks: list[int]) -> dist.ProcessGroup:
        if len(ranks) == len(plan.members):
            return cast(dist.ProcessGroup, dist.group.WORLD)
        with _connecting_by(self._wire):
            made = dist.new_group(ranks, timeout=CONNECT_TIMEOUT, use_local_synchronization=True)
        assert isinstance(made, dist.ProcessGroup)
        self._take_time(made)
        return made

    def _take_time(self, group: dist.ProcessGroup | None) -> None:
        """From now on, let operations take longer than connecting."""
        assert group is not None
        group._get_backend(self._device)._set_default_timeout(OPERATION_TIMEOUT)


def destroy_groups() -> None:
    """Leave the epoch's groups, whatever state they are in, with no trace for the next ones."""
    world = distributed_c10d._world
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception as error:
        _log.warning("process groups were not destroyed cleanly: %s", error)
        distributed_c10d._update_default_pg(None)
        for table in (
            world.pg_map,
            world.pg_names,
            world.pg_group_ranks,
            world.pg_backend_config,
            world.pg_to_tag,
            world.tags_to_pg,
            world.pg_coalesce_state,
        ):
            table.clear()
        _unregister_all_process_groups()
    # It names the groups, and members must name theirs alike: a meeting that failed half-way
    # has counted it up, a newcomer has not.
    world.group_count = 0


# gloo waits for a peer to connect to it where no shutdown of a socket can wake it: there is none
# yet. So the wire does that waiting, too. torch itself must stay on the main thread: a thread that
# is left behind could end up registering the group of a broken epoch in the middle of the next.

_WIRE: ContextVar[Wire] = ContextVar("_WIRE")


@contextmanager
def _connecting_by(wire: Wire) -> Iterator[None]:
    token = _WIRE.set(wire)
    try:
        yield
    finally:
        _WIRE.reset(token)


def _connect_gloo(store: Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupGloo:
    return _WIRE.get().call(lambda: ProcessGroupGloo(store, rank, size, timeout))


dist.Backend.register_backend(_BACKEND, _connect_gloo, devices=["cpu"])
