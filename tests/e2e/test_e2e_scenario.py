"""One run through everything that happens to spot instances and to what trains on them.

The steps build on each other and run in this order; a table of what was measured ends the run
(``make e2e``). In the end the run must be, bit for bit, an undisturbed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from e2e_proof import Undisturbed, prove
from e2e_site import NAME, NAMESPACE, PACE_S, SYSTEM, Site, is_ready, since, unix_s
from tests.cluster.errors import ProgramFailed
from tests.cluster.node import Node
from tests.cluster.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(autouse=True)
def _one_after_the_other(site: Site, undisturbed: Undisturbed) -> None:
    if site.broken:
        pytest.skip(f"{site.broken} failed before")


def test_a_spec_that_cannot_work_is_refused_with_a_sentence(site: Site) -> None:
    bad = site.manifest(instances={"min": 5, "max": 4})
    with pytest.raises(ProgramFailed, match=r"min \(5\) must not be above max \(4\)"):
        site.cluster.apply(bad)
    no_image = site.manifest()
    del no_image["spec"]["template"]["spec"]["containers"][0]["image"]
    site.cluster.apply(no_image)
    status = site.wait("the slip is told", lambda s: s.get("conditions"))
    assert site.condition("Degraded")["reason"] == "InvalidSpec"
    assert "containers[0].image: is required" in site.condition("Degraded")["message"]
    assert status["phase"] == "Pending"
    assert not site.pods()
    site.cluster.kubectl("delete", "pj", NAME)


def test_from_apply_to_the_first_step(site: Site) -> None:
    site.set_pace(PACE_S)
    started_s = time.monotonic()
    site.cluster.apply(site.manifest())
    site.wait("the first step", lambda s: s.get("step", 0) >= 1, bound_s=120)
    assert len(site.board_users()) == 2, "root's and the job's"
    first_step = min(unix_s(e["eventTime"]) for e in site.events("InstanceJoined"))
    site.note("apply to the first step, as the status shows it", since(started_s), "30 s")
    assert first_step
    site.wait_training(4)


def test_a_job_of_the_same_name_whose_image_is_not_there(site: Site) -> None:
    before = site.wait_training(4)
    other = site.manifest(instances={"min": 1, "max": 1})
    other["metadata"]["namespace"] = "other"
    del other["spec"]["entrypoint"]["configMap"]  # it is not in that namespace
    container = other["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "parcae-agent:nowhere", "imagePullPolicy": "Never"}
    site.cluster.kubectl("create", "namespace", "other")
    site.cluster.apply(other)
    path = f"/apis/parcae.dev/v1alpha1/namespaces/other/parcaejobs/{NAME}"

    def complaint() -> str:
        status = (site.cluster.api.find(path) or {}).get("status", {})
        degraded = [c for c in status.get("conditions", []) if c["reason"] == "PodsDoNotStart"]
        return str(degraded[0]["message"]) if degraded else ""

    said = until("it is told", complaint, bound_s=60)
    assert "ImagePull: ErrImageNeverPull" in said
    site.cluster.kubectl("delete", "namespace", "other", "--timeout=60s")
    assert site.wait_step(before["step"] + 1)["revision"] == before["revision"]


def _gke(node: Node, site: Site) -> None:
    node.taint("cloud.google.com/impending-node-termination")


def _aws(node: Node, site: Site) -> None:
    node.taint("aws-node-termination-handler/spot-itn", "spot-itn-7f3a")


def _azure(node: Node, site: Site) -> None:
    node.condition("VMEventScheduled", "True", "VMEventScheduled", "Preempt Scheduled")


def _karpenter(node: Node, site: Site) -> None:
    node.taint("karpenter.sh/disrupted")
    node.drain(bound_s=60)


def _autoscaler(node: Node, site: Site) -> None:
    node.taint("ToBeDeletedByClusterAutoscaler", str(int(time.time())))


def _drain(node: Node, site: Site) -> None:
    node.drain(bound_s=60)


def _metadata(node: Node, site: Site) -> None:
    site.tell_metadata(node, "notice")


@pytest.mark.parametrize(
    "signal",
    [_gke, _aws, _azure, _karpenter, _autoscaler, _drain, _metadata],
    ids=["gke", "aws", "azure", "karpenter", "cluster-autoscaler", "kubectl-drain", "metadata"],
)
def test_a_noticed_preemption(site: Site, signal: Callable[[Node, Site], None]) -> None:
    before = site.wait_training(4)
    node = site.some_training_node()
    pod = site.running()[node.name]["metadata"]["name"]
    noticed_unix_s = time.time()
    signal(node, site)
    decision = site.wait_revision(before["revision"], "notice")
    planned = [
        unix_s(e["eventTime"])
        for e in site.events("Planned")
        if f"revision {decision['revision']} " in e["note"]
    ]
    assert site.status()["lastMigration"]["stepsReplayed"] == 0
    until(
        f"{pod} leaves in peace",
        lambda: pod not in [p["metadata"]["name"] for p in site.pods()],
        bound_s=40,
    )
    left_unix_s = time.time()
    site.replace(node)
    site.wait_training(4)
    after = site.wait(
        "it is counted",
        lambda s: s["preemptionsNoticed"] == before["preemptionsNoticed"] + 1,
    )
    assert after["preemptions"] == before["preemptions"] + 1
    name = signal.__name__.strip("_")
    target = "1 s after a poll, every 2 s" if name == "metadata" else "1 s"
    site.note(f"{name}: signal to the plan", f"{planned[0] - noticed_unix_s:.2f} s", target)
    site.note(f"{name}: signal to the state being out", f"{left_unix_s - noticed_unix_s:.1f} s")


def test_a_node_that_dies_without_a_word(site: Site) -> None:
    before = site.wait_training(4)
    node = site.some_training_node()
    killed_unix_s = time.time()
    node.kill()
    decision = site.wait_revision(before["revision"], "loss", bound_s=40)
    status = site.wait(
        "it trains on", lambda s: s["revision"] >= decision["revision"] and is_ready(s)
    )
    migrated = [
        unix_s(e["eventTime"])
        for e in site.events("Migrated")
        if unix_s(e["eventTime"]) > killed_unix_s
    ]
    site.note("silent kill to the new epoch", f"{migrated[0] - killed_unix_s:.1f} s", "7 s")
    assert status["lastMigration"]["stepsReplayed"] <= 1
    site.replace(node)
    site.wait_training(4)


def test_a_node_that_is_cut_off_and_comes_back(site: Site) -> None:
    before = site.wait_training(4)
    node = site.some_training_node()
    node.cut()
    site.wait_revision(before["revision"], "loss", bound_s=40)
    node.mend()
    node.wait_ready()
    site.wait_training(4)


def test_a_new_node(site: Site) -> None:
    site.wait_training(4)
    site.patch({"instances": {"max": 5}})
    site.add_spot_node()
    # Eight micro-batches on five pipelines are no faster than on four: it may well stand by.
    site.wait(
        "the fifth is there",
        lambda s: s["instanceCounts"]["training"] + s["instanceCounts"]["standby"] == 5,
        bound_s=90,
    )
    site.patch({"instances": {"max": 4}})
    until("one pod is given back", lambda: len(site.pods()) == 4, bound_s=60)
    site.wait_training(4)


def test_the_operator_dies_in_the_middle_of_a_migration(site: Site) -> None:
    before = site.wait_training(4)
    node = site.some_training_node()
    node.taint("aws-node-termination-handler/spot-itn", "spot-itn-2")
    site.wait("it begins", lambda s: s["revision"] > before["revision"], bound_s=20)
    started_s = time.monotonic()
    site.kill_container("operator", "parcae-operator")
    step = site.status()["step"]
    site.wait_step(step + 5)
    site.note("operator killed in mid-migration to its next status", since(started_s), "15 s")
    site.replace(node)
    site.wait_training(4)


def test_the_planner_is_gone(site: Site) -> None:
    site.cluster.kubectl("scale", "-n", SYSTEM, "deployment/parcae-planner", "--replicas=0")
    until("the planner is gone", lambda: not site.system_pods("planner"), bound_s=60)
    before = site.wait_training(4)
    node = site.some_training_node()
    node.taint("aws-node-termination-handler/spot-itn", "spot-itn-3")
    decision = site.wait_revision(before["revision"], "notice")
    assert "without the planner's forecast" in decision["why"]
    site.wait(
        "it is told",
        lambda s: any(c["reason"] == "PlannerUnavailable" for c in s["conditions"]),
    )
    site.cluster.kubectl("scale", "-n", SYSTEM, "deployment/parcae-planner", "--replicas=1")
    site.replace(node)
    site.wait_training(4)
    site.wait(
        "all is as expected again",
        lambda s: any(c["reason"] == "AsExpected" for c in s["conditions"]),
        bound_s=120,
    )


def test_the_board_is_killed(site: Site) -> None:
    before = site.wait_training(4)
    site.kill_container("etcd", "etcd --")
    after = site.wait_step(before["step"] + 5)
    assert after["revision"] == before["revision"]
    assert after["lastMigration"] == before["lastMigration"]


def test_the_api_server_is_restarted(site: Site) -> None:
    before = site.wait_training(4)
    site.cluster.control_plane.restart("apiserver")
    after = site.wait_step(before["step"] + 5, bound_s=90)
    assert after["revision"] == before["revision"]


def test_suspend_and_resume(site: Site) -> None:
    site.wait_training(4)
    site.patch({"suspend": True})
    status = site.wait("it is suspended", lambda s: s["phase"] == "Suspended")
    until("its pods are given back", lambda: not site.pods(), bound_s=60)
    site.patch({"suspend": False})
    site.wait_step(status["step"] + 1, bound_s=90)
    site.wait_training(4)


def test_a_crash_of_the_users_code(site: Site) -> None:
    before = site.wait_training(4)
    (site.stage / "crash").touch()
    status = site.wait("the crash is told", lambda s: s["failures"] == 1)
    condition = next(c for c in status["conditions"] if c["type"] == "Degraded")
    assert "the scenario's crash" in condition["message"]
    until("another pod in its place", lambda: len(site.running()) == 4, bound_s=60)
    site.wait("it is ready", lambda s: s["instances"] == 4, bound_s=90)
    after = site.wait_step(before["step"] + 5)
    assert after["preemptions"] == before["preemptions"]


@pytest.mark.timeout(1200, func_only=True)  # the rest is trained, by both
def test_the_finished_run_is_an_undisturbed_one(site: Site, undisturbed: Undisturbed) -> None:
    site.set_pace(0.0)
    site.wait("it is completed", lambda s: s["phase"] == "Completed", bound_s=600)
    proof = prove(site, undisturbed)
    site.note("steps committed", str(proof.steps))
    site.note("samples lost, repeated", f"{proof.lost}, {proof.repeated}", "0, 0")
    site.note("losses and state that differ from an undisturbed run", str(proof.differing), "0")
    assert (proof.lost, proof.repeated, proof.differing) == (0, 0, 0)
    # The one that crashed stays, for its log.
    until(
        "its pods are gone",
        lambda: all(pod["status"]["phase"] == "Failed" for pod in site.pods()),
        bound_s=60,
    )


def test_nothing_is_left_of_a_deleted_job(site: Site) -> None:
    site.cluster.kubectl("delete", "pj", NAME, "--timeout=30s")
    until("no pod is left", lambda: not site.all_pods(), bound_s=60)
    for kind in ("secrets", "configmaps", "leases"):
        found = site.cluster.kubectl("get", kind, "-n", NAMESPACE, "-o", "name").split()
        assert all(name.endswith(("gpt-code", "kube-root-ca.crt")) for name in found), found
    until("its board is cleared", lambda: not site.board_keys(), bound_s=30)
    until("its user is dismissed", lambda: site.board_users() == ["root"], bound_s=30)
