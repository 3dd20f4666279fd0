"""Run the same job undisturbed, in one process, and compare bit for bit.

Runs in a process forked from the fork server: the command itself never loads torch.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from parcae_api.errors import ParcaeError
from parcae_api.job import JobSpec
from parcae_cli.local.agents import end_with_command, fork_context, start_lightly
from parcae_cli.local.summary import Digests, Verification

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Question:
    """What to verify."""

    spec: JobSpec
    search_path: str
    losses: tuple[float | None, ...]
    """The run's, step by step."""
    checkpoints: Path


def finalize(question: Question, model_file: Path) -> Digests | None:
    """Put the final state of the run together: write the model, return the digests.

    Returns None when the run's last step has no complete state on disk.

    Raises:
        ParcaeError: the model cannot be written.
    """
    result: Digests | None = _in_fork(_finalize, (question, model_file), _no_progress, _never)
    return result


def verify(
    question: Question, progress: Callable[[int, int], None], is_cancelled: Callable[[], bool]
) -> Verification | None:
    """Train undisturbed and compare; None when cancelled.

    Args:
        question: The run.
        progress: Told (steps done, steps in all) now and then.
        is_cancelled: Asked several times a second.

    Raises:
        ParcaeError: the undisturbed run fails.
    """
    result: Verification | None = _in_fork(_verify, (question,), progress, is_cancelled)
    return result


def _no_progress(done: int, total: int) -> None:
    """Nobody wants to know."""


def _never() -> bool:
    """Nobody cancels."""
    return False


def _in_fork(
    target: Callable[..., object],
    arguments: tuple[object, ...],
    progress: Callable[[int, int], None],
    is_cancelled: Callable[[], bool],
) -> Any:
    context = fork_context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_enter, args=(target, arguments, theirs), daemon=True)
    start_lightly(process)
    theirs.close()
    try:
        while True:
            if is_cancelled():
                return None
            if not ours.poll(_POLL_SECONDS):
                continue
            kind, payload = ours.recv()
            if kind == "result":
                return payload
            if kind == "error":
                raise ParcaeError(payload)
            progress(*payload)
    except EOFError:
        process.join()
        raise ParcaeError(f"the process ended with exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
        ours.close()


def _enter(
    target: Callable[..., object], arguments: tuple[object, ...], results: Connection
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the command
    end_with_command(os._exit, 1)
    try:
        results.send(("result", target(*arguments, lambda *p: results.send(("progress", p)))))
    except OSError as error:
        results.send(("error", f"{error.filename or 'a file'}: {error.strerror or error}"))
    except Exception as error:
        results.send(("error", f"{type(error).__name__}: {error}"))


def _finalize(
    question: Question, model_file: Path, progress: Callable[[int, int], None]
) -> Digests | None:
    from safetensors.torch import save_file

    from parcae_agent.checkpoint import complete_steps, digests, restore
    from parcae_agent.layer_state import build_layer

    training, device = _prepare(question)
    step = len(question.losses)
    if step not in complete_steps(question.checkpoints, len(training.layers)):
        return None
    layers = [
        build_layer(training, k, question.spec.seed, device) for k in range(len(training.layers))
    ]
    for layer in layers:
        restore(question.checkpoints, step, layer)
    tensors = {
        f"{training.layers[layer.index].name}.{name}": tensor.contiguous()
        for layer in layers
        for name, tensor in layer.named_parameters().items()
    }
    part = model_file.with_suffix(".part")
    save_file(tensors, part, metadata={"step": str(step)})
    part.replace(model_file)
    return Digests(*digests([layer.flat for layer in layers]))


def _verify(question: Question, progress: Callable[[int, int], None]) -> Verification:
    import torch
    from safetensors.torch import load_file

    from parcae_agent.checkpoint import complete_steps, layer_file
    from parcae_agent.reference import Reference

    started = time.monotonic()
    training, _ = _prepare(question)
    steps = len(question.losses)
    reference = Reference.start(training, question.spec.seed)
    differing, largest, loss = 0, 0.0, float("nan")
    told = started
    for step, loss in enumerate(reference.losses(steps)):
        other = question.losses[step]
        if other is not None and other != loss:
            differing += 1
            largest = max(largest, abs(other - loss))
        if time.monotonic() - told > 0.2:
            told = time.monotonic()
            progress(step + 1, steps)
    matches = steps in complete_steps(question.checkpoints, len(training.layers)) and all(
        torch.equal(
            load_file(layer_file(question.checkpoints, steps, layer.index))["state"], layer.flat
        )
        for layer in reference.layers
    )
    return Verification(
        bit_identical=matches and differing == 0,
        losses_differing=differing,
        max_loss_difference=largest,
        final_loss=loss,
        state_matches=matches,
        seconds=round(time.monotonic() - started, 2),
    )


def _prepare(question: Question):  # type: ignore[no-untyped-def]
    import torch

    from parcae_agent.training import load_training

    torch.set_num_threads(question.spec.threads_per_worker)
    training = load_training(question.spec.entrypoint, search_path=question.search_path)
    return training, torch.device("cpu")
