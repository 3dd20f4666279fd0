"""Forming an epoch: meet, agree, move state, and build the groups and the stage.

Whatever fails here leaves the memory consistent: layers are counted as held when they have
arrived whole, and dropped only after everyone has what it needs.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    PrefixStore,
    Store,
    TCPStore,
    _unregister_all_process_groups,
)
from torch.distributed import distributed_c10d

from parcae_agent import checkpoint
from parcae_agent.agreement import Agreement, Record, agree
from parcae_agent.layer_state import LayerState, build_layer
from parcae_agent.memory import Memory
from parcae_agent.probe import Probe
from parcae_agent.training import Training
from parcae_agent.user_code import user_code
from parcae_agent.wire import OPERATION_TIMEOUT, Wire
from parcae_api.plan import Cell, Plan, Rendezvous, WorkerId

_log = logging.getLogger(__name__)
MEETING_TIMEOUT = timedelta(seconds=60)
"""How long members wait for one another in a revision that nobody replaces."""
CONNECT_TIMEOUT = timedelta(seconds=10)
"""How long they connect once all are there. Nothing wakes one whose peer died before connecting to
it, so this bounds what such a death costs."""


@dataclass(frozen=True)
class Groups:
    """The process groups of an epoch."""

    rank: int
    grid: dist.ProcessGroup | None
    """All workers of the grid, without donors; None for a grid of one."""
    replicas: dist.ProcessGroup | None
    """The D holders of this worker's stage, in order; None when D is 1."""
    pipeline: dist.ProcessGroup
    """The P stages of this worker's pipeline, in order."""


@dataclass(frozen=True)
class Formed:
    """An epoch that is ready to train."""

    plan: Plan
    cell: Cell | None
    """None for a donor, whose part ends here."""
    groups: Groups | None
    agreement: Agreement
    bytes_moved: int
    transfer_seconds: float


class Former:
    """Forms epochs for one worker."""

    def __init__(
        self,
        worker: WorkerId,
        training: Training,
        seed: int,
        memory: Memory,
        *,
        device: torch.device,
        backend: str,
        checkpoints: Path | None,
        wire: Wire,
        probe: Probe,
    ) -> None:
        self._worker = worker
        self._training = training
        self._seed = seed
        self._memory = memory
        self._device = device
        self._backend = backend
        self._checkpoints = checkpoints
        self._wire = wire
        self._probe = probe

    def prepare(self, plan: Plan) -> None:
        """Build this worker's layers and touch their memory, ahead of the meeting."""
        cell = plan.cell_of(self._worker)
        if cell is None or plan.layout is None or self._memory.layers:
            return
        for index in plan.layout.layers(cell.stage):
            layer = self._take_skeleton(index)
            layer.allocate()
            self._memory.skeletons[index] = layer

    def form(self, plan: Plan, store: Store) -> Formed:
        """Form the epoch of ``plan``.

        Raises:
            RuntimeError, OSError: a member died, or the guard broke the epoch.
        """
        rank = plan.members.index(self._worker)
        self._probe("form", self._memory.applied)
        self._connect(plan, rank, PrefixStore(f"revision-{plan.revision}", store))
        agreement = agree(plan, self._gather(plan))
        self._memory.agreed = plan
        self._settle(agreement, rank)
        self._probe("agreed", self._memory.applied)
        cell = plan.cell_of(self._worker)
        started = time.perf_counter()
        moved = self._transfer(plan, agreement, rank, cell)
        if cell is not None:
            self._complete(plan, agreement, cell)
        seconds = time.perf_counter() - started
        self._probe("transferred", self._memory.applied)
        # Nobody drops a layer, and no donor leaves, before everyone has what it needs.
        total = torch.tensor([float(moved)], dtype=torch.float64, device=self._device)
        self._wire.all_reduce(total)
        self._memory.form(plan)
        groups = None
        if cell is not None:
            assert plan.layout is not None
            self._memory.retain(plan.layout.layers(cell.stage))
            groups = _make_groups(plan, rank, cell, self._device)
        self._probe("formed", self._memory.applied)
        return Formed(plan, cell, groups, agreement, int(total.item()), seconds)

    def _connect(self, plan: Plan, rank: int, store: Store) -> None:
        """Wait until all members are there, then connect all to all."""
        store.set(f"here/{rank}", "")
        store.wait([f"here/{other}" for other in range(len(plan.members))], MEETING_TIMEOUT)
        hook = sys.excepthook
        dist.init_process_group(
            self._backend,
            store=store,
            rank=rank,
            world_size=len(plan.members),
            timeout=CONNECT_TIMEOUT,
        )
        sys.excepthook = hook  # torch puts a rank before every line, once more in every epoch
        _take_time(dist.group.WORLD, self._device)

    def _gather(self, plan: Plan) -> list[Record]:
        complete: tuple[int, ...] = ()
        if self._checkpoints is not None:
            complete = checkpoint.complete_steps(self._checkpoints, len(self._training.layers))
        mine = self._memory.record(self._worker, complete)
        return self._wire.gather_objects(mine, len(plan.members))

    def _settle(self, agreement: Agreement, rank: int) -> None:
        """Bring this worker's own state to the step agreed on."""
        memory = self._memory
        if rank in agreement.stale:
            memory.forget()
        if memory.layers and memory.applied < agreement.resume:
            assert memory.pending is not None
            assert agreement.roll_forward_scale is not None
            with user_code("the optimizer"), torch.no_grad():
                memory.commit(
                    memory.pending.grads, agreement.roll_forward_scale, self._training.optimizer
                )
            self.on_roll_forward(agreement.resume - 1)
        memory.applied = agreement.resume
        memory.pending = None
        # From here on this worker can tell others what it was told, should this epoch not form.
        memory.reached = agreement.reached
        memory.attempting = agreement.attempted
        if agreement.roll_forward_scale is not None:
            memory.commit_scale = agreement.roll_forward_scale

    on_roll_forward: Callable[[int], None] = staticmethod(lambda step: None)
    """Told of a step that is committed while an epoch forms."""

    def _transfer(self, plan: Plan, agreement: Agreement, rank: int, cell: Cell | None) -> int:
        """Send and receive layers; the bytes this worker received."""
        operations: list[dist.P2POp] = []
        arriving: list[LayerState] = []
        self._probe("transfer", self._memory.applied)
        for transfer in agreement.transfers:
            if transfer.source == rank:
                flat = self._memory.layers[transfer.layer].flat
                if flat.numel():
                    operations.append(dist.P2POp(dist.isend, flat, transfer.target))
            elif transfer.target == rank:
                layer = self._take_skeleton(transfer.layer)
                layer.allocate()
                arriving.append(layer)
                if layer.flat.numel():
                    operations.append(dist.P2POp(dist.irecv, layer.flat, transfer.source))
        self._wire.exchange(operations)
        for layer in arriving:
            layer.attach()
            self._memory.layers[layer.index] = layer
        return sum(layer.nbytes for layer in arriving)

    def _complete(self, plan: Plan, agreement: Agreement, cell: Cell) -> None:
        """Restore or initialize what nobody held."""
        assert plan.layout is not None
        for index in plan.layout.layers(cell.stage):
            if index in self._memory.layers:
                continue
            if agreement.resume > 0:
                assert self._checkpoints is not None
                layer = self._take_skeleton(index)
                checkpoint.restore(self._checkpoints, agreement.resume, layer)
            else:
                self._memory.skeletons.pop(index, None)  # used: its initial values are gone
                layer = build_layer(self._training, index, self._seed, self._device)
                layer.initialize()
            self._memory.layers[index] = layer

    def _take_skeleton(self, index: int) -> LayerState:
        layer = self._memory.skeletons.pop(index, None)
        return layer or build_layer(self._training, index, self._seed, self._device)


