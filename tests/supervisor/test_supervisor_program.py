"""Whole agents: real processes, real workers, a real etcd."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from supervisor_desk import is_alive, wait_until
from supervisor_program import START_S, MakeProgram
from tests.metrics.metric_facts import Told, read

from parcae_agent.settings import ExitCode
from parcae_api.board import JobBoard
from parcae_api.membership import AgentState
from parcae_cli.etcd_server import EtcdServer

SLOW = """
import time
from pathlib import Path
here = Path(__file__).parent
(here / "importing").touch()
while not (here / "go on").exists():
    time.sleep(0.01)
from models import gpt
"""


def test_it_is_on_the_board_within_a_second_and_long_before_its_worker_is_ready(
    make_program: MakeProgram, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    support = Path(__file__).parent.parent / "support"
    (tmp_path / "models.py").write_text((support / "models.py").read_text())
    program = make_program(function="slow:gpt", search_path=str(tmp_path))
    membership = program.await_member()
    seconds = time.monotonic() - program.started_s
    record_property("seconds to the board", seconds)
    assert seconds < 5.0  # 0.4 s on an idle machine: the issue asks for 1 s
    assert membership.state is AgentState.STARTING
    wait_until((tmp_path / "importing").exists, "the worker imports the user's code", START_S)
    membership = program.await_member()
    assert membership.state is AgentState.STARTING
    assert not membership.workers[0].ready
    (tmp_path / "go on").touch()
    program.await_ready()
    assert program.await_member().state is AgentState.STANDBY


def test_a_pods_agent_tells_prometheus_and_writes_its_log_as_it_is_told(
    make_program: MakeProgram,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = {"PARCAE_METRICS_PORT": str(port), "PARCAE_LOG_FORMAT": "json"}
    program = make_program(args={"steps": 1_000_000}, environ=environ)
    program.await_ready()
    program.train_alone(1)
    program.await_training(1)
    program.await_step(1)

    def steps() -> float | None:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            return Told(read(reply.read().decode()))("worker_steps_total", job="job")

    wait_until(lambda: (steps() or 0) >= 1, "a step is told")
    told = [json.loads(line) for line in program.log.read_text().splitlines()]
    loggers = {line["logger"] for line in told if line.get("revision") == 1}
    assert loggers == {"parcae_agent.supervisor", "parcae_agent.worker"}  # two processes
    for line in told:
        assert (line["namespace"], line["job"], line["pod"]) == ("test", "job", "pod")


def test_the_life_of_an_agent(
    own_etcd: EtcdServer, make_program: MakeProgram, board: JobBoard, tmp_path: Path
) -> None:
    program = make_program(args={"steps": 1_000_000})
    program.await_ready()
    program.train_alone(1)
    program.await_training(1)
    program.await_step(1)
    # etcd is killed and comes back: training goes on, and so does what is said of it.
    own_etcd.kill()
    own_etcd.start()
    progress = board.progress()
    assert progress is not None
    program.await_step(progress.step + 1)
    # SIGTERM: a notice. It stays while the plan names it.
    program.signal(signal.SIGTERM)
    wait_until(lambda: program.await_member().notice is not None, "the notice is on the board")
    assert program.await_member().state is AgentState.LEAVING
    entry = board.plan()
    assert entry is not None
    assert is_alive(program.worker_pid)
    pause = entry.model.model_copy(update={"revision": 2, "layout": None, "grid": ()})
    worker = program.worker_pid
    board.publish_plan(pause, entry)
    assert program.await_end() == ExitCode.DONE
    program.await_gone()
    assert not is_alive(worker)
    # It had saved its state before it left.
    (saved,) = (tmp_path / "checkpoints").glob("step-*")
    assert len(list(saved.glob("*.safetensors"))) == 6


def test_a_killed_worker_takes_its_agent_along_at_once(make_program: MakeProgram) -> None:
    program = make_program(forked=True, lease_seconds=60.0)
    program.await_ready()
    os.kill(program.worker_pid, signal.SIGKILL)
    program.await_gone()
    assert program.await_end() == ExitCode.WORKER_LOST


def test_a_stopped_worker_is_killed_after_its_time(make_program: MakeProgram) -> None:
    program = make_program(forked=True, worker_timeout_seconds=1.5)
    program.await_ready()
    worker = program.worker_pid
    os.kill(worker, signal.SIGSTOP)
    assert program.await_end() == ExitCode.WORKER_LOST
    assert not is_alive(worker)


def test_a_killed_supervisor_takes_its_worker_along(make_program: MakeProgram) -> None:
    program = make_program(forked=True, lease_seconds=2.0)
    program.await_ready()
    worker = program.worker_pid
    program.signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(worker), "the worker has ended")
    program.await_gone()  # when its lease ends


def test_an_agent_that_slept_comes_back_with_its_worker(make_program: MakeProgram) -> None:
    program = make_program(forked=True, worker_timeout_seconds=1.5, lease_seconds=2.0)
    program.await_ready()
    worker, incarnation = program.worker_pid, program.await_member().incarnation
    os.killpg(program.pid, signal.SIGSTOP)
    program.await_gone()
    os.killpg(program.pid, signal.SIGCONT)
    program.await_ready()
    assert program.worker_pid == worker
    assert program.await_member().incarnation == incarnation


def test_the_users_mistake_is_told_and_ends_the_agent(
    make_program: MakeProgram, board: JobBoard, tmp_path: Path
) -> None:
    (tmp_path / "wrong.py").write_text("def make():\n    return 1 / 0\n")
    program = make_program(forked=True, function="wrong:make", search_path=str(tmp_path))
    assert program.await_end() == ExitCode.USER_CODE
    (failure,) = board.failures().values()
    assert "ZeroDivisionError: division by zero" in failure.message
    assert "wrong.py" in failure.traceback
    program.await_gone()
