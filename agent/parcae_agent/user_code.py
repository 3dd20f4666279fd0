"""The border around the user's code: what it raises is its own failure, never a lost peer.

A collective that fails and a layer that fails both surface as exceptions from the same schedule.
Only the second ends the job, so everything of the user's runs inside ``user_code``.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from parcae_api.errors import InputError, TrainingFailed


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
    except Exception as error:
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
    """Format the traceback from the first frame that is not this package's own."""
    frames = traceback.extract_tb(error.__traceback__)
    own = __file__.rpartition("/")[0]
    skipped = next((i for i, f in enumerate(frames) if not f.filename.startswith(own)), 0)
    lines = traceback.format_list(frames[skipped:])
    only = traceback.format_exception_only(error)
    return "".join(["Traceback (most recent call last):\n", *lines, *only])
