"""Durable copies of the state: read only when no living worker holds a layer any more.

A checkpoint is a folder ``step-<steps>`` with one safetensors file per layer, each written under
another name and renamed when it is whole. It is complete when all layers are there: there is no
manifest that could be written before them or never. The initial state needs no checkpoint,
since every layer can be built again from its seed.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from parcae_agent.layer_state import LayerState
from parcae_api.errors import InputError

States = Mapping[int, Tensor]
"""Flat buffers on the CPU, by layer index."""
_STEP = re.compile(r"step-(\d+)")
_ATTEMPTS = 5


def layer_file(folder: Path, step: int, layer: int) -> Path:
    """Where one layer of one checkpoint lies."""
    return folder / f"step-{step:09d}" / f"layer-{layer:05d}.safetensors"


def complete_steps(folder: Path, num_layers: int) -> tuple[int, ...]:
    """Steps whose checkpoints have every layer, rising. A missing folder has none."""
    found = []
    for path in folder.glob("step-*"):
        match = _STEP.fullmatch(path.name)
        if match is None:
            continue
        step = int(match[1])
        if all(layer_file(folder, step, k).exists() for k in range(num_layers)):
            found.append(step)
    return tuple(sorted(found))


def completed_unix_s(folder: Path, step: int, num_layers: int) -> float:
    """When a complete checkpoint got its last layer.

    Raises:
        OSError: it is not there any more.
    """
    return max(layer_file(folder, step, k).stat().st_mtime for k in range(num_layers))


def snapshot(layers: Sequence[LayerState]) -> States:
    """Copies on the CPU, so that training can go on while they are written."""
    return {layer.index: layer.flat.detach().to("cpu", copy=True) for layer in layers}


def write(folder: Path, step: int, states: States) -> None:
    """Write some layers of a checkpoint.

    Raises:
        OSError: the disk is full or gone. What was there before stays as it was.
    """
    for layer, flat in states.items():
        path = layer_file(folder, step, layer)
        if path.exists():
            continue  # the state after a given step is always the same
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                _write_file(path, save({"state": flat.contiguous()}))
                break
            except FileNotFoundError:
                # Another worker, that knows newer checkpoints, has just pruned this folder.
                if not attempts_left:
                    raise


def _write_file(path: Path, raw: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())  # or a lost host leaves an empty file of the final name
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def prune(folder: Path, num_layers: int, *, keep: int = 2) -> None:
    """Delete what is older than the newest ``keep`` complete checkpoints, once there are as many.

    Workers are never all at the same step: one that was cut off may still finish a newer
    checkpoint than the others are writing, and must not take theirs away.
    """
    steps = complete_steps(folder, num_layers)[-keep:]
    if len(steps) < keep:
        return
    for path in folder.glob("step-*"):
        match = _STEP.fullmatch(path.name)
        if match is not None and int(match[1]) < steps[0]:
            shutil.rmtree(path, ignore_errors=True)


def restore(folder: Path, step: int, layer: LayerState) -> None:
    """Fill a layer's state from a checkpoint.

    Raises:
        InputError: the file is damaged, or does not fit the layer: the user's code has changed.
        OSError: it cannot be read.
    """
    path = layer_file(folder, step, layer.index)
    try:
        saved = load_file(path)["state"]
    except (SafetensorError, KeyError) as error:
        raise InputError(
            f"checkpoint {path}: is damaged ({error}); delete {path.parent} so that an older one "
            "is used"
        ) from error
    layer.allocate()
    if saved.shape != layer.flat.shape or saved.dtype != layer.flat.dtype:
        raise InputError(
            f"checkpoint {path}: holds {tuple(saved.shape)} {saved.dtype}, the layer needs "
            f"{tuple(layer.flat.shape)} {layer.flat.dtype}; the code has changed since, so start "
            "with an empty checkpoint folder"
        )
    with torch.no_grad():
        layer.flat.copy_(saved)
    layer.attach()


def digests(states: Sequence[Tensor]) -> tuple[str, str]:
    """SHA-256 of all parameters, and of all parameters and optimizer state.

    Args:
        states: The flat buffers [rows, elements] of all layers, in order.
    """
    model, state = hashlib.sha256(), hashlib.sha256()
    for flat in states:
        raw = flat.detach().cpu().contiguous()
        model.update(_bytes(raw[0]))
        state.update(_bytes(raw))
    return model.hexdigest(), state.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    array: Any = tensor.contiguous().view(torch.uint8).numpy()
    return memoryview(array).cast("B")
