"""What the listener wants of a cloud."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from parcae_agent.notices.signs import Sign


@dataclass(frozen=True)
class Question:
    """Something to ask again and again."""

    name: str
    ask: Callable[[], Awaitable[tuple[Sign, ...]]]
    """All that the service says to it now. Raises ``Unanswered`` or ``Denied``."""
    every_s: float
    decides: bool = False
    """Without an answer to it there is nothing to listen to."""


class Cloud(Protocol):
    """One cloud's metadata service."""

    name: str

    async def is_here(self) -> bool:
        """Whether it is this cloud that answers. Never raises for what a service may say."""
        ...

    def questions(self) -> tuple[Question, ...]:
        """What to ask, once it is here."""
        ...
