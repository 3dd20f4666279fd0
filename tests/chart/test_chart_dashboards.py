"""The dashboards as the chart gives them to Grafana's sidecar."""

from __future__ import annotations

import pytest
from chart_site import CHART, KINDS, NAMESPACE, Helm, of_kind, rendered

pytestmark = pytest.mark.cluster


class TestDashboards:
    def test_are_the_files(self, helm: Helm) -> None:
        found = of_kind(rendered(helm), "ConfigMap")
        files = {path.name: path.read_text() for path in (CHART / "dashboards").glob("*.json")}
        data = {}
        for each in found.values():
            assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
            assert each["metadata"]["annotations"] == {"grafana_folder": "Parcae"}
            assert each["metadata"]["namespace"] == NAMESPACE
            data.update(each["data"])
        assert data == files
        assert set(found) == {"parcae-job-dashboard", "parcae-fleet-dashboard"}

    def test_go_where_the_sidecar_looks(self, helm: Helm) -> None:
        place = {"namespace": "grafana", "labels": {"grafana_dashboard": None, "mine": "yes"}}
        found = of_kind(rendered(helm, monitoring={"dashboards": place}), "ConfigMap")
        for each in found.values():
            assert each["metadata"]["namespace"] == "grafana"
            assert each["metadata"]["labels"]["mine"] == "yes"
            assert "grafana_dashboard" not in each["metadata"]["labels"]

    def test_can_be_left_out_alone(self, helm: Helm) -> None:
        objects = rendered(helm, KINDS, monitoring={"dashboards": {"enabled": False}})
        assert not of_kind(objects, "ConfigMap")
        assert len(of_kind(objects, "PodMonitor")) == 4
