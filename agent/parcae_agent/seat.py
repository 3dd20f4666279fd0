"""An agent's place on the board: its membership, under a lease that is retaken when it is lost.

A lease is lost when the agent was silent for longer than the board forgives: it slept, or the
network was cut. The others have then gone on without it. Taking a new lease makes it a member
again, with whatever its worker still holds, which the next agreement finds to be stale.
"""

from __future__ import annotations

import logging
import threading
import time

from parcae_api.board import JobBoard
from parcae_api.errors import BoardError, BoardRefused
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.membership import Membership

_log = logging.getLogger(__name__)


class Seat:
    """Writes one membership. Called from the outbox's thread alone, but for ``leave``."""

    def __init__(self, client: EtcdClient, board: JobBoard, ttl_s: float) -> None:
        self._client = client
        self._board = board
        self._ttl_s = ttl_s
        self._lease: Lease | None = None
        self._taken_unix_s = 0.0
        self._lock = threading.Lock()
        self._left = False

    @property
    def is_lost(self) -> bool:
        """Whether the board has dropped this agent."""
        lease = self._lease
        return lease is not None and lease.lost.is_set()

    @property
    def is_taken(self) -> bool:
        """Whether it is on the board, as far as it knows."""
        lease = self._lease
        return lease is not None and not lease.lost.is_set()

    def write(self, membership: Membership) -> None:
        """Put the membership, taking a lease first where there is none.

        Raises:
            BoardError: the board is away; write it again.
        """
        with self._lock:
            if self._left:
                return
            lease = self._lease
            if lease is None or lease.lost.is_set():
                lease = self._take()
            try:
                self._put(membership, lease)
            except BoardRefused:
                if lease.remaining_s > 0:
                    raise
                # This process slept, and the lease is gone before its own thread has heard of it.
                lease.close()
                self._put(membership, self._take())

    def _take(self) -> Lease:
        self._lease = self._client.lease(self._ttl_s)
        self._taken_unix_s = time.time()
        return self._lease

    def _put(self, membership: Membership, lease: Lease) -> None:
        since = {"on_board_since_unix_s": self._taken_unix_s}
        self._board.put_agent(membership.model_copy(update=since), lease)

    def leave(self) -> None:
        """Drop the membership at once; the others need not wait for the lease to end.

        If the board is away, the lease ends by itself.
        """
        with self._lock:
            self._left = True
            if self._lease is None:
                return
            try:
                self._lease.revoke()
            except BoardError as error:
                _log.info("the lease ends by itself: %s", error)
