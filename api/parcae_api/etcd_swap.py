"""Compare-and-swap whose answer may get lost, applied once at most.

The comparison is on the revision of the key's last write, and revisions are never used twice. So
of any number of equal requests at most one is carried out, and sending again is safe, except for a
creation (the key may have been created by us, then deleted by another). When an answer was lost and
the comparison then fails, the key's history tells whether the write that made it fail was ours.
"""

from __future__ import annotations

from parcae_api import etcd_calls
from parcae_api.errors import BoardError, Indeterminate
from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_retry import Tries
from parcae_api.etcd_session import Session
from parcae_api.etcd_types import Versioned


class Swap:
    """One compare-and-swap.

    Args:
        session: Where.
        key: Of what.
        expected_mod_revision: Of the key's last write; 0: the key must not exist.
        value: To write. Must differ from what competing writers write.
        lease_id: The lease it shall live by; 0 for none.
    """

    def __init__(
        self, session: Session, key: str, expected_mod_revision: int, value: bytes, lease_id: int
    ) -> None:
        self._session = session
        self._key = key
        self._expected = expected_mod_revision
        self._value = value
        self._lease_id = lease_id
        self._answer_lost = False

    def run(self, patience_s: float) -> int | None:
        """The new revision, or None when the key is not as expected.

        Raises:
            Indeterminate: an answer was lost, and within ``patience_s`` seconds it could not be
                found out whether the value was written.
            BoardUnavailable: no answer within ``patience_s`` seconds; nothing was written.
            BoardRefused: the server refused; nothing was written.
        """
        tries = self._session.tries(patience_s)
        while True:
            try:
                return self._try(tries)
            except Fault as fault:
                self._answer_lost |= fault.may_have_happened
                try:
                    self._session.check_open()
                    tries.failed(fault)
                except BoardError as error:
                    if self._answer_lost:
                        raise self._indeterminate() from error
                    raise

    def _try(self, tries: Tries) -> int | None:
        if self._answer_lost and self._expected == 0:
            return self._look_back(tries)
        call = etcd_calls.swap(self._key, self._expected, self._value, self._lease_id)
        swapped = self._session.attempt(call, tries.time_for_one_s())
        if swapped.succeeded:
            return swapped.revision
        return self._look_back(tries) if self._answer_lost else None

    def _look_back(self, tries: Tries) -> int | None:
        """Find our write among those since the expected one, newest first."""
        found = self._read(tries, revision=0)
        if found is None:  # never written, or deleted since: the history does not tell
            raise self._indeterminate()
        while found is not None and found.mod_revision > self._expected:
            if (found.value, found.lease_id) == (self._value, self._lease_id):
                return found.mod_revision
            try:
                found = self._read(tries, revision=found.mod_revision - 1)
            except Fault as fault:
                if fault.kind is FaultKind.COMPACTED:
                    raise self._indeterminate() from fault
                raise
        return None

    def _read(self, tries: Tries, revision: int) -> Versioned | None:
        call = etcd_calls.get(self._key, revision)
        return self._session.attempt(call, tries.time_for_one_s())

    def _indeterminate(self) -> Indeterminate:
        return Indeterminate(
            f"{self._key}: the answer to a write was lost; whether it took place is not known"
        )
