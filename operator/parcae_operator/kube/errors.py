"""What calls to the API server raise, as a tree.

::

    ParcaeError
    └── ClusterError
        ├── ClusterUnavailable   no answer in time, or one that says: try again (429, 5xx)
        └── ClusterRefused       an answer that will be the same next time
            ├── NotFound         404
            ├── Conflict         409: another object of that name, or another than the one meant
            └── Forbidden        401, 403
"""

from __future__ import annotations

from parcae_api.errors import ParcaeError


class ClusterError(ParcaeError):
    """Root of what the API server's client raises."""


class ClusterUnavailable(ClusterError):
    """No answer, or one that asks to come again.

    Attributes:
        retry_after_s: What the server asked for, in seconds, or None.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ClusterRefused(ClusterError):
    """The server answered, and will not. The message is the server's."""


class NotFound(ClusterRefused):
    """There is no such object."""


class Conflict(ClusterRefused):
    """It exists already, or is another object than the one meant."""


class Forbidden(ClusterRefused):
    """The operator's account may not do that: its role lacks a rule."""
