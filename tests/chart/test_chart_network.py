"""The chart's network policies: who may talk to whom; what the operator puts into each job's."""

from __future__ import annotations

from typing import Any

import pytest
from chart_site import NAMESPACE, Helm, Object, Render, of_kind, templates

from parcae_operator.kube.network_policy import NetworkRules
from parcae_operator.kube.settings import from_environment

pytestmark = pytest.mark.cluster

MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


def policies(objects: list[Object]) -> dict[str, Object]:
    """Specs by the program that they are for."""
    found = of_kind(objects, "NetworkPolicy")
    return {name.removeprefix("parcae-"): each["spec"] for name, each in found.items()}


def rules(objects: list[Object]) -> NetworkRules | None:
    """As the operator reads them."""
    [container] = templates(objects)["operator"]["spec"]["containers"]
    given = {each["name"]: each.get("value", "") for each in container["env"]}
    return from_environment(given | {"PARCAE_IDENTITY": "x"}).network_policy


def ports(policy_rules: list[Any] | tuple[Any, ...]) -> list[set[int]]:
    return [{port["port"] for port in rule.get("ports", ())} for rule in policy_rules]


def test_each_selects_the_pods_of_its_program(render: Render) -> None:
    objects = render()
    for program, spec in policies(objects).items():
        labels = templates(objects)[program]["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    assert set(policies(objects)) == {"operator", "planner", "etcd"}


def test_every_listening_port_is_meant_for_somebody(render: Render) -> None:
    objects = render()
    for program, spec in policies(objects).items():
        [container] = templates(objects)[program]["spec"]["containers"]
        listening = {each["containerPort"] for each in container["ports"]}
        if program == "operator":
            listening.remove(8080)  # its kubelet's, whom no policy keeps out
        assert set().union(*ports(spec["ingress"])) == listening


def test_the_board_is_for_agents_the_operator_and_its_members(render: Render) -> None:
    agents, members, metrics = policies(render())["etcd"]["ingress"]
    operator, jobs = agents["from"]
    assert operator["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "operator"
    assert jobs == {
        "namespaceSelector": {},
        "podSelector": {"matchExpressions": [{"key": "parcae.dev/job-uid", "operator": "Exists"}]},
    }
    assert ports([agents, members, metrics]) == [{2379}, {2379, 2380}, {2381}]
    jobs = policies(render(watchNamespace="team"))["etcd"]["ingress"][0]["from"][1]
    team = {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
    assert jobs["namespaceSelector"] == team


def test_the_planner_asks_nobody(render: Render) -> None:
    spec = policies(render())["planner"]
    assert "Egress" in spec["policyTypes"]
    assert "egress" not in spec


def test_agents_reach_names_notices_and_the_board(render: Render) -> None:
    found = rules(render(networkPolicy={"agents": {"egress": []}}))
    assert found is not None
    assert ports(found.egress) == [{53}, {80}, {988}, {2379}]
    [etcd] = found.egress[3]["to"]
    release = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    assert etcd["namespaceSelector"] == release
    assert etcd["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "etcd"


def test_agents_reach_what_is_no_private_network_unless_told(render: Render) -> None:
    found = rules(render())
    assert found is not None
    four, six = (peer["ipBlock"] for peer in found.egress[-1]["to"])
    assert "10.0.0.0/8" in four["except"]
    assert six["cidr"] == "::/0"


def test_an_etcd_of_the_users_own_is_allowed_by_its_ports(render: Render) -> None:
    board = {"endpoints": ["a:2379"], "agentEndpoints": ["b:12379", "c:22379"]}
    found = rules(render(etcd={"enabled": False}, board=board))
    assert found is not None
    assert ports(found.egress)[3:5] == [{12379}, {22379}]


def test_what_the_user_allows_comes_last(render: Render) -> None:
    allowed = {"from": [MONITORING], "ports": [{"port": 9000}]}
    found = rules(render(networkPolicy={"agents": {"ingress": [allowed]}}))
    assert found is not None
    assert found.ingress[-1] == allowed


def test_metrics_can_be_for_prometheus_only(render: Render) -> None:
    objects = render(networkPolicy={"metricsFrom": [MONITORING]})
    found = rules(objects)
    assert found is not None
    told = [found.ingress[0], *(spec["ingress"][-1] for spec in policies(objects).values())]
    assert [each["from"] for each in told] == [[MONITORING]] * 4


def test_none_at_all(render: Render) -> None:
    objects = render(networkPolicy={"enabled": False})
    assert policies(objects) == {}
    assert rules(objects) is None


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"agents": {"egress": [{"from": []}]}}, "networkPolicy/agents/egress/0"),
        ({"metricsFrom": [{"namespace": "x"}]}, "networkPolicy/metricsFrom/0"),
        ({"enable": True}, "networkPolicy"),
    ],
)
def test_a_mistake_is_named(helm: Helm, values: Object, place: str) -> None:
    done = helm("template", "parcae", values={"networkPolicy": values})
    assert done.returncode != 0
    assert place in done.stderr
