"""What the grid's first worker says of the newest checkpoint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from parcae_agent.reporter import Reporter
from parcae_agent.saver import Complete
from parcae_api.progress import Progress


def said(cell: tuple[int, int], newest: Complete | None) -> list[Progress]:
    """Progress of an epoch that forms at step 5."""
    messages: list[Any] = []
    formed: Any = SimpleNamespace(
        cell=cell,
        plan=SimpleNamespace(revision=3),
        agreement=SimpleNamespace(first=True, rolled_back_from=None),
    )
    survey: Any = SimpleNamespace(profile=SimpleNamespace(global_batch_samples=8))
    link: Any = SimpleNamespace(send=messages.append)
    Reporter(link, survey, formed, lambda: newest).formed(5)
    return [message.progress for message in messages]


def test_progress_names_the_newest_checkpoint() -> None:
    (progress,) = said((0, 0), Complete(4, 1000.5))
    assert (progress.step, progress.samples) == (5, 40)
    assert (progress.checkpoint_step, progress.checkpoint_unix_s) == (4, 1000.5)


def test_there_may_be_none() -> None:
    (progress,) = said((0, 0), None)
    assert progress.checkpoint_step is progress.checkpoint_unix_s is None


def test_only_the_first_worker_speaks() -> None:
    assert said((1, 0), Complete(4, 1000.5)) == []


def test_an_older_workers_progress_is_read() -> None:
    assert Progress.read(b'{"revision":1,"step":2,"samples":3}').checkpoint_unix_s is None
