"""Forming an epoch: meet, agree, move state, and build the groups and the stage.

Whatever fails here leaves the memory consistent: layers are counted as held when they have
arrived whole, and dropped only after everyone has what it needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from parcae_agent import checkpoint
from parcae_agent.agreement import Agreement, Record, agree
from parcae_agent.groups import CONNECT_TIMEOUT, MEETING_TIMEOUT, Connector, Groups
from parcae_agent.layer_state import LayerState, build_layer
from parcae_agent.memory import Memory
from parcae_agent.probe import Probe
from parcae_agent.training import Training
from parcae_agent.user_code import user_code
from parcae_agent.wire import Wire
from parcae_api.plan import Cell, Plan, Rendezvous, WorkerId


@dataclass(frozen=True)
class Formed:
    """An epoch that is ready to train."""

    plan: Plan
    cell: Cell | None
    """None for a donor, whose part ends here."""
    groups: Groups | None
    agreement: Agreement
    bytes_moved: int
    """By all."""
    transfer_seconds: float
    bytes_sent: int = 0
    """By this worker; so is the next."""
    bytes_received: int = 0


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
        self._connector = Connector(backend, device, wire)
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
        prefixed = PrefixStore(f"revision-{plan.revision}", store)
        self._connector.connect(prefixed, rank, len(plan.members))
        agreement = agree(plan, self._gather(plan))
        self._memory.agreed = plan
        self._settle(agreement, rank)
        self._probe("agreed", self._memory.applied)
        cell = plan.cell_of(self._worker)
        started = time.perf_counter()
        sent, moved = self._transfer(plan, agreement, rank, cell)
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
            groups = self._connector.split(plan, cell)
        self._probe("formed", self._memory.applied)
        return Formed(plan, cell, groups, agreement, int(total.item()), seconds, sent, moved)

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

    def _transfer(
        self, plan: Plan, agreement: Agreement, rank: int, cell: Cell | None
    ) -> tuple[int, int]:
        """Send and receive layers; the bytes this worker sent, and those it received."""
        sent = 0
        operations: list[dist.P2POp] = []
        arriving: list[LayerState] = []
        self._probe("transfer", self._memory.applied)
        for transfer in agreement.transfers:
            if transfer.source == rank:
                flat = self._memory.layers[transfer.layer].flat
                sent += flat.nbytes
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
        return sent, sum(layer.nbytes for layer in arriving)

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
