"""Spot signals: one notion of a notice over all clouds, from raw Kubernetes objects. Pure.

Use, by whoever watches the cluster::

    latch = NoticeLatch(LatchRecords.from_json(kept))      # or NoticeLatch()
    node = read_node(raw_node, now, settings)              # never raises, whatever it is given
    state = latch.observe(node)                            # how it stands: NodeState
    signal = read_event(raw_event, node, now)              # None, or something to raise
    if signal: latch.raise_(node.uid, signal)
    latch.raise_notice(member.node_uid, member.notice, now)  # an agent's metadata notice
    latch.raise_hint(member.node_uid, member.hint, now)    # each time, while it shows one
    latch.settle(uids_of_a_full_list, now)                 # after each re-list; also every minute
    pod = read_pod(raw_pod, node, now, state=state, node_gone=…)
    Pod(pod.name, pod.phase, pod.node_name, earliest(pod.notice, latch.notices().get(node.uid)))

``pod.loss.blame`` says whether a loss counts as a failure of the job. ``latch.hints()`` are for the
forecast alone, ``latch.suspects()`` call for a second source before anybody acts.
All times are seconds since 1970.
"""

from parcae_operator.signals.events import event_node, read_event
from parcae_operator.signals.latch import LatchRecords, NodeState, NoticeLatch
from parcae_operator.signals.model import (
    Blame,
    Cloud,
    Loss,
    NodeReading,
    PodReading,
    Severity,
    Signal,
    earliest,
)
from parcae_operator.signals.node import read_node
from parcae_operator.signals.pod import read_pod
from parcae_operator.signals.rules import SignalSettings, UserTaint

__all__ = [
    "Blame",
    "Cloud",
    "LatchRecords",
    "Loss",
    "NodeReading",
    "NodeState",
    "NoticeLatch",
    "PodReading",
    "Severity",
    "Signal",
    "SignalSettings",
    "UserTaint",
    "earliest",
    "event_node",
    "read_event",
    "read_node",
    "read_pod",
]
