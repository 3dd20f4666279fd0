"""A layer's whole state in one flat buffer: the unit that moves.

Row 0 holds the parameters, one more row each optimizer state. Every parameter starts at a
multiple of 64 bytes, since matrix kernels may round differently on other alignments; the gaps
stay zero through any element-wise update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parcae_agent.optimizers import Optimizer
from parcae_agent.randomness import key, seeded
from parcae_agent.training import Layer, Training
from parcae_agent.user_code import user_code
from parcae_api.errors import InputError

_ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class Span:
    """Where one parameter lies in its layer's row."""

    name: str
    start: int
    numel: int
    shape: torch.Size
    decayed: bool

    @property
    def stop(self) -> int:
        """One past its last element."""
        return self.start + self.numel


class LayerState:
    """A layer's module, its parameters views of row 0 of ``flat``."""

    def __init__(
        self, index: int, module: nn.Module, optimizer: Optimizer, device: torch.device
    ) -> None:
        self.index = index
        self.module = module
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.dtype = _dtype(module, self.parameters)
        self.spans = _spans(module, optimizer, self.dtype)
        self.numel = _aligned(self.spans[-1].stop, self.dtype) if self.spans else 0
        self._segments = _segments(self.spans)
        self._device = device
        self.flat = torch.empty(0, dtype=self.dtype, device=device)
        self._num_rows = 1 + len(optimizer.states)

    @property
    def nbytes(self) -> int:
        """Parameters and optimizer state."""
        return self._num_rows * self.numel * self.dtype.itemsize

    def allocate(self) -> None:
        """Take memory for the state and touch it: writing into fresh pages is 3x slower."""
        if self.flat.numel() != self._num_rows * self.numel:
            self.flat = torch.zeros(
                (self._num_rows, self.numel), dtype=self.dtype, device=self._device
            )

    def initialize(self) -> None:
        """Start from the module's own initial parameters and zero optimizer state."""
        values = [p.detach().clone() for p in self.parameters]
        self.allocate()
        self.flat.zero_()
        self.attach()
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)

    def attach(self) -> None:
        """Make the module's parameters views of the buffer."""
        for parameter, span in zip(self.parameters, self.spans, strict=True):
            parameter.data = self.flat[0, span.start : span.stop].view(span.shape)
            parameter.grad = None

    def parameter_view(self, name: str) -> Tensor:
        """The vector of one parameter."""
        span = self.span(name)
        return self.flat[0, span.start : span.stop]

    def span(self, name: str) -> Span:
        """Where a parameter lies.

        Raises:
            InputError: there is none of that name.
        """
        for span in self.spans:
            if span.name == name:
                return span
        known = ", ".join(s.name for s in self.spans)
        raise InputError(f"Training.layers: no parameter {name!r} in the layer; it has {known}")

    def apply(self, optimizer: Optimizer, grad: Tensor, step: int) -> None:
        """One optimizer step; ``grad`` is a vector laid out like row 0, and is used up."""
        for start, stop, decayed in self._segments:
            rows = self.flat[:, start:stop]
            optimizer.update(
                rows[0],
                grad[start:stop],
                tuple(rows[1:]),
                step=step,
                decay=optimizer.weight_decay if decayed else 0.0,
            )

    def named_parameters(self) -> Mapping[str, Tensor]:
        """Parameters by name, with their shapes, on the CPU."""
        return {
            span.name: self.flat[0, span.start : span.stop].view(span.shape).cpu()
            for span in self.spans
        }


def build_layer(training: Training, index: int, seed: int, device: torch.device) -> LayerState:
    """Build a layer's module with its own seed; no state is allocated yet."""
    layer = training.layers[index]
    with user_code(f"build() of layer {layer.name!r}"), seeded(key("layer", seed, index), device):
        module = layer.build()
    if not isinstance(module, nn.Module):
        raise InputError(
            f"Training.layers: {layer.name!r} was built as {type(module).__name__}; "
            "build() must return a torch.nn.Module"
        )
    module.to(device)
    module.train()
    _adopt_ties(training, layer, module, seed, device)
    return LayerState(index, module, training.optimizer, device)


def _adopt_ties(
    training: Training, layer: Layer, module: nn.Module, seed: int, device: torch.device
) -> None:
    """Give tied parameters the initial values of the layer they are tied to."""
    for own, target in layer.ties.items():
        source_name, _, parameter = target.partition(".")
        source = build_layer(training, training.layer_index(source_name), seed, device)
        with torch.no_grad():
            module.get_parameter(own).copy_(source.module.get_parameter(parameter))


def _dtype(module: nn.Module, parameters: list[nn.Parameter]) -> torch.dtype:
    dtypes = {p.dtype for p in parameters}
    if len(dtypes) > 1:
        names = ", ".join(sorted(str(d) for d in dtypes))
        raise InputError(
            f"Training.layers: {type(module).__name__} mixes parameters of {names}; use one "
            "dtype, and torch.autocast in forward for mixed precision"
        )
    return dtypes.pop() if dtypes else torch.float32


def common_dtype(layers: Sequence[LayerState]) -> torch.dtype:
    """The dtype of all parameters of these layers; float32 where there is none."""
    return next((layer.dtype for layer in layers if layer.numel), torch.float32)


def _aligned(numel: int, dtype: torch.dtype) -> int:
    unit = _ALIGNMENT_BYTES // dtype.itemsize
    return math.ceil(numel / unit) * unit


def _spans(module: nn.Module, optimizer: Optimizer, dtype: torch.dtype) -> list[Span]:
    spans: list[Span] = []
    start = 0
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        decayed = optimizer.decays(name, parameter)
        spans.append(Span(name, start, parameter.numel(), parameter.shape, decayed))
        start = _aligned(start + parameter.numel(), dtype)
    return spans


def _segments(spans: list[Span]) -> list[tuple[int, int, bool]]:
    """Longest runs of spans that are decayed alike: (start, stop, decayed)."""
    segments: list[tuple[int, int, bool]] = []
    for span in spans:
        if segments and segments[-1][2] == span.decayed:
            segments[-1] = (segments[-1][0], span.stop, span.decayed)
        else:
            segments.append((span.start, span.stop, span.decayed))
    return segments
