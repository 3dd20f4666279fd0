"""Traces for hypothesis to draw."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

from parcae_traces import Life, Trace
from parcae_traces.model import ordered

QUICK = settings(max_examples=40, deadline=None)
"""Enough examples for these small traces; no deadline, as the machine may be busy."""

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
SOURCES = st.text(min_size=1).map(lambda text: " ".join(text.split())).filter(bool)
NOTICES_S = st.none() | st.floats(0, 1e4)


@st.composite
def lives(draw: st.DrawFn, instance: int, times_s: st.SearchStrategy[float]) -> Life:
    joined_s, removed_s = draw(times_s), draw(st.none() | times_s)
    if removed_s is None or removed_s == joined_s:
        return Life(instance, joined_s)
    joined_s, removed_s = sorted((joined_s, removed_s))
    return Life(instance, joined_s, removed_s, draw(NOTICES_S))


@st.composite
def traces(draw: st.DrawFn, times_s: st.SearchStrategy[float] | None = None) -> Trace:
    """Up to 12 lives on a coarse grid, so that batches and reused slots are common."""
    if times_s is None:
        times_s = st.integers(0, 20).map(lambda step: step * 30.0)
    numbers = draw(st.lists(st.integers(0, 99), max_size=12, unique=True))
    drawn = ordered([draw(lives(number, times_s)) for number in numbers])
    last_s = max([life.removed_s or life.joined_s for life in drawn], default=0.0)
    draft = Trace(
        name=draw(NAMES),
        source=draw(SOURCES),
        duration_s=last_s + draw(st.floats(1, 100)),
        capacity=max(1, len(drawn)),
        lives=drawn,
        notice_s=draw(st.floats(0, 1e4)),
    )
    return replace(draft, capacity=max(1, draft.peak()) + draw(st.integers(0, 3)))
