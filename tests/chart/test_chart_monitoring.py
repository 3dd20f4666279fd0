"""What the chart gives Prometheus, and when it leaves that out and says so."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml
from chart_site import (
    CHART,
    KINDS,
    NAMESPACE,
    Helm,
    Object,
    of_kind,
    rendered,
    templates,
)

from parcae_api.job import ParcaeJob
from parcae_operator.kube.pod_template import make_pod

pytestmark = pytest.mark.cluster

AGENTS = "parcae-agents"
LEFT_OUT = "the cluster has no kinds of the Prometheus operator"


def notes(helm: Helm, **values: Any) -> str:
    done = helm("install", "parcae", "--dry-run=client", "--output=json", values=values)
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["info"]["notes"]
    return found


class TestMonitors:
    def test_are_left_out_and_that_is_said_without_their_kinds(self, helm: Helm) -> None:
        objects = rendered(helm)
        assert not of_kind(objects, "PodMonitor")
        assert not of_kind(objects, "PrometheusRule")
        assert LEFT_OUT in notes(helm)

    def test_are_there_with_their_kinds(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS)
        assert set(of_kind(objects, "PodMonitor")) == {
            "parcae-operator",
            "parcae-planner",
            "parcae-etcd",
            "parcae-agents",
        }
        assert set(of_kind(objects, "PrometheusRule")) == {"parcae"}

    def test_are_there_by_force(self, helm: Helm) -> None:
        objects = rendered(helm, monitoring={"force": True})
        assert len(of_kind(objects, "PodMonitor")) == 4
        assert len(of_kind(objects, "PrometheusRule")) == 1
        assert "monitoring.force" in notes(helm, monitoring={"force": True})

    def test_are_not_there_where_monitoring_is_off(self, helm: Helm) -> None:
        off = {"enabled": False, "force": True, "scrapeAnnotations": True}
        objects = rendered(helm, KINDS, monitoring=off)
        for kind in ("PodMonitor", "PrometheusRule", "ConfigMap"):
            assert not of_kind(objects, kind)
        for template in templates(objects).values():
            assert "annotations" not in template["metadata"]
        assert LEFT_OUT not in notes(helm, monitoring={"enabled": False})

    def test_find_the_pods_and_a_port_that_they_have(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS)
        pods = templates(objects)
        for name, monitor in programs(objects).items():
            pod = pods[name.removeprefix("parcae-")]
            wanted = monitor["spec"]["selector"]["matchLabels"]
            assert wanted.items() <= pod["metadata"]["labels"].items()
            assert monitor["metadata"]["namespace"] == NAMESPACE
            [endpoint] = monitor["spec"]["podMetricsEndpoints"]
            [container] = pod["spec"]["containers"]
            assert endpoint["port"] in {port["name"] for port in container["ports"]}
            assert endpoint["interval"] == "15s"

    def test_select_one_program_each(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS)
        for monitor in programs(objects).values():
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            fits = [
                name
                for name, pod in templates(objects).items()
                if wanted <= pod["metadata"]["labels"].items()
            ]
            assert len(fits) == 1

    def test_keep_the_job_that_a_series_is_about(self, helm: Helm) -> None:
        monitors = of_kind(rendered(helm, KINDS), "PodMonitor")
        honoring = {
            name: bool(each["spec"]["podMetricsEndpoints"][0].get("honorLabels"))
            for name, each in monitors.items()
        }
        assert honoring == {
            "parcae-operator": True,
            "parcae-planner": False,
            "parcae-etcd": False,
            "parcae-agents": True,
        }

    def test_are_of_what_is_installed(self, helm: Helm) -> None:
        objects = rendered(
            helm,
            KINDS,
            planner={"enabled": False},
            etcd={"enabled": False},
            board={"endpoints": ["etcd:2379"]},
        )
        assert set(programs(objects)) == {"parcae-operator"}
        assert "ParcaePlannerDown" not in alerts(objects)
        assert "ParcaePlannerDown" in alerts(rendered(helm, KINDS))

    def test_have_the_labels_by_which_they_are_picked(self, helm: Helm) -> None:
        picked = {"labels": {"release": "kps"}, "interval": "1m"}
        objects = rendered(helm, KINDS, monitoring=picked)
        for kind in ("PodMonitor", "PrometheusRule"):
            for each in of_kind(objects, kind).values():
                assert each["metadata"]["labels"]["release"] == "kps"
                assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "parcae"
        for each in of_kind(objects, "PodMonitor").values():
            assert each["spec"]["podMetricsEndpoints"][0]["interval"] == "1m"


def programs(objects: list[Object]) -> dict[str, Object]:
    """Monitors of what the chart itself runs."""
    found = of_kind(objects, "PodMonitor")
    return {name: each for name, each in found.items() if name != AGENTS}


class TestTheAgentsMonitor:
    @pytest.mark.parametrize(
        ("watched", "where"), [("", {"any": True}), ("team", {"matchNames": ["team"]})]
    )
    def test_finds_the_pods_that_the_operator_makes(
        self, helm: Helm, watched: str, where: Object
    ) -> None:
        monitor = of_kind(rendered(helm, KINDS, watchNamespace=watched), "PodMonitor")[AGENTS]
        assert monitor["spec"]["namespaceSelector"] == where
        pod = agent_pod()
        wanted = monitor["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= pod["metadata"]["labels"].items()
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        [port] = pod["spec"]["containers"][0]["ports"]
        assert (endpoint["port"], port["containerPort"]) == (port["name"], 8082)
        labels = {
            "__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", k): v
            for k, v in pod["metadata"]["labels"].items()
        }
        [job] = [each for each in endpoint["relabelings"] if each["targetLabel"] == "job"]
        assert [labels[name] for name in job["sourceLabels"]] == ["gpt"]

    def test_can_be_left_out_alone(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS, monitoring={"agents": {"enabled": False}})
        assert set(of_kind(objects, "PodMonitor")) == set(programs(objects)) != set()

    def test_comes_with_values_of_an_earlier_chart(self, helm: Helm) -> None:
        assert AGENTS in of_kind(rendered(helm, KINDS, monitoring={"agents": None}), "PodMonitor")


def agent_pod() -> Object:
    job = ParcaeJob.model_validate(
        {
            "apiVersion": "parcae.dev/v1alpha1",
            "kind": "ParcaeJob",
            "metadata": {"name": "gpt", "namespace": "team", "uid": "u"},
            "spec": {
                "instances": {"max": 2},
                "entrypoint": {"function": "m:f"},
                "template": {"spec": {"containers": [{"image": "gpt:1"}]}},
            },
        }
    )
    return make_pod(job, "gpt-1", agent_config={}, settings=None)


def alerts(objects: list[Object]) -> dict[str, Object]:
    [rule] = of_kind(objects, "PrometheusRule").values()
    return {each["alert"]: each for group in rule["spec"]["groups"] for each in group["rules"]}


class TestAlerts:
    def test_are_the_rules_file(self, helm: Helm) -> None:
        [rule] = of_kind(rendered(helm, KINDS), "PrometheusRule").values()
        assert rule["spec"] == yaml.safe_load((CHART / "rules" / "parcae.yaml").read_text())

    def test_lead_to_the_runbooks_of_the_reader(self, helm: Helm) -> None:
        base = "https://runbooks.example/parcae/"
        found = alerts(rendered(helm, KINDS, monitoring={"runbookBase": base}))
        for name, each in found.items():
            url = each["annotations"]["runbook_url"]
            assert url == f"https://runbooks.example/parcae#{name.lower()}"

    def test_can_be_left_out_alone(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS, monitoring={"alerts": {"enabled": False}})
        assert not of_kind(objects, "PrometheusRule")
        assert len(of_kind(objects, "PodMonitor")) == 4


class TestPods:
    def test_the_operator_serves_its_metrics_where_its_port_says(self, helm: Helm) -> None:
        [container] = templates(rendered(helm))["operator"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        environment = {each["name"]: each.get("value") for each in container["env"]}
        assert environment["PARCAE_METRICS_PORT"] == str(ports["metrics"])
        assert ports["metrics"] != ports["health"]

    @pytest.mark.parametrize("log_format", ["json", "text"])
    def test_write_their_logs_in_one_format(self, helm: Helm, log_format: str) -> None:
        pods = templates(rendered(helm, operator={"logFormat": log_format}))
        for program in ("operator", "planner"):
            [container] = pods[program]["spec"]["containers"]
            environment = {each["name"]: each.get("value") for each in container["env"]}
            assert environment["PARCAE_LOG_FORMAT"] == log_format

    def test_say_where_their_metrics_are_if_asked(self, helm: Helm) -> None:
        pods = templates(rendered(helm, monitoring={"scrapeAnnotations": True}))
        for program, port in (("operator", "8081"), ("planner", "8080"), ("etcd", "2381")):
            said = pods[program]["metadata"]["annotations"]
            assert said["prometheus.io/scrape"] == "true"
            assert said["prometheus.io/path"] == "/metrics"
            assert said["prometheus.io/port"] == port
            [container] = pods[program]["spec"]["containers"]
            assert int(port) in {each["containerPort"] for each in container["ports"]}

    def test_annotations_of_values_win(self, helm: Helm) -> None:
        own = {"prometheus.io/scrape": "false", "team": "ml"}
        pods = templates(
            rendered(helm, monitoring={"scrapeAnnotations": True}, operator={"podAnnotations": own})
        )
        assert own.items() <= pods["operator"]["metadata"]["annotations"].items()
        alone = templates(rendered(helm, operator={"podAnnotations": own}))
        assert alone["operator"]["metadata"]["annotations"] == own
        assert "annotations" not in alone["planner"]["metadata"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"enable": True}, "enable"),
        ({"enabled": "yes"}, "enabled"),
        ({"interval": "often"}, "interval"),
        ({"labels": {"release": 1}}, "release"),
        ({"alerts": {"rules": []}}, "rules"),
        ({"agents": {"enabled": "yes"}}, "enabled"),
        ({"agents": {"port": 8082}}, "port"),
        ({"dashboards": {"folder": "Parcae"}}, "folder"),
        ({"dashboards": {"namespace": "No_Name"}}, "namespace"),
        ({"runbookBase": ""}, "runbookBase"),
    ],
)
def test_wrong_values_are_refused(helm: Helm, values: dict[str, Any], told: str) -> None:
    done = helm("template", "parcae", values={"monitoring": copy.deepcopy(values)})
    assert done.returncode != 0
    assert told in done.stderr
