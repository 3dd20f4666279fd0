"""A chart's life: tried out, installed, upgraded, rolled back, uninstalled, with a job at work.

One story: each chapter goes on where the one before ended. The job never hears of any of it.
"""

from __future__ import annotations

import time
from functools import partial

import pytest

from parcae_agent.ledger import read_ledger
from tests.cluster import ProgramFailed
from tests.cluster.toolchain import prometheus_kinds
from tests.deploy.install import ROOT
from tests.lifecycle.story import CHART, JOB, PREVIOUS, SYSTEM, TEAM, Story

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PRESETS = ROOT / "charts" / "parcae" / "presets"
CLOUDS = ("gke", "eks", "aks")


@pytest.fixture(autouse=True)
def _goes_on(story: Story) -> None:
    if story.broken:
        pytest.fail(f"the story ended at {story.broken}")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_preset_is_accepted_by_the_api_server(story: Story, cloud: str) -> None:
    kinds = prometheus_kinds()
    story.cluster.kubectl("apply", "--server-side", *(f"--filename={kind}" for kind in kinds))
    names = [f"crd/{name}.monitoring.coreos.com" for name in ("podmonitors", "prometheusrules")]
    story.cluster.kubectl("wait", "--for=condition=established", *names)
    words = [f"--values={PRESETS / f'{cloud}.yaml'}", "--set=monitoring.force=true"]
    rendered = story.cluster.helm("template", "parcae", CHART, f"--namespace={SYSTEM}", *words)
    assert rendered.count("kind: PodMonitor") >= 3
    said = story.cluster.kubectl(
        "apply", "--dry-run=server", f"--namespace={SYSTEM}", "--filename=-", input=rendered
    )
    lines = said.splitlines()
    assert len(lines) >= 20
    assert all(line.endswith("(server dry run)") for line in lines)
    story.cluster.kubectl("delete", "crd", *(name.removeprefix("crd/") for name in names))


def test_a_storage_class_that_is_missing_is_said_and_nothing_is_installed(story: Story) -> None:
    words = [CHART, f"--values={PRESETS / 'gke.yaml'}"]
    with pytest.raises(ProgramFailed, match=r"has no StorageClass premium-rwo; .* it has: none"):
        story.helm("install", *words)
    assert story.cluster.kubectl("get", "all,secrets,networkpolicies", "-n", SYSTEM).strip() == ""


def test_it_is_tried_out_as_the_readme_says(story: Story) -> None:
    took_s = story.helm("install", CHART, f"--values={PRESETS / 'try.yaml'}")
    story.figures["install to ready (target 60 s)"] = f"{took_s:.1f} s"
    assert "Succeeded" in story.cluster.helm("test", "parcae", f"--namespace={SYSTEM}")
    story.helm("uninstall")


def test_a_job_trains_under_the_previous_chart(story: Story) -> None:
    story.install(PREVIOUS)
    story.apply_job()
    story.wait("the first step", lambda: story.status().get("step", 0) > 0, bound_s=120)
    story.wait_steps(10)  # those that measure layers are slow
    since = time.time()
    story.wait_steps(20)
    story.note_pause("nothing happens", since)


def test_without_policies_a_stranger_gets_a_connection(story: Story) -> None:
    """Else what the next chapter shows would show nothing."""
    for pod, body in story.pods().items():
        address, ports = body["status"]["podIP"], story.listening(pod)
        assert any(story.reaches("stranger", "default", address, port) for port in ports)
    assert story.reaches("stranger", "default", story.address("etcd"), 2379)


def test_an_upgrade_takes_no_step(story: Story) -> None:
    before, since = story.status(), time.time()
    story.install(CHART, "upgrade")
    story.wait_steps(20)
    _same_plan(story, before)
    story.note_pause("upgrade", since)


