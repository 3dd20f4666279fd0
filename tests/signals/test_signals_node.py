"""Node objects per cloud: identity, every row of the tables, and when a node can be used."""

from __future__ import annotations

from typing import Any

import pytest
from signal_objects import CLOUDS, T0, condition, make_node, rfc3339, taint

from parcae_operator.signals import Cloud, Severity, SignalSettings, UserTaint, read_node
from parcae_operator.signals.tables import RULES

SUSPECT, HINT, DOOMED, GONE = Severity.SUSPECT, Severity.HINT, Severity.DOOMED, Severity.GONE
NTH = "aws-node-termination-handler"
IMPENDING = "cloud.google.com/impending-node-termination"
PREEMPT = {"reason": "VMEventScheduled", "message": "Preempt Scheduled: aks-gpu-1-vmss_12"}

REMEDIATOR = "remediator.kubernetes.azure.com/unschedulable"
OLD_REMEDIATOR = "remediator.aks.microsoft.com/unschedulable"
HANDLER = "aks-node-termination-handler"


def by_taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, Any]:
    return {"taints": [taint(key, value, effect)]}


def by_condition(kind: str, status: str = "True", **fields: Any) -> dict[str, Any]:
    return {"conditions": [condition(kind, status, **fields)]}


# What the node shows, what it means, seconds to the deadline, latched.
Row = tuple[str, str, dict[str, Any], Severity, float | None, bool]
ROWS: list[Row] = [
    ("nth-spot-itn", "aws", by_taint(f"{NTH}/spot-itn", "spot-itn-9f"), DOOMED, 120, True),
    (
        "nth-asg-termination",
        "aws",
        by_taint(f"{NTH}/asg-lifecycle-termination", "asg-lifecycle-term-1"),
        DOOMED,
        120,
        True,
    ),
    ("nth-rebalance", "aws", by_taint(f"{NTH}/rebalance-recommendation"), HINT, None, False),
    (
        "nth-scheduled-maintenance",
        "aws",
        by_taint(f"{NTH}/scheduled-maintenance"),
        HINT,
        None,
        False,
    ),
    (
        "nth-uncordon-after-reboot",
        "aws",
        {"labels": {f"{NTH}/action": "UncordonAfterReboot"}},
        HINT,
        None,
        False,
    ),
    (
        "eks-accelerator",
        "aws",
        by_condition("AcceleratedHardwareReady", "False"),
        HINT,
        None,
        False,
    ),
    ("eks-storage", "aws", by_condition("StorageReady", "False"), SUSPECT, None, False),
    ("eks-networking", "aws", by_condition("NetworkingReady", "False"), SUSPECT, None, False),
    ("eks-kernel", "aws", by_condition("KernelReady", "False"), SUSPECT, None, False),
    ("eks-runtime", "aws", by_condition("ContainerRuntimeReady", "False"), SUSPECT, None, False),
    ("gke-impending", "gke", {"taints": [taint(IMPENDING)]}, DOOMED, 30, True),
    ("gke-maintenance", "on-demand", {"taints": [taint(IMPENDING)]}, DOOMED, 3600, False),
    ("gke-impending-condition", "gke", by_condition(IMPENDING), DOOMED, 30, False),
    ("gke-impending-annotation", "gke", {"annotations": {IMPENDING: "true"}}, DOOMED, 30, False),
    (
        "gke-active-maintenance",
        "gke",
        {"labels": {"cloud.google.com/active-node-maintenance": "ONGOING"}},
        DOOMED,
        30,
        False,
    ),
    (
        "gke-scheduled-maintenance",
        "gke",
        {"labels": {"cloud.google.com/scheduled-maintenance-time": str(int(T0) + 7200)}},
        HINT,
        7200,
        False,
    ),
    (
        "gke-maintenance-window",
        "gke",
        by_taint("cloud.google.com/maintenance-window-started"),
        HINT,
        None,
        False,
    ),
    ("aks-preempt", "azure", by_condition("VMEventScheduled", **PREEMPT), DOOMED, 30, True),
    (
        "aks-terminate",
        "azure",
        by_condition("VMEventScheduled", message="Terminate Scheduled"),
        DOOMED,
        300,
        True,
    ),
    (
        "aks-vm-event",
        "azure",
        by_condition("VMEventScheduled", message="Freeze Scheduled"),
        HINT,
        None,
        False,
    ),
    ("aks-remediator", "azure", by_taint(REMEDIATOR, "x"), DOOMED, 30, True),
    ("aks-remediator-old", "azure", by_taint(OLD_REMEDIATOR), DOOMED, 30, True),
    ("aks-repair", "on-demand", by_taint(REMEDIATOR), HINT, None, False),
    ("aks-repair-old", "on-demand", by_taint(OLD_REMEDIATOR), HINT, None, False),
    ("aks-handler-preempt", "azure", by_taint(f"{HANDLER}/preempt", "e1"), DOOMED, 30, True),
    ("aks-handler-terminate", "azure", by_taint(f"{HANDLER}/terminate"), DOOMED, 300, True),
    ("aks-handler-redeploy", "azure", by_taint(f"{HANDLER}/redeploy"), HINT, None, False),
    ("aks-handler-reboot", "azure", by_taint(f"{HANDLER}/reboot"), HINT, None, False),
    ("aks-handler-freeze", "azure", by_taint(f"{HANDLER}/freeze"), HINT, None, False),
    (
        "karpenter-disrupted",
        "karpenter",
        {
            "taints": [taint("karpenter.sh/disrupted")],
            "metadata": {
                "deletionTimestamp": rfc3339(T0),
                "finalizers": ["karpenter.sh/termination"],
            },
        },
        DOOMED,
        120,
        True,
    ),
    ("karpenter-disruption", "karpenter", by_taint("karpenter.sh/disrupted"), HINT, None, False),
    (
        "autoscaler-delete",
        "plain",
        by_taint("ToBeDeletedByClusterAutoscaler", str(int(T0) - 2)),
        DOOMED,
        3,
        False,
    ),
    (
        "autoscaler-candidate",
        "plain",
        by_taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),
        HINT,
        None,
        False,
    ),
    (
        "openshift-terminating",
        "on-demand",
        by_condition("Terminating", reason="TerminationRequested"),
        DOOMED,
        120,
        True,
    ),
    ("node-termination", "plain", by_condition("NodeTermination"), DOOMED, 30, False),
    ("node-deleted", "plain", {"metadata": {"deletionTimestamp": rfc3339(T0)}}, DOOMED, 120, True),
    (
        "kubelet-shutdown",
        "gke",
        {"ready": "False", "ready_message": "[node is shutting down, x]"},
        DOOMED,
        15,
        False,
    ),
    (
        "kubelet-shutdown",
        "gke",
        {"ready": "False", "ready_reason": "node is shutting down"},
        DOOMED,
        15,
        False,
    ),
    ("cordon", "plain", {"spec": {"unschedulable": True}}, HINT, None, False),
    ("cordon-taint", "plain", by_taint("node.kubernetes.io/unschedulable"), HINT, None, False),
    (
        "out-of-service",
        "plain",
        by_taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute"),
        GONE,
        0,
        True,
    ),
    ("stopped", "azure", by_taint("node.cloudprovider.kubernetes.io/shutdown"), GONE, 0, False),
    ("unreachable", "plain", by_taint("node.kubernetes.io/unreachable"), SUSPECT, None, False),
    ("not-ready-taint", "plain", by_taint("node.kubernetes.io/not-ready"), SUSPECT, None, False),
    ("not-ready", "plain", {"ready": "False"}, SUSPECT, None, False),
    ("silent", "plain", {"ready": "Unknown"}, SUSPECT, None, False),
]


