"""One user per job: made, limited to its prefix, and dismissed, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from board_helpers import MakeClient, Recorder, wait_until

from parcae_api.errors import BoardRefused
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Login
from parcae_cli.etcd_server import EtcdServer

ROOT = Login("root", "secret of root")
ONE, OTHER = Login("job/team/one/1", "secret of one"), Login("job/team/other/2", "another")


@pytest.fixture
def server(tmp_path: Path, _no_thread_is_left: None) -> Iterator[EtcdServer]:
    with EtcdServer(
        tmp_path / "etcd",
        tmp_path / "etcd.log",
        unsafe_no_fsync=True,
        arguments=["--bcrypt-cost=4"],
    ) as server:
        yield server
        server.kill()


@pytest.fixture
def root(make_client: MakeClient) -> EtcdClient:
    client = make_client(login=ROOT)
    client.users.protect(ROOT)
    client.users.admit(ONE, "/parcae/team/one/")
    client.users.admit(OTHER, "/parcae/team/other/")
    return client


def test_a_protected_board_answers_nobody_else(root: EtcdClient, make_client: MakeClient) -> None:
    root.put("/parcae/team/one/plan", b"1")
    with pytest.raises(BoardRefused, match="user name is empty"):
        make_client().get("/parcae/team/one/plan")
    with pytest.raises(BoardRefused, match="another password"):
        make_client(login=Login(ONE.user, OTHER.password)).get("/parcae/team/one/plan")


def test_what_a_client_wrote_before_it_was_protected_stays(make_client: MakeClient) -> None:
    client = make_client(login=ROOT)
    client.put("/parcae/a", b"1")
    recorder = Recorder()
    recorder.watch(client, "/parcae/")
    lease = client.lease(5)
    client.users.protect(ROOT)
    client.put("/parcae/b", b"2", lease)
    recorder.wait_for(b"2")
    assert list(client.list("/parcae/").items) == ["/parcae/a", "/parcae/b"]


def test_a_job_reads_and_writes_its_own_board(root: EtcdClient, make_client: MakeClient) -> None:
    client, recorder = make_client(login=ONE), Recorder()
    recorder.watch(client, "/parcae/team/one/")
    client.put("/parcae/team/one/agents/a", b"1", client.lease(5))
    assert client.compare_and_swap("/parcae/team/one/plan", 0, b"2") is not None
    recorder.wait_for(b"2")
    assert client.delete_prefix("/parcae/team/one/") == 2


def test_a_job_has_no_part_in_the_board_of_another(
    root: EtcdClient, make_client: MakeClient
) -> None:
    root.put("/parcae/team/other/plan", b"1")
    root.put("/parcae/team/one2/plan", b"1")
    client = make_client(login=ONE)
    for theirs in ("/parcae/team/other/plan", "/parcae/team/one2/plan", "/parcae/", "/"):
        for attempt in (
            lambda key=theirs: client.get(key),
            lambda key=theirs: client.list(key),
            lambda key=theirs: client.put(key, b"mine"),
            lambda key=theirs: client.delete(key),
            lambda key=theirs: client.delete_prefix(key),
            lambda key=theirs: client.compare_and_swap(key, 1, b"mine"),
        ):
            with pytest.raises(BoardRefused, match="permission denied"):
                attempt()
    recorder = Recorder()
    client.watch("/parcae/team/other/", recorder.changes.append, on_error=recorder.errors.append)
    wait_until(lambda: bool(recorder.errors))
    assert not recorder.changes
    value = root.get("/parcae/team/other/plan")
    assert value is not None
    assert value.value == b"1"


def test_a_job_makes_no_users(root: EtcdClient, make_client: MakeClient) -> None:
    client = make_client(login=ONE)
    with pytest.raises(BoardRefused, match="permission denied"):
        client.users.admit(ONE, "/")
    with pytest.raises(BoardRefused, match="permission denied"):
        client.users.dismiss(OTHER.user)
    with pytest.raises(BoardRefused, match="permission denied"):
        client.users.names()
    client.put("/parcae/team/one/plan", b"1")


def test_all_of_it_may_be_repeated(root: EtcdClient, make_client: MakeClient) -> None:
    client, recorder = make_client(login=ONE), Recorder()
    recorder.watch(client, "/parcae/team/one/")
    for _ in range(2):
        root.users.protect(ROOT)
        root.users.admit(ONE, "/parcae/team/one/")
    client.put("/parcae/team/one/plan", b"1")
    recorder.wait_for(b"1")
    assert set(root.users.names()) == {"root", ONE.user, OTHER.user}
    for _ in range(2):
        root.users.dismiss(OTHER.user)
    assert set(root.users.names()) == {"root", ONE.user}


def test_another_password_takes_the_place_of_the_old_one(
    root: EtcdClient, make_client: MakeClient
) -> None:
    old = make_client(login=ONE)
    old.put("/parcae/team/one/plan", b"1")
    new = Login(ONE.user, "newer")
    root.users.admit(new, "/parcae/team/one/")
    make_client(login=new).put("/parcae/team/one/plan", b"2")
    with pytest.raises(BoardRefused, match="another password"):
        old.put("/parcae/team/one/plan", b"3")


def test_a_dismissed_user_is_refused_at_once(root: EtcdClient, make_client: MakeClient) -> None:
    client = make_client(login=ONE)
    client.put("/parcae/team/one/plan", b"1")
    root.users.dismiss(ONE.user)
    with pytest.raises(BoardRefused):
        client.put("/parcae/team/one/plan", b"2")
