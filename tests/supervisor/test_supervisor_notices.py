"""Notices reach the board: from SIGTERM, also as a container's first process; from the cloud."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from metadata_servers import MetadataServer
from supervisor_desk import Desk, MakeDesk, is_alive, make_plan, wait_until
from supervisor_namespace import AGENT, NamespacedAgent, blocks, children, needs_namespaces

from parcae_agent.link import PlanNews
from parcae_agent.notices.signs import Heard
from parcae_agent.pid_one import warn_of_a_shell_in_front
from parcae_agent.settings import ExitCode
from parcae_api.board import JobBoard
from parcae_api.membership import AgentState, Hint, Notice
from parcae_cli.etcd_server import EtcdServer

MakeContainer = Callable[..., NamespacedAgent]


@pytest.fixture
def make_container(etcd: EtcdServer, board: JobBoard, tmp_path: Path) -> Iterator[MakeContainer]:
    """Containers: the command in exec form, and variables for its environment."""
    started: list[NamespacedAgent] = []

    def make(*command: str, **environ: str) -> NamespacedAgent:
        started.append(NamespacedAgent(etcd.endpoint, board, tmp_path, *command, **environ))
        return started[-1]

    yield make
    for container in started:
        container.close()


# In the supervisor


def needed(make_desk: MakeDesk) -> Desk:
    """One that the plan counts on, so that it stays after a notice."""
    desk = make_desk(grace_seconds=30.0)
    desk.worker.ready()
    desk.publish(make_plan(1, desk.id, "x/0"))
    desk.worker.hears(PlanNews)
    desk.await_info(lambda info: info.ready, "it is ready")
    return desk


def test_clouds_notice_is_put_on_the_board(make_desk: MakeDesk) -> None:
    desk = needed(make_desk)
    notice = Notice(deadline_unix_s=time.time() + 120, source="aws-spot-terminate")
    desk.supervisor._news.put(Heard(notice=notice))
    wait_until(lambda: desk.await_member().notice == notice, "the notice is on the board")
    assert desk.await_member().state is AgentState.LEAVING


def test_of_several_notices_the_one_that_leaves_least_time_counts(make_desk: MakeDesk) -> None:
    desk = needed(make_desk)
    now_s = time.time()
    cloud = Notice(deadline_unix_s=now_s + 120, source="aws-spot-terminate")
    desk.supervisor._news.put(Heard(notice=cloud))
    wait_until(lambda: desk.await_member().notice == cloud, "the notice is on the board")
    desk.terminate()

    def terminated() -> bool:
        notice = desk.await_member().notice
        return notice is not None and notice.source == "sigterm"

    wait_until(terminated, "SIGTERM leaves less")
    sooner = Notice(deadline_unix_s=now_s + 5, source="azure-preempt")
    desk.supervisor._news.put(Heard(notice=cloud))
    desk.supervisor._news.put(Heard(notice=sooner))
    wait_until(lambda: desk.await_member().notice == sooner, "and the last one least of all")


def test_hint_comes_and_goes_and_moves_nobody(make_desk: MakeDesk) -> None:
    desk = needed(make_desk)
    hint = Hint(source="aws-rebalance", since_unix_s=1.0)
    desk.supervisor._news.put(Heard(hint=hint))
    wait_until(lambda: desk.await_member().hint == hint, "the hint is on the board")
    assert desk.await_member().notice is None
    assert desk.await_member().state is AgentState.STANDBY
    desk.supervisor._news.put(Heard())
    wait_until(lambda: desk.await_member().hint is None, "it is withdrawn")


# Whole programs


@needs_namespaces
@pytest.mark.parametrize("cloud", ["aws", "gce", "azure"])
def test_notice_of_the_cloud(make_container: MakeContainer, cloud: str) -> None:
    with MetadataServer(cloud) as server:
        container = make_container(
            *AGENT.split(), PARCAE_SPOT_NOTICES="auto", PARCAE_METADATA_URL=server.url
        )
        container.await_member()
        server.notice()
        container.await_logged(f"notice by {cloud}-")
        assert container.await_end() == ExitCode.DONE


@needs_namespaces
def test_sigterm_as_a_containers_first_process(make_container: MakeContainer) -> None:
    container = make_container(*AGENT.split(), PARCAE_GRACE_S="300")
    worker = container.await_member().workers[0].id
    assert container.board.publish_plan(make_plan(1, worker, "x/0"), None) is not None
    container.await_ready()  # which takes longer than the plan's way to it
    container.signal(signal.SIGTERM)
    wait_until(lambda: container.await_member().notice is not None, "it is on the board")
    notice = container.await_member().notice
    assert notice is not None
    assert notice.source == "sigterm"
    assert 250 < notice.deadline_unix_s - time.time() <= 300


@needs_namespaces
def test_sigterm_before_anything_is_loaded(make_container: MakeContainer) -> None:
    """The kernel would drop it: this is a namespace's first process, without a handler."""
    container = make_container(*AGENT.split())
    wait_until(lambda: blocks(container.pid, signal.SIGTERM), "it holds SIGTERM back")
    container.signal(signal.SIGTERM)
    assert container.await_end() == ExitCode.DONE


@needs_namespaces
def test_orphans_are_reaped(make_container: MakeContainer) -> None:
    container = make_container(*AGENT.split())
    container.await_ready()
    before = set(children(container.pid))
    container.enter("sleep 1000 & exit 0")
    (orphan,) = set(children(container.pid)) - before
    os.kill(orphan, signal.SIGKILL)
    wait_until(lambda: orphan not in children(container.pid), "nothing of it is left")
    assert is_alive(container.pid)


@needs_namespaces
def test_shell_in_front_keeps_sigterm_and_the_cloud_is_heard_all_the_same(
    make_container: MakeContainer,
) -> None:
    with MetadataServer("aws") as server:
        container = make_container(
            "sh",
            "-c",
            f"{AGENT}; exit $?",
            PARCAE_SPOT_NOTICES="aws",
            PARCAE_METADATA_URL=server.url,
        )
        container.await_member()
        assert "the container's first process is sh" in container.log.read_text()
        container.signal(signal.SIGTERM)
        server.notice()
        container.await_logged("notice by aws-spot-terminate")
        assert "sigterm" not in container.log.read_text()


@needs_namespaces
def test_shell_that_execs_is_no_shell_in_front(make_container: MakeContainer) -> None:
    container = make_container("sh", "-c", f"exec {AGENT}")
    container.await_member()
    assert "first process" not in container.log.read_text()
    container.signal(signal.SIGTERM)
    container.await_logged("notice by sigterm")


def test_no_warning_where_no_shell_is_in_front(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A suite in the background may have been left to the first process of this machine.
    monkeypatch.setattr(os, "getppid", lambda: 4242)
    warn_of_a_shell_in_front(tmp_path / "nothing")
    (tmp_path / "comm").write_text("sh\n")
    warn_of_a_shell_in_front(tmp_path / "comm")
    assert not caplog.records, "its parent is not the first process"
