"""Which of several operators drives a job: the first that claims it, as long as its lease lives.

Two operators do no harm to plans, which are published by compare-and-swap; but both would ask for
pods and overwrite each other's status. A claim is kept by a lease of the board, so it passes on
within seconds when its operator dies, and at once when it ends in peace.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time

from parcae_api.board import JobBoard
from parcae_api.errors import BoardError
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.leader import Leader

_log = logging.getLogger(__name__)

LEASE_S = 5.0


class Claim:
    """One operator's, for all its jobs. Thread-safe.

    Args:
        client: Of the board.
        name: Of this operator, for people: its pod.
    """

    def __init__(self, client: EtcdClient, name: str) -> None:
        self._client = client
        self.leader = Leader(
            identity=f"{name}-{secrets.token_hex(4)}", since_unix_s=round(time.time(), 3)
        )
        self._lock = threading.Lock()
        self._lease: Lease | None = None

    @property
    def board_is_away(self) -> bool:
        """Whether the board has not answered for so long that it may have given this claim up."""
        lease = self._lease  # one that is lost was lost by the board's own word
        return lease is not None and not lease.lost.is_set() and lease.remaining_s < 0

    def holds(self, board: JobBoard, seen: Leader | None) -> bool:
        """Whether this operator drives the job; takes it over when nobody does.

        Args:
            board: The job's.
            seen: Who drives it, as last seen on the board.
        """
        if seen is not None:
            # While the board is away another operator may have got it, and nobody could tell us.
            return seen == self.leader and self._is_sure
        try:
            if not board.lead(self.leader, self._living_lease()):
                return False
        except BoardError as error:
            _log.info("%s is not claimed yet: %s", board.prefix, error)
            return False
        _log.info("this operator (%s) drives %s", self.leader.identity, board.prefix)
        return True

    def give_up(self) -> None:
        """Let others take over at once. For the end of the program."""
        with self._lock:
            if self._lease is not None:
                try:
                    self._lease.revoke()
                except BoardError as error:
                    _log.info("the claim ends by itself in %g s: %s", LEASE_S, error)
                self._lease = None

    @property
    def _is_sure(self) -> bool:
        lease = self._lease
        return lease is not None and not lease.lost.is_set() and lease.remaining_s >= 0

    def _living_lease(self) -> Lease:
        with self._lock:
            if self._lease is None or self._lease.lost.is_set():
                self._lease = self._client.lease(LEASE_S)
            return self._lease