@pytest.mark.parametrize(
    ("source", "cloud", "changes", "severity", "lead_s", "latched"),
    ROWS,
    ids=[f"{row[0]}-{row[1]}" for row in ROWS],
)
def test_row(
    source: str,
    cloud: str,
    changes: dict[str, Any],
    severity: Severity,
    lead_s: float | None,
    latched: bool,
) -> None:
    reading = read_node(make_node(cloud, **changes), T0)
    (signal,) = [found for found in reading.signals if found.source == source]
    assert signal.severity is severity
    assert reading.severity is severity
    assert signal.deadline_unix_s == (None if lead_s is None else T0 + lead_s)
    assert signal.latched is latched
    assert reading.usable is (source in ("autoscaler-candidate", "gke-scheduled-maintenance"))


def test_every_row_is_tested() -> None:
    assert {row[0] for row in ROWS} == {rule.source for rule in RULES}


def test_sources_are_unique_and_short() -> None:
    sources = [rule.source for rule in RULES]
    assert len(sources) == len(set(sources))
    assert all(0 < len(source) <= 64 for source in sources)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_quiet_node(cloud: str) -> None:
    """What a node shows all its life is no notice, and keeps no worker away."""
    reading = read_node(make_node(cloud), T0)
    assert reading.signals == ()
    assert reading.severity is Severity.HEALTHY
    assert reading.usable, reading.why_unusable
    assert reading.ready
    assert reading.uid == f"uid-{cloud}"
    assert reading.spot is (cloud != "on-demand")
    assert reading.provider_id == CLOUDS[cloud]["provider_id"]


@pytest.mark.parametrize(
    ("cloud", "expected"),
    [("aws", Cloud.AWS), ("gke", Cloud.GKE), ("azure", Cloud.AZURE), ("plain", Cloud.OTHER)],
)
def test_cloud(cloud: str, expected: Cloud) -> None:
    assert read_node(make_node(cloud), T0).cloud is expected
    labels_only = make_node(cloud, spec={"providerID": ""})
    assert read_node(labels_only, T0).cloud is expected


