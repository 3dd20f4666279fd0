"""What a foreign file lacks of a trace: its capacity, and where it comes from."""

from __future__ import annotations

from dataclasses import replace

from parcae_traces.formats.text import Text
from parcae_traces.model import DEFAULT_NOTICE_S, Life, Trace


def recorded(
    text: Text,
    format_name: str,
    lives: tuple[Life, ...],
    duration_s: float,
    notice_s: float = DEFAULT_NOTICE_S,
) -> Trace:
    """A trace named after its file, whose capacity is the most instances at once."""
    draft = Trace(
        name=text.name,
        source=text.source(format_name),
        duration_s=duration_s,
        capacity=max(1, len(lives)),
        lives=lives,
        notice_s=notice_s,
    )
    return replace(draft, capacity=max(1, draft.peak()))
