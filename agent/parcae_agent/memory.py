"""What a worker holds from epoch to epoch: layers, the step they are at, the kept gradient."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from parcae_agent.agreement import Record
from parcae_agent.layer_state import LayerState
from parcae_agent.optimizers import Optimizer
from parcae_api.membership import Holding
from parcae_api.plan import Plan, WorkerId


@dataclass(frozen=True)
class Pending:
    """A reduced gradient that is not applied yet."""

    step: int
    grads: Mapping[int, Tensor]
    """By layer index."""


@dataclass
class Memory:
    """The state that outlives an epoch. Only the worker's main thread touches it."""

    layers: dict[int, LayerState] = field(default_factory=dict)
    applied: int = 0
    """Committed steps that the layers have seen."""
    pending: Pending | None = None
    attempting: bool = False
    """Step ``applied`` has begun."""
    commit_scale: float | None = None
    agreed: Plan | None = None
    """The newest plan whose members this worker agreed with."""
    last_commit_unix_s: float | None = None
    skeletons: dict[int, LayerState] = field(default_factory=dict)
    """Layers built earlier and not in use: their modules and memory are used again."""

    def record(self, worker: WorkerId, checkpoints: tuple[int, ...]) -> Record:
        """What this worker brings to a new epoch."""
        layout = self.agreed.layout if self.agreed else None
        return Record(
            worker=worker,
            applied=self.applied,
            layers=tuple(sorted(self.layers)),
            pending=self.pending.step if self.pending else None,
            agreed_revision=self.agreed.revision if self.agreed else 0,
            agreed_members=self.agreed.members if self.agreed else (),
            boundaries=layout.boundaries if layout else (),
            commit_scale=self.commit_scale,
            attempting=self.attempting,
            checkpoints=checkpoints,
            last_commit_unix_s=self.last_commit_unix_s,
        )

    def holding(self) -> Holding | None:
        """The run of layers held, for the board."""
        if not self.layers:
            return None
        revision = self.agreed.revision if self.agreed else 0
        first, last = min(self.layers), max(self.layers) + 1
        return Holding(revision=revision, first=first, last=last, step=self.applied)

    def commit(self, grads: Mapping[int, Tensor], scale: float, optimizer: Optimizer) -> None:
        """Apply one step to all layers."""
        for index, layer in self.layers.items():
            grad = grads[index]
            if scale != 1.0:
                grad.mul_(scale)
            layer.apply(optimizer, grad, self.applied)
        self.applied += 1
        self.pending = None
        self.attempting = False
        self.commit_scale = scale
        self.last_commit_unix_s = time.time()

    def forget(self) -> None:
        """Drop all state; the built modules stay for when their layers come back."""
        self.skeletons.update(self.layers)
        self.layers = {}
        self.pending = None
        self.attempting = False
        self.commit_scale = None

    def retain(self, layers: range) -> None:
        """Drop the state of all other layers."""
        self.skeletons.update({k: v for k, v in self.layers.items() if k not in layers})
        self.layers = {index: self.layers[index] for index in layers}
        self._trim_skeletons()

    def _trim_skeletons(self) -> None:
        """Keep unused memory, for layers that come back, up to the size of what is held."""
        allowance = sum(layer.nbytes for layer in self.layers.values())
        for index in list(self.skeletons):
            if sum(layer.flat.nbytes for layer in self.skeletons.values()) <= allowance:
                return
            del self.skeletons[index]
