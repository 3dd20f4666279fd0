"""Watch: every change under a prefix, in order, once, whatever happens to server or connection.

It starts from a consistent reading of the whole prefix and follows from the next revision on.
When the stream breaks it resumes behind the last revision it delivered. When the server no longer
has the changes since then (compacted), or itself is older than what was delivered (restored from a
backup), everything is read anew and delivered as a ``Reset``. Signs of life that the server gives
in between never move the place to resume at: servers before 3.5.8 may send them ahead of changes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing

from parcae_api import etcd_calls
from parcae_api.etcd_calls import WatchReply
from parcae_api.etcd_fault import Fault, FaultKind, Stopped
from parcae_api.etcd_retry import Tries
from parcae_api.etcd_session import Session
from parcae_api.etcd_stop import Stop
from parcae_api.etcd_types import Change, Reset, Snapshot

_log = logging.getLogger(__name__)

_JOIN_S = 5.0
_FOREVER_S = float("inf")


class Watch:
    """A running watch. Made by ``EtcdClient.watch``, which tells the arguments.

    All callbacks come from the watch's own thread, one at a time.
    """

    def __init__(
        self,
        session: Session,
        prefix: str,
        on_change: Callable[[Change], None],
        on_reset: Callable[[Reset], None] | None,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._session = session
        self._prefix = prefix
        self._on_change = on_change
        self._on_reset = on_reset
        self._on_error = on_error
        self._stop = Stop()
        self._revision = 0
        self._known: dict[str, int] = {}
        """Revision of the last write of each key that was delivered and not deleted since."""
        self._thread = threading.Thread(target=self._run, name=f"board-watch-{prefix}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it was neither closed nor ended by an error."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it. No callback starts after this; one that runs is waited for, some seconds."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        try:
            self._read_everything()
            self._follow_forever()
        except Stopped:
            return
        except Exception as error:
            if self._stop.is_set:
                return
            _log.warning("the watch of %s ends: %s", self._prefix, error)
            try:
                self._on_error(error)
            except Exception:
                _log.exception("the error callback of the watch of %s failed", self._prefix)

    def _follow_forever(self) -> None:
        tries = self._session.tries(_FOREVER_S, self._stop)
        while True:
            try:
                self._follow(tries)
            except Fault as fault:
                if fault.kind is FaultKind.COMPACTED:
                    _log.warning("etcd dropped changes of %s: reading it anew", self._prefix)
                    self._read_everything()
                else:
                    _log.info("the watch of %s was interrupted: %s", self._prefix, fault)
                    self._session.check_open()
                    tries.failed(fault)
                    self._find_server()

    def _follow(self, tries: Tries) -> None:
        call = etcd_calls.watch(self._prefix, self._revision + 1)
        with closing(self._session.follow(call, self._session.timeout_s, self._stop)) as replies:
            for reply in replies:
                tries.succeeded()
                self._deliver(reply)

    def _find_server(self) -> None:
        """Wait for a server that answers, and see that it has what was delivered."""
        call = etcd_calls.current_revision(self._prefix)
        revision = self._session.call(call, _FOREVER_S, self._stop)
        if revision < self._revision:
            _log.warning(
                "etcd is at revision %d, behind %d that it showed: reading %s anew",
                revision,
                self._revision,
                self._prefix,
            )
            self._read_everything()

    def _deliver(self, reply: WatchReply) -> None:
        for change in reply.changes:
            self._note(change)
            self._hand_out(change)
        if reply.changes:
            self._revision = reply.changes[-1].revision

    def _read_everything(self) -> None:
        call = etcd_calls.list_(self._prefix)
        snapshot = self._session.call(call, _FOREVER_S, self._stop)
        reset = Reset(snapshot, self._changes_to(snapshot))
        self._known = {key: item.mod_revision for key, item in snapshot.items.items()}
        self._revision = snapshot.revision
        if self._stop.is_set:
            raise Stopped
        if self._on_reset is not None:
            self._on_reset(reset)
        else:
            for change in reset.changes:
                self._hand_out(change)

    def _changes_to(self, snapshot: Snapshot) -> tuple[Change, ...]:
        gone = [Change(k, None, snapshot.revision) for k in self._known if k not in snapshot.items]
        written = [
            Change(key, item, item.mod_revision)
            for key, item in snapshot.items.items()
            if self._known.get(key) != item.mod_revision
        ]
        return (*gone, *sorted(written, key=lambda change: change.revision))

    def _note(self, change: Change) -> None:
        if change.item is None:
            self._known.pop(change.key, None)
        else:
            self._known[change.key] = change.item.mod_revision

    def _hand_out(self, change: Change) -> None:
        if self._stop.is_set:
            raise Stopped
        self._on_change(change)
