"""Keys and values, compare-and-swap, and many threads at once."""

from __future__ import annotations

import os
import threading

import pytest

from parcae_api.errors import BoardUnavailable, InputError
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Tls


def test_a_value_is_read_as_written(client: EtcdClient) -> None:
    assert client.get("/a") is None
    first = client.put("/a", b"1")
    second = client.put("/a", b"\x00\xff")
    assert second > first
    found = client.get("/a")
    assert found is not None
    assert (found.value, found.mod_revision, found.lease_id) == (b"\x00\xff", second, 0)


def test_deleting_says_whether_there_was_a_key(client: EtcdClient) -> None:
    client.put("/a", b"1")
    assert client.delete("/a")
    assert not client.delete("/a")
    assert client.get("/a") is None


def test_a_prefix_is_listed_with_one_revision(client: EtcdClient) -> None:
    client.put("/job/b", b"2")
    client.put("/job/a", b"1")
    last = client.put("/jobs", b"another prefix")
    snapshot = client.list("/job/")
    assert {key: item.value for key, item in snapshot.items.items()} == {
        "/job/a": b"1",
        "/job/b": b"2",
    }
    assert snapshot.revision == last


def test_ranges_and_prefixes_are_deleted(client: EtcdClient) -> None:
    for name in ("a/1", "a/2", "a/3", "b/1"):
        client.put(name, b"")
    assert client.delete_range("a/1", "a/3") == 2
    assert list(client.list("a/").items) == ["a/3"]
    assert client.delete_prefix("a/") == 1
    assert list(client.list("b").items) == ["b/1"]


def test_a_swap_needs_the_expected_revision(client: EtcdClient) -> None:
    created = client.compare_and_swap("/plan", 0, b"1")
    assert created is not None
    assert client.compare_and_swap("/plan", 0, b"again") is None
    replaced = client.compare_and_swap("/plan", created, b"2")
    assert replaced is not None
    assert client.compare_and_swap("/plan", created, b"late") is None
    found = client.get("/plan")
    assert found is not None
    assert (found.value, found.mod_revision) == (b"2", replaced)


def test_no_update_is_lost_among_eight_threads(client: EtcdClient) -> None:
    client.put("/count", b"")
    num_threads, num_updates = 8, 10

    def add(name: int) -> None:
        for _ in range(num_updates):
            while True:
                found = client.get("/count")
                assert found is not None
                longer = found.value + b"%d" % name
                if client.compare_and_swap("/count", found.mod_revision, longer):
                    break

    threads = [threading.Thread(target=add, args=(i,)) for i in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = client.get("/count")
    assert found is not None
    assert sorted(found.value) == sorted(b"01234567" * num_updates)


def test_a_closed_client_says_so(client: EtcdClient) -> None:
    client.put("/a", b"1")
    client.close()
    with pytest.raises(BoardUnavailable, match="closed"):
        client.get("/a")
    with pytest.raises(BoardUnavailable, match="closed"):
        client.compare_and_swap("/a", 0, b"1")
    with pytest.raises(BoardUnavailable, match="closed"):
        client.lease(5)
    with pytest.raises(BoardUnavailable, match="closed"):
        client.watch("/", lambda _: None, on_error=lambda _: None)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the very thing tested
def test_a_client_from_before_a_fork_says_so(client: EtcdClient) -> None:
    client.put("/a", b"1")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            client.get("/a")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader, "rb") as answer:
        assert b"before a fork" in answer.read()


@pytest.mark.parametrize(
    ("endpoint", "tls", "message"),
    [
        ("localhost", None, "must have the form"),
        ("ftp://localhost:1", None, "must have the form"),
        ("http://localhost:port", None, "must have the form"),
        ("http://localhost:1", Tls(), "https"),
    ],
)
def test_a_wrong_endpoint_is_named(endpoint: str, tls: Tls | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EtcdClient([endpoint], tls=tls)


def test_no_endpoint_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one"):
        EtcdClient([])
