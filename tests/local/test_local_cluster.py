"""The local cluster with scripted processes: pods wait for nodes, nodes take pods along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from crew import await_true

from parcae_agent.settings import ExitCode
from parcae_cli.local import cluster as cluster_module
from parcae_cli.local.cluster import Ended, LocalCluster, Loss
from parcae_operator.observation import PodPhase

# Reads a number from its input and ends with it, a negative one by that signal; a SIGTERM is
# answered with a line.
CODE = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("term", flush=True))
print("up", flush=True)
code = int(sys.stdin.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Program:
    """A process that leads a group, as an agent does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        assert self.says() == "up"

    def on_exit(self, callback: Callable[[int], None]) -> None:
        def wait() -> None:
            callback(self._process.wait())

        threading.Thread(target=wait, daemon=True).start()

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self, code: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{code}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Site:
    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}
        self.ended: list[Ended] = []
        self.cluster = LocalCluster(
            self.launch, wake=lambda: None, on_ended=lambda e: self.ended.append(e)
        )

    def launch(self, pod: str, node: str) -> Program:
        self.programs[pod] = Program()
        return self.programs[pod]

    def phases(self) -> dict[str, PodPhase]:
        return {pod.name: pod.phase for pod in self.cluster.pods()}

    def lost(self) -> list[tuple[str, Loss]]:
        return [(e.pod, e.loss) for e in self.ended]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.cluster.close()
    for program in made.programs.values():
        program.close()


def test_pods_wait_for_nodes(site: Site) -> None:
    site.cluster.create_pods(2)
    assert set(site.phases().values()) == {PodPhase.PENDING}
    site.cluster.node_up("n1")
    assert site.phases() == {"agent-0": PodPhase.RUNNING, "agent-1": PodPhase.PENDING}


def test_notice_is_a_sigterm(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    site.cluster.node_noticed("n1", 123.0)
    assert site.programs["agent-0"].says() == "term"
    (pod,) = site.cluster.pods()
    assert pod.notice is not None
    assert pod.notice.deadline_unix_s == 123.0


def test_a_noticed_node_takes_no_pod(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.node_noticed("n1", 1.0)
    site.cluster.create_pods(1)
    assert site.phases() == {"agent-0": PodPhase.PENDING}


def test_a_node_takes_its_pod_along(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    site.cluster.node_down("n1")
    assert site.phases() == {}
    assert site.lost() == [("agent-0", Loss.SUDDEN)]
    await_true(lambda: site.programs["agent-0"]._process.poll() == -signal.SIGKILL, "it is dead")


def test_noticed_loss_with_the_agent_still_there(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    site.cluster.node_noticed("n1", 1.0)
    site.cluster.node_down("n1")
    assert site.lost() == [("agent-0", Loss.NOTICED)]


def test_noticed_loss_after_the_agent_left(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    site.cluster.node_noticed("n1", 1.0)
    site.programs["agent-0"].end(ExitCode.DONE)
    await_true(lambda: not site.phases(), "its pod has ended")
    assert site.lost() == []
    site.cluster.node_down("n1")
    assert site.lost() == [("agent-0", Loss.NOTICED)]


def test_killed_agent_is_a_sudden_loss_and_is_replaced(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(2)
    os.kill(site.programs["agent-0"].pid, signal.SIGKILL)
    await_true(lambda: site.phases() == {"agent-1": PodPhase.RUNNING}, "the next pod runs")
    assert site.lost() == [("agent-0", Loss.SUDDEN)]


def test_a_notice_that_comes_too_early_to_be_heard(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(2)
    site.cluster.node_noticed("n1", 1.0)
    site.programs["agent-0"].end(-signal.SIGTERM)  # it had no handler yet
    await_true(lambda: len(site.phases()) == 1, "its pod has ended")
    assert site.lost() == []
    assert site.phases() == {"agent-1": PodPhase.PENDING}
    site.cluster.node_down("n1")
    assert site.lost() == [("agent-0", Loss.NOTICED)]


def test_a_sigterm_from_elsewhere_is_a_noticed_loss(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(2)
    site.programs["agent-0"].end(ExitCode.DONE)
    await_true(lambda: site.phases() == {"agent-1": PodPhase.RUNNING}, "the next pod runs")
    assert site.lost() == [("agent-0", Loss.NOTICED)]


def test_a_process_that_cannot_be_started_is_tried_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster_module, "_LONGEST_BACKOFF_SECONDS", 0.05)
    launch, tries = site.launch, []

    def fail_twice(pod: str, node: str) -> Program:
        tries.append(pod)
        if len(tries) <= 3:
            raise OSError(11, "Resource temporarily unavailable")
        return launch(pod, node)

    site.cluster._launch = fail_twice
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    assert site.phases() == {"agent-0": PodPhase.PENDING}
    site.cluster.create_pods(1)
    await_true(lambda: PodPhase.RUNNING in site.phases().values(), "it has started")
    assert "agent-0 does not start on n1: [Errno 11]" in caplog.text
    assert site.lost() == []


def test_failed_user_code_is_no_loss(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.create_pods(1)
    site.programs["agent-0"].end(ExitCode.USER_CODE)
    await_true(lambda: not site.phases(), "its pod has ended")
    assert site.lost() == []


def test_agents_that_cannot_start_are_held_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_LONGEST_BACKOFF_SECONDS", 0.3)
    site.cluster.node_up("n1")
    site.cluster.create_pods(3)
    site.programs["agent-0"].end(1)
    await_true(lambda: "agent-1" in site.programs, "the first crash is forgiven")
    site.programs["agent-1"].end(1)
    await_true(lambda: site.phases() == {"agent-2": PodPhase.PENDING}, "the second is not")
    await_true(lambda: site.phases() == {"agent-2": PodPhase.RUNNING}, "for ever")


def test_close_kills_everything(site: Site) -> None:
    site.cluster.node_up("n1")
    site.cluster.node_up("n2")
    site.cluster.create_pods(2)
    site.cluster.close()
    for program in site.programs.values():
        await_true(lambda p=program: p._process.poll() is not None, "it is dead")
