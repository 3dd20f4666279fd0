"""What a worker holds from epoch to epoch: layers, the step they are at, the kept gradient."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
    reached: int = 0
    """As ``applied``, but of before a rollback whose epoch has not formed yet."""
    attempting: bool = False
    """Step ``reached`` has begun."""
    commit_scale: float | None = None
    """Factor on the gradient of the last step, where this worker knows it."""
    agreed: Plan | None = None
    """The newest plan whose members this worker agreed with."""
    formed: Plan | None = None
    """The newest plan whose epoch this worker has seen formed."""
    last_commit_unix_s: float | None = None
    skeletons: dict[int, LayerState] = field(default_factory=dict)
    """Layers built earlier and not in use: their modules and memory are used again."""

    def record(self, worker: WorkerId, checkpoints: tuple[int, ...]) -> Record:
        """What this worker brings to a new epoch."""
        layout = self.formed.layout if self.formed else None
        return Record(
            worker=worker,
            applied=self.applied,
            layers=tuple(sorted(self.layers)),
            pending=self.pending.step if self.pending else None,
            agreed_revision=self.agreed.revision if self.agreed else 0,
            agreed_members=self.agreed.members if self.agreed else (),
            formed_revision=self.formed.revision if self.formed else 0,
            boundaries=layout.boundaries if layout else (),
            commit_scale=self.commit_scale,
            reached=self.reached,
            attempting=self.attempting,
            checkpoints=checkpoints,
            last_commit_unix_s=self.last_commit_unix_s,
        )

    def holding(self) -> Holding | None:
        """The longest run of layers held, for the board: a broken migration can leave gaps."""
        if not self.layers:
            return None
        revision = self.agreed.revision if self.agreed else 0
        run = max(_runs(sorted(self.layers)), key=len)
        return Holding(revision=revision, first=run.start, last=run.stop, step=self.applied)

    def commit(self, grads: Mapping[int, Tensor], scale: float, optimizer: Optimizer) -> None:
        """Apply one step to all layers."""
        for index, layer in self.layers.items():
            grad = grads[index]
            if scale != 1.0:
                grad.mul_(scale)
            layer.apply(optimizer, grad, self.applied)
        self.applied += 1
        self.reached = self.applied
        self.pending = None
        self.attempting = False
        self.commit_scale = scale
        self.last_commit_unix_s = time.time()

    def forget(self) -> None:
        """Drop all state; the built modules stay for when their layers come back."""
        self.skeletons.update(self.layers)
        self.layers = {}
        self.pending = None
        self.commit_scale = None

    def form(self, plan: Plan) -> None:
        """The epoch has formed: what was thrown away until now is reported with it."""
        self.formed = plan
        self.reached = self.applied
        self.attempting = False

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


def _runs(indices: Sequence[int]) -> list[range]:
    """Rising indices as runs of consecutive ones."""
    runs: list[range] = []
    for index in indices:
        if runs and runs[-1].stop == index:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs
