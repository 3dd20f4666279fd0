"""Named points of a step and of a plan change: the seam where tests script failures.

In production the probe does nothing. The points, in order: ``step``, ``forward`` and
``backward`` (after each micro-batch), ``reduce``, ``reduced``, ``vote``, ``voted``, ``applied``;
and of a plan change ``form``, ``agreed``, ``transfer``, ``transferred``, ``formed``.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "step",
    "forward",
    "backward",
    "reduce",
    "reduced",
    "vote",
    "voted",
    "applied",
    "form",
    "agreed",
    "transfer",
    "transferred",
    "formed",
)


Probe = Callable[[str, int], None]
"""Called at every point with the step that is running or comes next. It returns at once, or does
what a test has scripted."""


def no_probe(point: str, step: int) -> None:
    """Do nothing: the production probe."""