@pytest.mark.parametrize(
    ("key", "value", "spot"),
    [
        ("cloud.google.com/gke-spot", "true", True),
        ("cloud.google.com/gke-spot", "false", False),
        ("cloud.google.com/gke-preemptible", "true", True),
        ("cloud.google.com/gke-provisioning", "spot", True),
        ("cloud.google.com/gke-provisioning", "preemptible", True),
        ("cloud.google.com/gke-provisioning", "standard", False),
        ("eks.amazonaws.com/capacityType", "SPOT", True),
        ("eks.amazonaws.com/capacityType", "spot", True),
        ("karpenter.sh/capacity-type", "spot", True),
        ("karpenter.sh/capacity-type", "reserved", False),
        ("kubernetes.azure.com/scalesetpriority", "spot", True),
        ("kubernetes.azure.com/scalesetpriority", "regular", False),
        ("cluster.x-k8s.io/interruptible", "", True),
        ("node.kubernetes.io/lifecycle", "spot", True),
        ("node.kubernetes.io/lifecycle", "normal", False),
    ],
)
def test_spot_labels(key: str, value: str, spot: bool) -> None:
    node = make_node("on-demand", labels={key: value})
    assert read_node(node, T0).spot is spot


def test_spot_by_taint() -> None:
    node = make_node("on-demand", taints=[taint("cloud.google.com/gke-spot", "true")])
    reading = read_node(node, T0)
    assert reading.spot
    assert reading.usable


def test_users_own_keys() -> None:
    settings = SignalSettings(
        spot_labels=(("example.com/market", "Cheap"), ("example.com/any", "*")),
        doomed_taints=(UserTaint("example.com/going", 45.0),),
        hint_taints=("example.com/maybe",),
    )
    for label in ({"example.com/market": "CHEAP"}, {"example.com/any": "x"}):
        assert read_node(make_node("on-demand", labels=label), T0, settings).spot
    going = make_node(taints=[taint("example.com/going")])
    (signal,) = read_node(going, T0, settings).signals
    assert (signal.severity, signal.deadline_unix_s, signal.latched) == (DOOMED, T0 + 45, True)
    (signal,) = read_node(make_node(taints=[taint("example.com/maybe")]), T0, settings).signals
    assert signal.severity is HINT
    assert read_node(going, T0).severity is Severity.HEALTHY


def test_time_counts_from_when_the_taint_was_set() -> None:
    itn = taint(f"{NTH}/spot-itn") | {"timeAdded": rfc3339(T0 - 50)}
    (signal,) = read_node(make_node("aws", taints=[itn]), T0).signals
    assert signal.deadline_unix_s == T0 + 70
    (signal,) = read_node(make_node("aws", taints=[itn]), T0 + 500).signals
    assert signal.deadline_unix_s == T0 + 500, "overdue: at any moment"


def test_preempt_follows_a_freeze_under_the_same_condition() -> None:
    """The condition has been true for long; the deadline counts from when Preempt is seen."""
    event = condition("VMEventScheduled", lastTransitionTime=rfc3339(T0 - 900), **PREEMPT)
    reading = read_node(make_node("azure", conditions=[event]), T0)
    (signal,) = [found for found in reading.signals if found.source == "aks-preempt"]
    assert signal.deadline_unix_s == T0 + 30


def test_left_over_scale_down_is_only_a_hint() -> None:
    old = [taint("ToBeDeletedByClusterAutoscaler", str(int(T0) - 1500))]
    assert read_node(make_node(taints=old), T0).severity is HINT
    assert read_node(make_node(taints=old, ready="False"), T0).severity is DOOMED
    unreadable = [taint("ToBeDeletedByClusterAutoscaler", "soon")]
    assert read_node(make_node(taints=unreadable), T0).severity is DOOMED


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
        "ignore-taint.cluster-autoscaler.kubernetes.io/gpu",
        "status-taint.cluster-autoscaler.kubernetes.io/gpu",
        "readiness.k8s.io/gpu",
        "node.cilium.io/agent-not-ready",
    ],
)
def test_startup_taints_keep_workers_away(key: str) -> None:
    reading = read_node(make_node("gke", taints=[taint(key)]), T0)
    assert not reading.usable
    assert key in reading.why_unusable[0]
    assert reading.severity is Severity.HEALTHY, "it starts; it does not go"


def test_foreign_taint_that_pods_tolerate() -> None:
    node = make_node(taints=[taint("example.com/team", "ml")])
    assert not read_node(node, T0).usable
    settings = SignalSettings(tolerated_taints=frozenset({"example.com/team"}))
    assert read_node(node, T0, settings).usable
    soft = make_node(taints=[taint("example.com/team", "ml", "PreferNoSchedule")])
    assert read_node(soft, T0).usable


def test_gpu_must_be_offered() -> None:
    assert not read_node(make_node("gke", gpus=0), T0).usable
    assert read_node(make_node("aws", gpus=0), T0).usable, "no label says that it has one"
    two = SignalSettings(resources=(("nvidia.com/gpu", 2),))
    assert not read_node(make_node("aws", gpus=1), T0, two).usable
    assert read_node(make_node("aws", gpus=2), T0, two).usable


def test_karpenter_node_must_be_initialized() -> None:
    node = make_node("karpenter", labels={"karpenter.sh/initialized": "false"})
    assert not read_node(node, T0).usable
