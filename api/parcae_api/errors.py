"""Every error of ours, as a tree.

::

    ParcaeError
    ├── InputError            what the user gave cannot work; the message names field, value, remedy
    ├── TrainingFailed        the user's code failed, or its loss is not finite
    ├── PlannerUnavailable    the planner service did not answer, or not what it should
    └── BoardError
        ├── BoardUnavailable  no endpoint answered within the time allowed
        ├── Indeterminate     a write was sent and its answer lost: it may or may not have happened
        └── BoardRefused      the server answered and refused (authentication, permission, quota)
"""

from __future__ import annotations


class ParcaeError(Exception):
    """Root of every error this project raises on purpose."""


class InputError(ParcaeError):
    """What the user gave cannot work. One sentence: the field, its value, the remedy."""


class TrainingFailed(ParcaeError):
    """The user's code raised, or produced a loss that is not finite. Never retried."""


class PlannerUnavailable(ParcaeError):
    """The planner service did not answer in time, or its answer cannot be read."""


class BoardError(ParcaeError):
    """Root of what the board client raises."""


class BoardUnavailable(BoardError):
    """No endpoint answered within the time allowed.

    A compare-and-swap was not carried out; another write may still be, by a server that only
    stood still.
    """


class Indeterminate(BoardError):
    """A write that must not be repeated blindly was sent, and its answer was lost."""


class BoardRefused(BoardError):
    """The server answered, and refused: authentication, permission, or a full disk."""