def test_no_stranger_reaches_workers_or_the_board(story: Story) -> None:
    found = story.cluster.kubectl("get", "networkpolicies", "-n", TEAM, "-o", "name")
    assert f"/{JOB}-agents-" in found
    etcd = story.address("etcd")
    for namespace in ("default", TEAM):
        story.wait(
            "a stranger to be refused",
            lambda where=namespace: not story.reaches("stranger", where, etcd, 2379),  # type: ignore[misc]
        )
        for pod, body in story.pods().items():
            ports = set(story.listening(pod)) - {8082}  # metrics, for whom the values allow it
            assert ports
            for port in ports:
                address = body["status"]["podIP"]
                assert not story.reaches("stranger", namespace, address, port), (pod, port)


def test_agents_of_one_job_are_strangers_to_another(story: Story) -> None:
    """The board's port is open to any job's agents, which need a login there; workers' are not."""
    story.cluster.kubectl(
        "label", "pod", "stranger", "-n", "default", "parcae.dev/job-uid=of-another"
    )
    reach = partial(story.reaches, "stranger", "default")
    story.wait("the board to answer", lambda: reach(story.address("etcd"), 2379))
    for pod, body in story.pods().items():
        for port in set(story.listening(pod)) - {8082}:
            assert not reach(body["status"]["podIP"], port), (pod, port)


def test_agents_keep_to_themselves(story: Story) -> None:
    """What the values do not allow is out of their reach, too: here, a neighbour."""
    neighbour = story.cluster.wait_pod("stranger", "default")["status"]["podIP"]
    for pod in story.pods():
        assert not story.reaches(pod, TEAM, neighbour, 8080)
        assert story.reaches(pod, TEAM, story.address("etcd"), 2379)


def test_helm_test_passes_where_policies_hold(story: Story) -> None:
    assert "Succeeded" in story.cluster.helm("test", "parcae", f"--namespace={SYSTEM}")


def test_a_rollback_takes_no_step(story: Story) -> None:
    before, since = story.status(), time.time()
    story.helm("rollback", "1")
    story.wait_steps(20)
    _same_plan(story, before)
    story.note_pause("rollback", since)


def test_without_the_chart_the_job_trains_on(story: Story) -> None:
    story.install(CHART, "upgrade")
    before, since = story.status(), time.time()
    story.helm("uninstall")
    story.wait("the operator to go", lambda: not story.program("operator"))
    last = story.status()
    story.wait_steps(60)
    assert story.status() == last  # nobody is there to tell
    _same_plan(story, before)
    story.note_pause("uninstalled", since)


def test_another_installation_takes_it_over(story: Story) -> None:
    before, since = story.status(), time.time()
    pods = {pod["metadata"]["uid"] for pod in story.pods().values()}
    story.install(CHART)
    story.wait("somebody to tell", lambda: story.status()["step"] > before["step"])
    story.wait_steps(20)
    assert {pod["metadata"]["uid"] for pod in story.pods().values()} == pods
    _same_plan(story, before)
    story.note_pause("installed again", since)


def test_every_sample_was_trained_once(story: Story) -> None:
    story.cluster.kubectl("delete", "parcaejob", JOB, "-n", TEAM, "--timeout=90s")
    story.wait("its pods to go", lambda: not story.pods())
    ledger = read_ledger(story.stage / "ledger")
    assert ledger.problems == []
    assert (ledger.samples_lost, ledger.samples_repeated) == (0, 0)
    story.figures["steps through all of it: lost, repeated"] = f"{len(ledger.steps)}: 0, 0"


def test_the_policy_goes_with_its_job(story: Story) -> None:
    def policies() -> str:
        return story.cluster.kubectl("get", "networkpolicies", "-n", TEAM, "-o", "name")

    story.wait("its policy to go", lambda: JOB not in policies())


def _same_plan(story: Story, before: dict[str, object]) -> None:
    """No worker left, none formed anew, nothing was trained a second time."""
    now = story.status()
    for name in ("revision", "lastMigration", "stepsReplayed", "preemptions"):
        assert now.get(name) == before.get(name), name
