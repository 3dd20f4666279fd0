"""A log of joins and removals, checked row by row, becomes the lives of a trace."""

from __future__ import annotations

from collections.abc import Hashable

from parcae_traces.model import Life, ordered


class Roster:
    """Who is there now, and the lives so far. Feed it in order of time.

    Instances are known by any key of the log (a node's name, a number). A key that comes back
    after its removal is a new instance.
    """

    def __init__(self) -> None:
        self._present: dict[Hashable, Life] = {}
        self._ended: list[Life] = []
        self._numbers: set[int] = set()
        self._last_s = 0.0

    @property
    def last_s(self) -> float:
        """Time of the newest row, in seconds."""
        return self._last_s

    @property
    def present(self) -> tuple[Hashable, ...]:
        """Keys of the instances that are there, oldest first."""
        return tuple(self._present)

    def join(self, time_s: float, key: Hashable, instance: int | None = None) -> None:
        """An instance appears.

        Args:
            time_s: seconds from the start of the trace.
            key: how the log calls it.
            instance: its number in the trace; None takes the next free one.

        Raises:
            ValueError: it is there already, its number is taken, or time runs backwards.
        """
        self._advance(time_s)
        if (there := self._present.get(key)) is not None:
            raise ValueError(
                f"{key} is added, but it is there since {there.joined_s:g} s; remove this row, "
                "or remove the instance before"
            )
        number = len(self._numbers) + 1 if instance is None else instance
        if number in self._numbers:
            raise ValueError(f"{key} was there before; give whoever returns a new number")
        self._numbers.add(number)
        self._present[key] = Life(number, time_s)

    def remove(self, time_s: float, key: Hashable, notice_s: float | None = None) -> None:
        """An instance goes away, announced ``notice_s`` seconds before (None: unknown).

        Raises:
            ValueError: it is not there, it joined at this very time, or time runs backwards.
        """
        self._advance(time_s)
        if (life := self._present.get(key)) is None:
            raise ValueError(f"{key} is removed, but it is not there; add it before, or drop this")
        ended = Life(life.instance, life.joined_s, time_s, notice_s)
        del self._present[key]
        self._ended.append(ended)

    def lives(self) -> tuple[Life, ...]:
        """Everyone so far, ordered as a trace wants it."""
        return ordered([*self._ended, *self._present.values()])

    def _advance(self, time_s: float) -> None:
        if time_s < self._last_s:
            raise ValueError(
                f"time runs backwards, from {self._last_s:g} s to {time_s:g} s; sort the rows by "
                "time"
            )
        self._last_s = time_s
