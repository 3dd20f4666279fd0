"""What agents hear of their machines, for all that run on them."""

from __future__ import annotations

import pytest
from kube_objects import make_node, make_pod

from parcae_api.membership import AgentState, Hint, Membership, Notice
from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.store import ClusterStore
from parcae_operator.signals import Severity

NOW = 1_900_000_010.0


def agent(notice: Notice | None = None, hint: Hint | None = None) -> Membership:
    return Membership(
        incarnation="gpt-a-0",
        pod="gpt-a",
        node="node-1",
        node_uid="",
        address="10.0.0.1",
        state=AgentState.LEAVING,
        workers=(),
        notice=notice,
        hint=hint,
    )


@pytest.fixture
def woken() -> list[JobKey]:
    return []


@pytest.fixture
def store(woken: list[JobKey]) -> ClusterStore:
    """Two jobs' pods on one node."""
    store = ClusterStore(on_change=woken.append, clock=lambda: NOW)
    store.saw_node(make_node())
    for job in ("gpt", "bert"):
        store.saw_pod(make_pod(f"{job}-a", job=job, node="node-1"))
        store.pods_of(JobKey("team", job), f"uid-of-{job}")
    woken.clear()
    return store


def severities(store: ClusterStore) -> list[Severity]:
    return [
        pod.node_state.severity
        for job in ("gpt", "bert")
        for pod in store.pods_of(JobKey("team", job), f"uid-of-{job}")
    ]


def test_a_clouds_notice_is_about_the_node(store: ClusterStore, woken: list[JobKey]) -> None:
    said = agent(Notice(deadline_unix_s=NOW + 100, source="aws-metadata"))
    store.heard_agent("uid-of-gpt-a", said)
    assert severities(store) == [Severity.DOOMED] * 2
    assert woken == [JobKey("team", "bert")]  # whoever heard it looks by itself
    store.heard_agent("uid-of-gpt-a", said)
    assert len(woken) == 1
    (pod,) = store.pods_of(JobKey("team", "bert"), "uid-of-bert")
    assert pod.node_state.notice == Notice(deadline_unix_s=NOW + 100, source="aws-metadata")


def test_a_sigterm_is_about_one_pod(store: ClusterStore, woken: list[JobKey]) -> None:
    store.heard_agent("uid-of-gpt-a", agent(Notice(deadline_unix_s=NOW + 30, source="sigterm")))
    assert severities(store) == [Severity.HEALTHY] * 2
    assert woken == []


def test_a_hint_is_no_notice(store: ClusterStore, woken: list[JobKey]) -> None:
    hint = Hint(source="aws-rebalance", since_unix_s=NOW)
    store.heard_agent("uid-of-gpt-a", agent(hint=hint))
    assert severities(store) == [Severity.HINT] * 2
    assert woken == [JobKey("team", "bert")]


def test_pods_and_nodes_that_nobody_knows_are_left_alone(store: ClusterStore) -> None:
    notice = Notice(deadline_unix_s=NOW + 100, source="aws-metadata")
    store.heard_agent("unknown", agent(notice))
    store.saw_pod(make_pod("gpt-b", node="node-unheard-of"))
    store.heard_agent("uid-of-gpt-b", agent(notice))
    assert severities(store)[0] is Severity.HEALTHY


def test_an_agent_that_has_heard_nothing(store: ClusterStore, woken: list[JobKey]) -> None:
    store.heard_agent("uid-of-gpt-a", agent())
    assert severities(store) == [Severity.HEALTHY] * 2
    assert woken == []
