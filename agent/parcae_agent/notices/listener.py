"""Listening to the metadata service of whichever cloud this is, on a thread of its own.

Where nobody answers, or not to us, it is quiet, says so once, and asks again now and then.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from parcae_agent.notices.cloud import Cloud, Question
from parcae_agent.notices.settings import Listen, NoticeSettings
from parcae_agent.notices.signs import Heard, Hearing

if TYPE_CHECKING:
    from parcae_agent.notices.asking import Metadata

_log = logging.getLogger(__name__)
_LONGEST_PROBE_S = 3600.0
_LONGEST_RETRY_S = 10.0
"""Between questions to a service that fails: a notice of thirty seconds must still be heard."""
_LOST_AFTER_S = 60.0
"""A service that has failed for so long is looked for anew."""
_JITTER = 0.2


class _Lost(Exception):
    """The service answers no more."""


class SpotListener:
    """Tells what the cloud says of this instance."""

    def __init__(
        self,
        settings: NoticeSettings,
        on_heard: Callable[[Heard], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``on_heard`` is called from the listener's thread, whenever something new is heard."""
        self._settings = settings
        self._on_heard = on_heard
        self._clock = clock
        self._hearing = Hearing()
        self._told = Heard()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._silence_told = False
        self._thread = threading.Thread(target=self._run, name="parcae-notices", daemon=True)

    def start(self) -> None:
        """Begin, unless it is switched off. Returns at once."""
        if self._settings.listen is not Listen.OFF:
            self._thread.start()

    def close(self) -> None:
        """End at once; nothing is heard after this."""
        with self._lock:
            self._closed = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except Exception:  # training goes on; the cluster's own signals remain
            _log.exception("listening to the cloud's metadata has ended")

    async def _main(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        # Here and not above: an agent is on the board before this is loaded.
        from parcae_agent.notices.asking import Metadata

        metadata = Metadata(self._settings)
        try:
            await self._look_and_listen(metadata)
        finally:
            with self._lock:
                self._loop = None
            await metadata.close()

    async def _look_and_listen(self, metadata: Metadata) -> None:
        wait_s = self._settings.probe_again_s
        while True:
            cloud = await _find(metadata, self._settings)
            if cloud is not None:
                _log.info("listening to the metadata of %s at %s", cloud.name, self._settings.url)
                wait_s = self._settings.probe_again_s
                self._silence_told = False
                await self._listen(cloud)
            if not self._silence_told:
                _log.info(
                    "no metadata service answers at %s: notices come from the cluster alone",
                    self._settings.url,
                )
                self._silence_told = True
            await asyncio.sleep(_jittered(wait_s))
            wait_s = min(2 * wait_s, _LONGEST_PROBE_S)

    async def _listen(self, cloud: Cloud) -> None:
        """Until the service is lost."""
        try:
            async with asyncio.TaskGroup() as group:
                for question in cloud.questions():
                    group.create_task(self._keep_asking(question))
        except* _Lost as lost:
            _log.info("the metadata of %s is lost: %s", cloud.name, lost.exceptions[0])

    async def _keep_asking(self, question: Question) -> None:
        from parcae_agent.notices.asking import Busy, Denied, Unanswered

        failing_since_s: float | None = None
        retry_s = question.every_s
        while True:
            asked_s = time.monotonic()
            try:
                signs = await question.ask()
                failing_since_s, retry_s = None, question.every_s
                self._take(self._hearing.take(question.name, signs, self._clock()))
                wait_s = asked_s + question.every_s - time.monotonic()
            except Denied as error:
                if question.decides:
                    raise _Lost(f"{question.name}: {error}") from error
                _log.debug("%s is not answered here: %s", question.name, error)
                return
            except Busy as error:  # it is there, and says when to come again
                failing_since_s, wait_s = None, max(error.wait_s, question.every_s)
            except Unanswered as error:
                _log.debug("%s: %s", question.name, error)
                failing_since_s = asked_s if failing_since_s is None else failing_since_s
                if question.decides and time.monotonic() - failing_since_s >= _LOST_AFTER_S:
                    raise _Lost(f"{question.name}: {error}") from error
                retry_s = min(2 * retry_s, max(_LONGEST_RETRY_S, question.every_s))
                wait_s = retry_s
            await asyncio.sleep(_jittered(max(0.0, wait_s)))

    def _take(self, heard: Heard) -> None:
        if heard != self._told:
            self._told = heard
            self._on_heard(heard)


async def _find(metadata: Metadata, settings: NoticeSettings) -> Cloud | None:
    """The cloud whose service answers, if any. They share one address, so one answers at most."""
    from parcae_agent.notices.aws import Aws
    from parcae_agent.notices.azure import Azure
    from parcae_agent.notices.gce import Gce

    clouds: list[Cloud] = [make(metadata, settings) for make in (Aws, Gce, Azure)]
    if settings.listen is not Listen.AUTO:
        clouds = [cloud for cloud in clouds if cloud.name == settings.listen]
    here = await asyncio.gather(*(cloud.is_here() for cloud in clouds))
    return next((cloud for cloud, is_here in zip(clouds, here, strict=True) if is_here), None)


def _jittered(seconds: float) -> float:
    """Many agents start together; they shall not ask together for ever."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)
