"""Every known sign on a Node object that it goes away, or may, as data.

``docs/notices.md`` shows these tables; a test holds the two equal.
"""

from __future__ import annotations

import functools

from parcae_operator.signals.model import Cloud, Place, Severity
from parcae_operator.signals.rules import Clock, Needs, NodeRule

NOTICE_S = {Cloud.AWS: 120.0, Cloud.GKE: 30.0, Cloud.AZURE: 30.0, Cloud.OTHER: 30.0}
"""From a cloud's own notice to the end, in seconds: promised by each as "best effort"."""
REBALANCE_TTL_S = 3600.0
"""A rebalance recommendation is never withdrawn and often comes to nothing."""
STALE_AFTER_S = 20 * 60.0
"""A cluster-autoscaler's taint of a scale-down so old, on a ready node, was left behind."""

SUSPECT, HINT, DOOMED, GONE = Severity.SUSPECT, Severity.HINT, Severity.DOOMED, Severity.GONE
SPOT, NOT_SPOT = Needs.SPOT, Needs.NOT_SPOT
_LIFECYCLE = "node lifecycle controller"
_taint = functools.partial(NodeRule, place=Place.TAINT)
_label = functools.partial(NodeRule, place=Place.LABEL)
_condition = functools.partial(NodeRule, place=Place.CONDITION)


def _aws() -> tuple[NodeRule, ...]:
    nth = "aws-node-termination-handler"
    taint = functools.partial(_taint, cloud=Cloud.AWS, setter=f"{nth}, taintNode=true")
    fault = functools.partial(
        _condition, value="False", cloud=Cloud.AWS, setter="EKS node monitoring agent"
    )
    notice = functools.partial(taint, severity=DOOMED, lead_s=120, latched=True)
    return (
        notice(source="nth-spot-itn", key=f"{nth}/spot-itn"),
        notice(source="nth-asg-termination", key=f"{nth}/asg-lifecycle-termination"),
        taint(
            source="nth-rebalance",
            key=f"{nth}/rebalance-recommendation",
            severity=HINT,
            ttl_s=REBALANCE_TTL_S,
            setter=f"{nth}, taintNode=true and enableRebalanceMonitoring=true",
        ),
        taint(
            source="nth-scheduled-maintenance", key=f"{nth}/scheduled-maintenance", severity=HINT
        ),
        _label(
            source="nth-uncordon-after-reboot",
            key=f"{nth}/action",
            value="UncordonAfterReboot",
            severity=HINT,
            cloud=Cloud.AWS,
            setter=nth,
        ),
        fault(source="eks-accelerator", key="AcceleratedHardwareReady", severity=HINT),
        fault(source="eks-storage", key="StorageReady", severity=SUSPECT),
        fault(source="eks-networking", key="NetworkingReady", severity=SUSPECT),
        fault(source="eks-kernel", key="KernelReady", severity=SUSPECT),
        fault(source="eks-runtime", key="ContainerRuntimeReady", severity=SUSPECT),
    )


def _gke() -> tuple[NodeRule, ...]:
    google = "cloud.google.com"
    impending = functools.partial(
        NodeRule,
        key=f"{google}/impending-node-termination",
        severity=DOOMED,
        cloud=Cloud.GKE,
        setter="GKE maintenance handler",
    )
    return (
        # The handler takes its taint off when the other of its two metadata keys says NONE, and
        # when it starts: on a spot node that means nothing.
        impending(source="gke-impending", place=Place.TAINT, needs=SPOT, lead_s=30, latched=True),
        impending(source="gke-maintenance", place=Place.TAINT, needs=NOT_SPOT, lead_s=3600),
        impending(source="gke-impending-condition", place=Place.CONDITION, value="True"),
        impending(source="gke-impending-annotation", place=Place.ANNOTATION, value="true"),
        _label(
            source="gke-active-maintenance",
            key=f"{google}/active-node-maintenance",
            value="ONGOING",
            severity=DOOMED,
            cloud=Cloud.GKE,
            setter="GKE",
        ),
        _label(
            source="gke-scheduled-maintenance",
            key=f"{google}/scheduled-maintenance-time",
            severity=HINT,
            clock=Clock.VALUE,
            blocks=False,  # it is hours or days away
            cloud=Cloud.GKE,
            setter="GKE 1.31.1 and newer, accelerator nodes",
        ),
        _taint(
            source="gke-maintenance-window",
            key=f"{google}/maintenance-window-started",
            severity=HINT,
            cloud=Cloud.GKE,
            setter="GKE",
        ),
    )


