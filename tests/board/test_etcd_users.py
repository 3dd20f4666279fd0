"""Users and passwords: right, wrong, forbidden, and tokens that end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_helpers import MakeClient, Recorder, wait_until

from parcae_api.errors import BoardRefused
from parcae_api.etcd_types import Login
from parcae_cli.etcd_server import EtcdServer, find_etcd

ROOT = Login("root", "secret of root")
JOB = Login("job", "secret of job")


def _etcdctl(endpoint: str, *arguments: str) -> None:
    program = find_etcd().with_name("etcdctl")
    if not program.exists():
        pytest.skip("users are made with etcdctl, which this etcd came without")
    subprocess.run(
        [program, f"--endpoints={endpoint}", *arguments],
        check=True,
        capture_output=True,
        timeout=10,
    )


@pytest.fixture
def server(tmp_path: Path, _no_thread_is_left: None) -> Iterator[EtcdServer]:
    """One that knows two users, and forgets their tokens after a second."""
    with EtcdServer(
        tmp_path / "etcd",
        tmp_path / "etcd.log",
        unsafe_no_fsync=True,
        arguments=["--bcrypt-cost=4", "--auth-token-ttl=1"],
    ) as server:
        for arguments in (
            ("user", "add", f"root:{ROOT.password}"),
            ("user", "grant-role", "root", "root"),
            ("user", "add", f"job:{JOB.password}"),
            ("role", "add", "board"),
            ("role", "grant-permission", "--prefix=true", "board", "readwrite", "/parcae/"),
            ("user", "grant-role", "job", "board"),
            ("auth", "enable"),
        ):
            _etcdctl(server.endpoint, *arguments)
        yield server
        server.kill()


def test_a_user_reads_and_writes_where_that_is_allowed(make_client: MakeClient) -> None:
    client = make_client(login=JOB)
    client.put("/parcae/a", b"1")
    assert list(client.list("/parcae/").items) == ["/parcae/a"]
    with pytest.raises(BoardRefused, match="permission denied"):
        client.put("/elsewhere", b"1")
    with pytest.raises(BoardRefused, match="permission denied"):
        client.compare_and_swap("/elsewhere", 0, b"1")


def test_a_wrong_password_is_refused_at_once(make_client: MakeClient) -> None:
    started_s = time.monotonic()
    with pytest.raises(BoardRefused, match="another password"):
        make_client(login=Login("job", "guess")).get("/parcae/a")
    with pytest.raises(BoardRefused, match="user name is empty"):
        make_client().get("/parcae/a")
    assert time.monotonic() - started_s < 1.0


def test_a_password_stays_out_of_texts() -> None:
    assert "secret" not in repr(JOB)


def test_tokens_that_time_out_are_renewed(make_client: MakeClient) -> None:
    client = make_client(login=JOB)
    recorder = Recorder()
    recorder.watch(client, "/parcae/")
    client.put("/parcae/a", b"1")
    time.sleep(2.5)
    assert client.compare_and_swap("/parcae/b", 0, b"2") is not None
    recorder.wait_for(b"2")


def test_tokens_that_a_restarted_server_does_not_know_are_renewed(
    server: EtcdServer, make_client: MakeClient
) -> None:
    client = make_client(login=JOB)
    lease = client.lease(1)
    recorder = Recorder()
    recorder.watch(client, "/parcae/")
    client.put("/parcae/agent", b"1", lease)
    recorder.wait_for(b"1")
    server.kill()
    server.restart()
    client.put("/parcae/a", b"2")
    recorder.wait_for(b"2")
    time.sleep(1.5)
    assert client.get("/parcae/agent") is not None
    assert recorder.values == [b"1", b"2"]
    assert not recorder.errors


def test_a_watch_that_is_not_allowed_says_so(make_client: MakeClient) -> None:
    recorder = Recorder()
    client = make_client(login=JOB)
    client.watch("/elsewhere", recorder.changes.append, on_error=recorder.errors.append)
    wait_until(lambda: bool(recorder.errors))
    assert isinstance(recorder.errors[0], BoardRefused)
    assert "permission denied" in str(recorder.errors[0])


def test_a_watch_says_so_when_its_right_is_taken_away(
    server: EtcdServer, make_client: MakeClient
) -> None:
    recorder = Recorder()
    client = make_client(login=JOB)
    watch = recorder.watch(client, "/parcae/")
    login = f"--user=root:{ROOT.password}"
    _etcdctl(
        server.endpoint, login, "role", "revoke-permission", "--prefix=true", "board", "/parcae/"
    )
    server.kill()
    server.restart()
    wait_until(lambda: not watch.is_running)
    assert [type(error) for error in recorder.errors] == [BoardRefused]


def test_a_login_does_not_hurt_where_there_are_no_users(
    server: EtcdServer, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    _etcdctl(server.endpoint, f"--user=root:{ROOT.password}", "auth", "disable")
    with caplog.at_level("INFO"):
        make_client(login=JOB).put("/parcae/a", b"1")
    assert "job goes on without a login" in caplog.text
