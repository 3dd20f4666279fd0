"""A listener whose reports can be waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from metadata_servers import MetadataServer

from parcae_agent.notices.listener import SpotListener
from parcae_agent.notices.settings import NoticeSettings
from parcae_agent.notices.signs import Heard
from parcae_api.membership import Hint, Notice

WAIT_S = 20.0


class Ear:
    """A listener, and all that it has told."""

    def __init__(self, url: str, **options: Any) -> None:
        settings = {"poll_s": 0.02, "slow_poll_s": 0.02, "timeout_s": 1.0, "probe_again_s": 0.05}
        self.told: list[Heard] = []
        self._changed = threading.Condition()
        self.listener = SpotListener(
            NoticeSettings(**{**settings, "url": url, **options}), self._hear
        )
        self.listener.start()

    def await_told(self, condition: Callable[[Heard], bool]) -> Heard:
        """The newest report, once it is so."""
        with self._changed:
            happened = self._changed.wait_for(
                lambda: bool(self.told) and condition(self.told[-1]), WAIT_S
            )
            assert happened, f"not told: {self.told}"
            return self.told[-1]

    def await_notice(self) -> Notice:
        notice = self.await_told(lambda heard: heard.notice is not None).notice
        assert notice is not None
        return notice

    def await_hint(self) -> Hint:
        hint = self.await_told(lambda heard: heard.hint is not None).hint
        assert hint is not None
        return hint

    def close(self) -> None:
        self.listener.close()

    def _hear(self, heard: Heard) -> None:
        with self._changed:
            self.told.append(heard)
            self._changed.notify_all()


DECIDES = {"aws": "instance-action", "gce": "preempted", "azure": "scheduledevents"}
"""What tells of each cloud's notice."""


def await_listening(server: MetadataServer, cloud: str) -> None:
    """Until the service is asked again and again, or holds its answers back."""
    text, times = ("last_etag", 2) if cloud == "gce" else (DECIDES[cloud], 3)
    wait_for(lambda: server.count(text) >= times, "it listens")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """For what happens in a server's thread, which tells nobody."""
    happened = threading.Event()
    for _ in range(int(WAIT_S / 0.005)):
        if condition():
            return
        happened.wait(0.005)
    raise AssertionError(f"never happened: {what}")


MakeEar = Callable[..., Ear]
"""At an address; options as for ``NoticeSettings``."""
MakeServer = Callable[[str], MetadataServer]
