"""Writes whose request or answer is lost on the way: done once, or said to be indeterminate."""

from __future__ import annotations

import os
import signal

import pytest
from board_helpers import MakeClient, Proxy, wait_until

from parcae_api.errors import Indeterminate
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_session import Session
from parcae_api.etcd_types import Versioned
from parcae_cli.etcd_server import EtcdServer


@pytest.fixture
def witness(client: EtcdClient) -> EtcdClient:
    """A client that nothing happens to."""
    client.put("/warm", b"")
    return client


@pytest.fixture
def shaky(make_client: MakeClient, proxy: Proxy, witness: EtcdClient) -> EtcdClient:
    """A connected client behind the proxy."""
    client = make_client(proxy.endpoint, timeout_s=0.5, patience_s=4.0)
    client.get("/warm")
    return client


def _read(client: EtcdClient, key: str) -> Versioned:
    found = client.get(key)
    assert found is not None
    return found


def test_a_swap_whose_answer_is_lost_is_found_done(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient
) -> None:
    before = witness.put("/plan", b"1")
    proxy.lose_next_answer()
    revision = shaky.compare_and_swap("/plan", before, b"2")
    assert proxy.num_lost == 1
    assert _read(witness, "/plan") == Versioned(b"2", before + 1)
    assert revision == before + 1
    assert witness.put("/after", b"") == before + 2  # one write only


def test_a_swap_whose_request_is_lost_is_done_once(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient
) -> None:
    before = witness.put("/plan", b"1")
    proxy.lose_next_request()
    revision = shaky.compare_and_swap("/plan", before, b"2")
    assert proxy.num_lost == 1
    assert _read(witness, "/plan") == Versioned(b"2", before + 1)
    assert revision == before + 1


def test_a_creation_whose_answer_is_lost_is_found_done(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient
) -> None:
    proxy.lose_next_answer()
    revision = shaky.compare_and_swap("/new", 0, b"1")
    assert _read(witness, "/new") == Versioned(b"1", revision or 0)


def test_a_creation_whose_request_is_lost_is_indeterminate(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient
) -> None:
    """It may have been created, and deleted by another: doing it again could be the second time."""
    proxy.lose_next_request()
    with pytest.raises(Indeterminate, match="/new"):
        shaky.compare_and_swap("/new", 0, b"1")
    assert witness.get("/new") is None


def _interfere(monkeypatch: pytest.MonkeyPatch, action: object) -> None:
    """Run ``action`` between the lost answer and what follows it."""
    learn = Session._learn
    actions = [action]

    def learn_then_act(self: Session, *args: object) -> None:
        learn(self, *args)  # type: ignore[arg-type]
        if actions:
            actions.pop()()  # type: ignore[operator]

    monkeypatch.setattr(Session, "_learn", learn_then_act)


def test_a_lost_swap_is_found_below_later_writes(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = witness.put("/plan", b"1")

    def overwrite() -> None:
        wait_until(lambda: _read(witness, "/plan").mod_revision > before)
        witness.put("/plan", b"3")
        witness.put("/plan", b"4")

    _interfere(monkeypatch, overwrite)
    proxy.lose_next_answer()
    assert shaky.compare_and_swap("/plan", before, b"2") == before + 1
    assert _read(witness, "/plan").value == b"4"


def test_a_lost_swap_that_came_too_late_is_known_to_have_failed(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = witness.put("/plan", b"1")
    _interfere(monkeypatch, lambda: witness.put("/plan", b"3"))
    proxy.lose_next_request()
    assert shaky.compare_and_swap("/plan", before, b"2") is None
    assert _read(witness, "/plan").value == b"3"


def test_a_lost_creation_that_came_too_late_is_known_to_have_failed(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interfere(monkeypatch, lambda: witness.put("/new", b"3"))
    proxy.lose_next_request()
    assert shaky.compare_and_swap("/new", 0, b"2") is None


def test_a_lost_swap_of_a_key_deleted_since_is_indeterminate(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = witness.put("/plan", b"1")
    _interfere(monkeypatch, lambda: witness.delete("/plan"))
    proxy.lose_next_answer()
    with pytest.raises(Indeterminate, match="/plan"):
        shaky.compare_and_swap("/plan", before, b"2")


def test_a_lost_swap_with_its_history_gone_is_indeterminate(
    shaky: EtcdClient, proxy: Proxy, witness: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = witness.put("/plan", b"1")
    _interfere(monkeypatch, lambda: witness.compact(witness.put("/plan", b"3")))
    proxy.lose_next_request()
    with pytest.raises(Indeterminate):
        shaky.compare_and_swap("/plan", before, b"2")


def test_a_swap_at_a_server_that_stopped_for_good_is_indeterminate(
    server: EtcdServer, make_client: MakeClient, witness: EtcdClient
) -> None:
    before = witness.put("/plan", b"1")
    client = make_client(timeout_s=1.0, patience_s=2.5)
    client.get("/plan")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Indeterminate):
            client.compare_and_swap("/plan", before, b"2")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    # The stopped server may well have carried it out once it woke up, but never twice.
    assert _read(witness, "/plan").mod_revision in (before, before + 1)


@pytest.mark.parametrize("lose", [Proxy.lose_next_answer, Proxy.lose_next_request])
def test_puts_deletions_and_leases_are_repeated(
    shaky: EtcdClient,
    proxy: Proxy,
    witness: EtcdClient,
    lose: object,
) -> None:
    lose(proxy)  # type: ignore[operator]
    shaky.put("/a", b"1")
    assert _read(witness, "/a").value == b"1"
    lose(proxy)  # type: ignore[operator]
    lease = shaky.lease(5)
    shaky.put("/b", b"1", lease)
    lose(proxy)  # type: ignore[operator]
    lease.revoke()
    assert witness.get("/b") is None
    lose(proxy)  # type: ignore[operator]
    shaky.delete("/a")
    assert witness.get("/a") is None
    assert proxy.num_lost == 4
