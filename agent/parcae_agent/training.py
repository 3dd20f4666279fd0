"""What a user writes: layers, loss, data, optimizer, batch sizes.

A model is a list of layers, each a factory of a module that maps one tensor to one tensor. That
list is all Parcae needs to cut the model into any number of stages, and to move a layer with
its optimizer state from one worker to another.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils.data import default_collate

from parcae_agent.data import Samples
from parcae_agent.optimizers import Optimizer
from parcae_api.errors import InputError
from parcae_api.job import Entrypoint


@dataclass(frozen=True)
class Layer:
    """One layer: the unit that is placed and moved.

    ``build`` makes the module; torch's random functions inside it draw from a seed of this
    layer's own. Randomness in ``forward`` (dropout) is keyed by step, micro-batch and layer.
    """

    name: str
    build: Callable[[], nn.Module]
    ties: Mapping[str, str] = field(default_factory=dict)
    """Parameters shared with an earlier layer: own name → ``layer.parameter``. Both layers keep
    a copy, start equal, and get the sum of both gradients, so the copies stay equal."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that decides what is computed; nothing that decides where.

    Raises:
        InputError: a size is not positive, ``micro_batch`` does not divide ``global_batch``, a
            layer's name is used twice, a tie points to no earlier layer, or something is of the
            wrong kind (an optimizer of torch's, say).
    """

    layers: Sequence[Layer]
    loss: Callable[[Tensor, Tensor], Tensor]
    """(output of the last layer, target) → mean over the samples of one micro-batch."""
    data: Samples
    optimizer: Optimizer
    global_batch: int
    """Samples of one step."""
    micro_batch: int
    """Samples that pass through the pipeline together."""
    steps: int
    clip_norm: float | None = None
    """Largest global norm of the gradient, None for no clipping."""
    collate: Callable[[list[Any]], Any] = default_collate

    def __post_init__(self) -> None:
        self._check_kinds()
        for name in ("global_batch", "micro_batch", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"Training.{name}: is {value!r}; give a positive whole number")
        if self.global_batch % self.micro_batch:
            raise InputError(
                f"Training.global_batch: {self.global_batch} is not a multiple of micro_batch "
                f"{self.micro_batch}; change one of them"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(f"Training.clip_norm: is {self.clip_norm!r}; give a positive number")
        if not self.layers:
            raise InputError("Training.layers: is empty; give at least one Layer")
        if len(self.data) < 1:
            raise InputError("Training.data: holds no sample; give at least one")
        self._check_names()

    def _check_kinds(self) -> None:
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise InputError(
                    f"Training.layers: holds {_kind(layer)}; wrap what builds it in a "
                    "parcae_agent.Layer"
                )
        if not isinstance(self.optimizer, Optimizer):
            raise InputError(
                f"Training.optimizer: is {_kind(self.optimizer)}; give one of parcae_agent's "
                "(AdamW, Adam, SGD) or your own subclass of its Optimizer"
            )
        if not callable(self.loss):
            raise InputError(
                f"Training.loss: is {_kind(self.loss)}; give a function of (output, target)"
            )
        if not (hasattr(self.data, "__len__") and hasattr(self.data, "__getitem__")):
            raise InputError(
                f"Training.data: is {_kind(self.data)}; give a data set with len() and [index]"
            )

    def _check_names(self) -> None:
        seen: set[str] = set()
        for layer in self.layers:
            if layer.name in seen:
                raise InputError(
                    f"Training.layers: the name {layer.name!r} is used twice; rename one"
                )
            for own, target in layer.ties.items():
                source = target.partition(".")[0]
                if source not in seen:
                    raise InputError(
                        f"Training.layers: {layer.name}.{own} is tied to {target!r}, which names "
                        "no earlier layer; write it as layer.parameter of a layer before it"
                    )
            seen.add(layer.name)

    @property
    def num_micro_batches(self) -> int:
        """Micro-batches of one step."""
        return self.global_batch // self.micro_batch

    def layer_index(self, name: str) -> int:
        """Position of a layer."""
        return next(i for i, layer in enumerate(self.layers) if layer.name == name)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def load_training(entrypoint: Entrypoint, *, search_path: str | None = None) -> Training:
    """Import the user's function, call it, and check what it returns.

    Args:
        entrypoint: ``module:function`` and its arguments.
        search_path: Folder put first on the import path, like a script's own.

    Raises:
        InputError: the module or function does not exist, its arguments do not fit, or it
            returns something else than a ``Training``.
        Exception: whatever the user's own code raises, unchanged.
    """
    if search_path is not None and search_path not in sys.path:
        sys.path.insert(0, search_path)
    where = f"spec.entrypoint.function: {entrypoint.function!r}"
    try:
        module = importlib.import_module(entrypoint.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{entrypoint.module}.".startswith(f"{error.name}."):
            raise  # an import inside the user's module failed: that traceback tells more
        raise InputError(
            f"{where}: there is no module {entrypoint.module!r} in {search_path or 'the image'}; "
            "correct the name, or put the file beside the manifest"
        ) from error
    function = getattr(module, entrypoint.attribute, None)
    if not callable(function):
        raise InputError(
            f"{where}: {entrypoint.module!r} has no function {entrypoint.attribute!r}; "
            "correct the name"
        )
    try:
        inspect.signature(function).bind(**entrypoint.args)
    except TypeError as error:
        raise InputError(
            f"spec.entrypoint.args: {entrypoint.attribute} does not take them: {error}"
        ) from error
    training = function(**entrypoint.args)
    if not isinstance(training, Training):
        raise InputError(
            f"{where}: returned {type(training).__name__}; return a parcae_agent.Training"
        )
    return training