def host_store(address: str, revision: int) -> tuple[Store, Rendezvous]:
    """Serve the store of a revision, as its first worker."""
    store = TCPStore(address, 0, is_master=True, wait_for_workers=False, timeout=MEETING_TIMEOUT)
    return store, Rendezvous(revision=revision, host=address, port=store.port)


def join_store(rendezvous: Rendezvous, wire: Wire) -> Store:
    """Connect to the store of a revision.

    Raises:
        RuntimeError, OSError: its first worker is gone, or the guard broke the epoch.
    """
    # The client tries again and again until its timeout, and no shutdown of sockets stops it.
    store = wire.call(
        lambda: TCPStore(
            rendezvous.host,
            rendezvous.port,
            is_master=False,
            wait_for_workers=False,
            timeout=CONNECT_TIMEOUT,
        )
    )
    store.set_timeout(MEETING_TIMEOUT)
    return store


def _take_time(group: dist.ProcessGroup | None, device: torch.device) -> None:
    """From now on, let operations take longer than connecting."""
    assert group is not None
    group._get_backend(device)._set_default_timeout(OPERATION_TIMEOUT)


def _make_groups(plan: Plan, rank: int, cell: Cell, device: torch.device) -> Groups:
    assert plan.layout is not None
    configuration = plan.layout.configuration
    d, p = configuration.data, configuration.pipeline
    everyone = list(range(configuration.workers))

    def group(ranks: list[int]) -> dist.ProcessGroup:
        if len(ranks) == len(plan.members):
            return cast(dist.ProcessGroup, dist.group.WORLD)
        made = dist.new_group(ranks, timeout=CONNECT_TIMEOUT, use_local_synchronization=True)
        assert isinstance(made, dist.ProcessGroup)
        _take_time(made, device)
        return made

    pipeline = group([cell.replica * p + stage for stage in range(p)])
    replicas = group([replica * p + cell.stage for replica in range(d)]) if d > 1 else None
    grid = group(everyone) if len(everyone) > 1 else None
    return Groups(rank, grid, replicas, pipeline)


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
