"""Who may talk to a job's agents, and whom they may talk to: one NetworkPolicy for each job.

NCCL and gloo neither encrypt nor ask who is there, so what keeps strangers from a worker's ports is
the cluster's network. No policy can say "of the same job" for all jobs at once, as it compares
labels with constants only: hence one for each, which belongs to the job and goes with it.
"""

from __future__ import annotations

from typing import Any

from parcae_api.job import ParcaeJob
from parcae_api.model import Contract
from parcae_operator.kube.labels import JOB_UID, owned_metadata

Object = dict[str, Any]
Rule = dict[str, Any]


class NetworkRules(Contract):
    """What agents of all jobs are allowed besides their own job: rules of a NetworkPolicy."""

    ingress: tuple[Rule, ...] = ()
    egress: tuple[Rule, ...] = ()


def policy_name(job: ParcaeJob) -> str:
    """The NetworkPolicy of a job's pods. Another job of that name has another one."""
    return f"{job.metadata.name}-agents-{job.metadata.uid[:8]}"


def network_policy(job: ParcaeJob, rules: NetworkRules) -> Object:
    """All else than the job's own pods and the rules is refused, both ways."""
    own = {"podSelector": {"matchLabels": {JOB_UID: job.metadata.uid}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owned_metadata(job, policy_name(job)),
        "spec": {
            "podSelector": own["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [own]}, *rules.ingress],
            "egress": [{"to": [own]}, *rules.egress],
        },
    }
