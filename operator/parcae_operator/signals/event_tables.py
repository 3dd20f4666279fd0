"""Reasons of Kubernetes Events that tell of a node's end. Data; they only ever raise."""

from __future__ import annotations

from parcae_operator.signals.model import Cloud, Severity
from parcae_operator.signals.rules import EventRule, Needs

AWS, GKE, AZURE = Cloud.AWS, Cloud.GKE, Cloud.AZURE
HINT, DOOMED, GONE = Severity.HINT, Severity.DOOMED, Severity.GONE
_NPD = "AKS node-problem-detector"

_KARPENTER_AWS = "Karpenter (AWS)"
_NTH_EVENTS = "aws-node-termination-handler, emitKubernetesEvents=true"

EVENTS: tuple[EventRule, ...] = (
    *(
        EventRule(
            reason=reason, severity=DOOMED, lead_s=120, latched=True, cloud=AWS, setter=setter
        )
        for setter, reasons in (
            (_NTH_EVENTS, ("SpotInterruption", "ASGLifecycle", "SQSTermination", "StateChange")),
            (
                _KARPENTER_AWS,
                (
                    "SpotInterrupted",
                    "TerminatingOnInterruption",
                    "InstanceStopping",
                    "InstanceTerminating",
                    "CapacityReservationInstanceInterrupted",
                ),
            ),
        )
        for reason in reasons
    ),
    *(
        EventRule(reason=reason, severity=HINT, cloud=AWS, setter=setter)
        for reason, setter in (
            ("RebalanceRecommendation", _NTH_EVENTS),
            ("SpotRebalanceRecommendation", _KARPENTER_AWS),
            ("ScheduledEvent", _NTH_EVENTS),
            ("InstanceUnhealthy", _KARPENTER_AWS),
        )
    ),
    *(
        EventRule(
            reason=reason, severity=DOOMED, lead_s=lead_s, latched=True, cloud=AZURE, setter=_NPD
        )
        for reason, lead_s in (("PreemptScheduled", 30.0), ("TerminateScheduled", 300.0))
    ),
    *(
        EventRule(reason=reason, severity=HINT, cloud=AZURE, setter=_NPD)
        for reason in ("RedeployScheduled", "RebootScheduled", "FreezeScheduled")
    ),
    EventRule(
        reason="ImpendingNodeTermination",
        severity=DOOMED,
        needs=Needs.SPOT,
        lead_s=30,
        latched=True,
        cloud=GKE,
        setter="GKE maintenance handler, k8s-node-termination-handler",
    ),
    EventRule(
        reason="ImpendingNodeTermination",
        severity=DOOMED,
        needs=Needs.NOT_SPOT,
        lead_s=3600,
        cloud=GKE,
        setter="GKE maintenance handler",
    ),
    EventRule(
        reason="DeletingNode",
        severity=GONE,
        lead_s=0,
        latched=True,
        setter="cloud controller manager",
    ),
)

EVENTS_THAT_CLEAR = frozenset(
    {"Uncordon", "NoImpendingNodeTermination", "ClusterAutoscalerCleanup", "ScaleDownFailed"}
)
"""Known, and not acted on: what they withdraw is withdrawn where it was set, and that is not lost.
"""