def _azure() -> tuple[NodeRule, ...]:
    vm_event = functools.partial(
        _condition,
        key="VMEventScheduled",
        value="True",
        cloud=Cloud.AZURE,
        setter="AKS node-problem-detector",
    )
    preempt = functools.partial(vm_event, severity=DOOMED, latched=True)
    drain = functools.partial(_taint, cloud=Cloud.AZURE, setter="AKS remediator (auto-drain)")
    new, old = (
        f"remediator.{domain}/unschedulable"
        for domain in ("kubernetes.azure.com", "aks.microsoft.com")
    )
    drain_spot = functools.partial(drain, needs=SPOT, severity=DOOMED, lead_s=30, latched=True)
    drain_other = functools.partial(drain, needs=NOT_SPOT, severity=HINT)
    handler = functools.partial(
        _taint, cloud=Cloud.AZURE, setter="aks-node-termination-handler -taint.node"
    )
    prefix = "aks-node-termination-handler"
    doomed = functools.partial(handler, severity=DOOMED, latched=True)
    hint = functools.partial(handler, severity=HINT)
    return (
        preempt(source="aks-preempt", has="Preempt", lead_s=30),
        preempt(source="aks-terminate", has="Terminate", lead_s=300),
        vm_event(source="aks-vm-event", severity=HINT),
        drain_spot(source="aks-remediator", key=new),
        drain_spot(source="aks-remediator-old", key=old),
        drain_other(source="aks-repair", key=new),
        drain_other(source="aks-repair-old", key=old),
        doomed(source="aks-handler-preempt", key=f"{prefix}/preempt", lead_s=30),
        doomed(source="aks-handler-terminate", key=f"{prefix}/terminate", lead_s=300),
        hint(source="aks-handler-redeploy", key=f"{prefix}/redeploy"),
        hint(source="aks-handler-reboot", key=f"{prefix}/reboot"),
        hint(source="aks-handler-freeze", key=f"{prefix}/freeze"),
    )


def _anywhere() -> tuple[NodeRule, ...]:
    karpenter = functools.partial(_taint, key="karpenter.sh/disrupted", setter="Karpenter")
    autoscaler = functools.partial(_taint, setter="cluster-autoscaler")
    return (
        # Without a deletion it is a voluntary disruption, which Karpenter takes back if it fails.
        karpenter(
            source="karpenter-disrupted",
            severity=DOOMED,
            needs=Needs.DELETING,
            lead_s=120,
            latched=True,
        ),
        karpenter(source="karpenter-disruption", severity=HINT, needs=Needs.NOT_DELETING),
        autoscaler(
            source="autoscaler-delete",
            key="ToBeDeletedByClusterAutoscaler",
            severity=DOOMED,
            lead_s=5,
            clock=Clock.VALUE_PLUS_LEAD,
            stale_after_s=STALE_AFTER_S,
        ),
        autoscaler(
            source="autoscaler-candidate",
            key="DeletionCandidateOfClusterAutoscaler",
            severity=HINT,
            blocks=False,  # a worker that starts here is what keeps the node
        ),
        _condition(
            source="openshift-terminating",
            key="Terminating",
            value="True",
            severity=DOOMED,
            latched=True,
            setter="OpenShift machine-api termination handler",
        ),
        _condition(
            source="node-termination",
            key="NodeTermination",
            value="True",
            severity=DOOMED,
            setter="other termination handlers",
        ),
    )


def _kubernetes() -> tuple[NodeRule, ...]:
    lifecycle = functools.partial(_taint, setter=_LIFECYCLE)
    ready = functools.partial(_condition, key="Ready", setter="kubelet")
    return (
        NodeRule(
            source="node-deleted",
            place=Place.DELETION,
            key="metadata.deletionTimestamp",
            severity=DOOMED,
            lead_s=120,
            latched=True,
            setter="Karpenter, kubectl delete node",
        ),
        ready(
            source="kubelet-shutdown",
            value="False",
            has="node is shutting down",
            severity=DOOMED,
            lead_s=15,
        ),
        NodeRule(
            source="cordon",
            place=Place.CORDON,
            key="spec.unschedulable",
            severity=HINT,
            setter="kubectl cordon, any drain",
        ),
        lifecycle(source="cordon-taint", key="node.kubernetes.io/unschedulable", severity=HINT),
        _taint(
            source="out-of-service",
            key="node.kubernetes.io/out-of-service",
            severity=GONE,
            lead_s=0,
            latched=True,
            setter="people; aws-node-termination-handler, enableOutOfServiceTaint=true",
        ),
        _taint(
            source="stopped",
            key="node.cloudprovider.kubernetes.io/shutdown",
            severity=GONE,
            lead_s=0,
            setter="cloud controller manager",
        ),
        lifecycle(source="unreachable", key="node.kubernetes.io/unreachable", severity=SUSPECT),
        lifecycle(source="not-ready-taint", key="node.kubernetes.io/not-ready", severity=SUSPECT),
        ready(source="not-ready", value="False", severity=SUSPECT),
        ready(source="silent", value="Unknown", severity=SUSPECT, setter=_LIFECYCLE),
    )


RULES: tuple[NodeRule, ...] = (*_aws(), *_gke(), *_azure(), *_anywhere(), *_kubernetes())
