"""The chart as Helm renders it: defaults, values, refusals, and what the pods may do."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from chart_site import NAMESPACE, ROOT, Helm, Object, Render

from parcae_api.crd import CRD_FILE
from parcae_operator.kube.settings import from_environment

pytestmark = pytest.mark.cluster

NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
JOBS: list[Object] = [
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["parcae.dev"],
        "resources": ["parcaejobs"],
        "verbs": ["list", "watch", "delete"],
    },
    {"apiGroups": ["parcae.dev"], "resources": ["parcaejobs/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch"]},
    {
        "apiGroups": ["networking.k8s.io"],
        "resources": ["networkpolicies"],
        "verbs": ["create", "patch", "delete"],
    },
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


def by_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def pods(objects: list[Object]) -> dict[str, Object]:
    """Pod specs by the component that they are."""
    found = {}
    for each in objects:
        pod = each if each["kind"] == "Pod" else each.get("spec", {}).get("template")
        if isinstance(pod, dict):
            component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
            found[component] = pod["spec"]
    return found


def environment(pod: Object) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in pod["containers"][0].get("env", [])}


def test_lint(helm: Helm) -> None:
    done = helm("lint", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr


def test_defaults(render: Render) -> None:
    objects = render()
    kinds = sorted(each["kind"] for each in objects)
    assert kinds == [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "ConfigMap",
        "CustomResourceDefinition",
        "Deployment",
        "Deployment",
        "Job",
        "NetworkPolicy",
        "NetworkPolicy",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Secret",
        "Secret",
        "Secret",
        "Service",
        "Service",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    ]
    for each in objects:
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "parcae"


def test_one_operator_at_a_time(render: Render) -> None:
    spec = by_kind(render(), "Deployment")["parcae-operator"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


def test_the_operator_understands_its_settings(render: Render) -> None:
    settings = from_environment(environment(pods(render())["operator"]) | {"PARCAE_IDENTITY": "x"})
    assert settings.endpoints == ("parcae-etcd.infra.svc:2379",)
    assert settings.agent_endpoints == settings.endpoints
    assert settings.planner == "http://parcae-planner.infra.svc:8080"
    assert settings.namespace == ""
    assert settings.liveness_port == 8080


def test_another_etcd_and_no_planner(render: Render) -> None:
    objects = render(
        etcd={"enabled": False},
        board={"endpoints": ["a:2379", "b:2379"], "agentEndpoints": ["c:2379"]},
        planner={"enabled": False},
        watchNamespace="team",
    )
    settings = from_environment(environment(pods(objects)["operator"]) | {"PARCAE_IDENTITY": "x"})
    assert settings.endpoints == ("a:2379", "b:2379")
    assert settings.agent_endpoints == ("c:2379",)
    assert settings.planner == ""
    assert settings.namespace == "team"
    assert set(pods(objects)) == {"operator", "test"}


class TestRights:
    def test_of_the_operator_in_all_namespaces(self, render: Render) -> None:
        objects = render()
        assert by_kind(objects, "Role") == {}
        [role] = by_kind(objects, "ClusterRole").values()
        assert role["rules"] == [NODES, *JOBS]

    def test_of_the_operator_in_one_namespace(self, render: Render) -> None:
        objects = render(watchNamespace="team")
        [everywhere] = by_kind(objects, "ClusterRole").values()
        assert everywhere["rules"] == [NODES]
        [role] = by_kind(objects, "Role").values()
        assert role["metadata"]["namespace"] == "team"
        assert role["rules"] == JOBS

    @pytest.mark.parametrize("scope", ["", "team"])
    def test_are_of_the_operator_alone(self, render: Render, scope: str) -> None:
        objects = render(watchNamespace=scope)
        bindings = {**by_kind(objects, "ClusterRoleBinding"), **by_kind(objects, "RoleBinding")}
        assert len(bindings) == 1 + bool(scope)
        for each in bindings.values():
            assert each["subjects"] == [
                {"kind": "ServiceAccount", "name": "parcae-operator", "namespace": NAMESPACE}
            ]

    def test_no_other_program_has_a_token(self, render: Render) -> None:
        with_token = {
            name for name, pod in pods(render()).items() if pod["automountServiceAccountToken"]
        }
        assert with_token == {"operator", "test"}  # the test asks for the API's kinds, as all may


@pytest.mark.parametrize("component", ["operator", "planner", "etcd", "test"])
def test_pods_are_restricted(render: Render, component: str) -> None:
    pod = pods(render())[component]
    assert pod["enableServiceLinks"] is False
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65532
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert not container["image"].endswith(":latest")
    if component != "test":
        assert "livenessProbe" in container
        assert "startupProbe" in container


def test_pods_beside_spot_nodes(render: Render) -> None:
    preferred = pods(render())["operator"]["affinity"]["nodeAffinity"]
    assert list(preferred) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    required = pods(render(avoidSpot="required"))["etcd"]["affinity"]["nodeAffinity"]
    [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert len(term["matchExpressions"]) == 8
    assert "affinity" not in pods(render(avoidSpot="none"))["planner"]


def test_placement_values_reach_all_pods(render: Render) -> None:
    objects = render(
        nodeSelector={"pool": "safe"},
        tolerations=[{"key": "infra", "operator": "Exists"}],
        priorityClassName="high",
        imagePullSecrets=[{"name": "key"}],
        image={"registry": "ghcr.io/acme/", "tag": "1.2.3"},
    )
    for name, pod in pods(objects).items():
        assert pod["nodeSelector"] == {"pool": "safe"}
        assert pod["tolerations"] == [{"key": "infra", "operator": "Exists"}]
        assert pod["priorityClassName"] == "high"
        assert pod["imagePullSecrets"] == [{"name": "key"}]
        image = pod["containers"][0]["image"]
        if name != "etcd":
            program = "operator" if name == "test" else name
            assert image == f"ghcr.io/acme/parcae-{program}:1.2.3"


def test_the_crd_is_ours(render: Render) -> None:
    crd = yaml.safe_load((ROOT / CRD_FILE).read_text())
    [kept] = by_kind(render(), "CustomResourceDefinition").values()
    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    [gone] = by_kind(render(crds={"keep": False}), "CustomResourceDefinition").values()
    assert "helm.sh/resource-policy" not in gone["metadata"].get("annotations", {})
    assert kept["spec"] == gone["spec"] == crd["spec"]
    assert by_kind(render(crds={"enabled": False}), "CustomResourceDefinition") == {}


def test_etcd_keeps_its_data_or_not(render: Render) -> None:
    [kept] = by_kind(render(), "StatefulSet").values()
    assert kept["spec"]["volumeClaimTemplates"][0]["spec"]["resources"] == {
        "requests": {"storage": "2Gi"}
    }
    lost = by_kind(render(etcd={"replicas": 1, "persistence": {"enabled": False}}), "StatefulSet")
    [spec] = [each["spec"] for each in lost.values()]
    assert "volumeClaimTemplates" not in spec
    assert {"name": "data", "emptyDir": {}} in spec["template"]["spec"]["volumes"]


def test_names_fit(render: Render) -> None:
    for each in render(fullnameOverride="a" * 63):
        assert len(each["metadata"]["name"]) <= 63


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"operater": {}}, "operater"),
        ({"operator": {"replicas": 2}}, "replicas"),
        ({"planner": {"model": "crystal-ball"}}, "model"),
        ({"avoidSpot": True}, "avoidSpot"),
        ({"etcd": {"persistence": {"size": "much"}}}, "size"),
        ({"etcd": {"enabled": False}}, "endpoints"),
        ({"etcd": {"replicas": 2}}, "replicas"),
        ({"etcd": {"persistence": {"enabled": False}}}, "persistence.enabled"),
        ({"etcd": {"security": {"enable": True}}}, "enable"),
        ({"etcd": {"security": {"certManager": {"enabled": True}}}}, "issuerRef"),
        ({"board": {"endpoints": ["http://etcd:2379/"]}}, "endpoints"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"watchNamespace": "No_Name"}, "watchNamespace"),
    ],
)
def test_wrong_values_are_refused(helm: Helm, values: dict[str, Any], told: str) -> None:
    done = helm("template", "parcae", values=copy.deepcopy(values))
    assert done.returncode != 0
    assert told in done.stderr


def test_the_test_clusters_values_are_allowed(helm: Helm) -> None:
    values = yaml.safe_load((ROOT / "tests" / "deploy" / "values.yaml").read_text())
    assert helm("template", "parcae", values=values).returncode == 0


def test_a_chart_that_changes_its_version_restarts_nothing(render: Render) -> None:
    for each in render():
        template = each.get("spec", {}).get("template")
        if isinstance(template, dict):
            labels = template["metadata"]["labels"]
            assert not {"helm.sh/chart", "app.kubernetes.io/version"} & labels.keys()


@pytest.mark.parametrize("keep", [True, False])
def test_what_running_jobs_know_of_the_board_stays_as_they_do(render: Render, keep: bool) -> None:
    secrets = by_kind(render(crds={"keep": keep}), "Secret")
    for name in ("parcae-board", "parcae-etcd-ca"):
        annotations = secrets[name]["metadata"]["annotations"] or {}
        assert (annotations.get("helm.sh/resource-policy") == "keep") is keep


class TestPriority:
    def test_none_is_made_unasked(self, render: Render) -> None:
        objects = render()
        assert by_kind(objects, "PriorityClass") == {}
        assert all("priorityClassName" not in pod for pod in pods(objects).values())

    def test_programs_go_before_others_and_agents_evict_nobody(self, render: Render) -> None:
        objects = render(priorityClasses={"create": True})
        classes = by_kind(objects, "PriorityClass")
        assert classes["parcae-control"]["value"] > 0 > classes["parcae-agents"]["value"]
        assert classes["parcae-agents"]["preemptionPolicy"] == "Never"
        assert {pod["priorityClassName"] for pod in pods(objects).values()} == {"parcae-control"}

    def test_the_users_own_class_wins(self, render: Render) -> None:
        objects = render(priorityClasses={"create": True}, priorityClassName="high")
        assert {pod["priorityClassName"] for pod in pods(objects).values()} == {"high"}
