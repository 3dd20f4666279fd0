"""The border around the user's code: what it raises is its own failure, never a lost peer.

A collective that fails and a layer that fails both surface as exceptions from the same schedule.
Only the second ends the job, so everything of the user's runs inside ``user_code``.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from parcae_api.errors import InputError, TrainingFailed

_OURS = os.path.dirname(__file__) + os.sep
_LEADING = (os.path.dirname(torch.__file__), os.path.dirname(importlib.__file__), "<")


class UserCodeFailed(TrainingFailed):
    """The user's code raised. Carries the traceback without our own frames."""

    def __init__(self, where: str, error: BaseException) -> None:
        kind = type(error).__name__
        detail = str(error).strip() or kind
        super().__init__(f"{where} raised {kind}: {detail}")
        self.where = where
        self.details = _users_traceback(error)


@contextmanager
def user_code(where: str) -> Iterator[None]:
    """Turn whatever is raised inside into ``UserCodeFailed``; our own messages pass."""
    try:
        yield
    except (InputError, TrainingFailed):
        raise
    except (Exception, SystemExit) as error:
        raise UserCodeFailed(where, error) from error


def find_failure(error: BaseException | None) -> TrainingFailed | InputError | None:
    """The failure of the user's code in a chain of causes, if there is one.

    The pipeline schedule wraps what a stage raises; the cause is still in the chain.
    """
    while error is not None:
        if isinstance(error, TrainingFailed | InputError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _users_traceback(error: BaseException) -> str:
    """Format the traceback from the user's first frame on, causes included.

    What leads there is ours, torch's or the import system's. If no frame is the user's (a layer
    may be torch's own), it starts behind ours.
    """
    frames = traceback.extract_tb(error.__traceback__)
    starts = (
        next((i for i, frame in enumerate(frames) if not frame.filename.startswith(others)), None)
        for others in ((_OURS, *_LEADING), (_OURS,))
    )
    start = next((i for i in starts if i is not None), 0)
    report = traceback.TracebackException.from_exception(error)
    report.stack = traceback.StackSummary.from_list(frames[start:])
    return "".join(report.format())
