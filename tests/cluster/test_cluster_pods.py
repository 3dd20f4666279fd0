"""Pods on several nodes: network, Services, names, the API, folders of the machine, metadata."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cluster import ApiError, Cluster, Node, Taint, images
from tests.cluster.pods import PORT, pod, server
from tests.cluster.programs import run

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode())"
FORGET = ["python3", "-c", "import time; time.sleep(3600)"]
METADATA = """\
import http.server, sys
class Say(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())
http.server.HTTPServer(("169.254.169.254", 80), Say).serve_forever()
"""


def fetch(cluster: Cluster, name: str, url: str) -> str:
    return cluster.exec(name, "python3", "-c", FETCH, url)


def test_pods_of_two_nodes_reach_one_another(cluster: Cluster, web: dict[str, str]) -> None:
    assert "Directory listing" in fetch(cluster, "web-one", f"http://{web['web-two']}:{PORT}/")
    assert "Directory listing" in fetch(cluster, "web-two", f"http://{web['web-one']}:{PORT}/")


def test_a_pod_reaches_the_api_by_name_and_is_known_by_its_token(
    cluster: Cluster, web: dict[str, str]
) -> None:
    code = (
        "import ssl, urllib.request as r; from pathlib import Path\n"
        "here = Path('/var/run/secrets/kubernetes.io/serviceaccount')\n"
        "tls = ssl.create_default_context(cafile=here / 'ca.crt')\n"
        "head = {'Authorization': 'Bearer ' + (here / 'token').read_text()}\n"
        "ask = r.Request('https://kubernetes.default.svc/version', headers=head)\n"
        "print(r.urlopen(ask, context=tls, timeout=10).read().decode())"
    )
    assert "v1.36.3" in cluster.exec("web-one", "python3", "-c", code)


def test_a_service_leads_to_its_pod(cluster: Cluster, web: dict[str, str]) -> None:
    ports = [{"port": 80, "targetPort": PORT}]
    spec = {"selector": {"app": "web-two"}, "ports": ports}
    metadata = {"name": "two", "namespace": "default"}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    for name in ("web-one", "web-two"):  # from afar, and from the pod behind it
        assert "Directory listing" in fetch(cluster, name, "http://two.default.svc.cluster.local/")


def test_programs_of_the_machine_reach_the_api_and_pods(
    cluster: Cluster, web: dict[str, str]
) -> None:
    outside = cluster.site.tools.kubectl, f"--kubeconfig={cluster.kubeconfig}"
    assert "web-one" in run([*outside, "get", "pods"]).stdout
    inside = cluster.inside([sys.executable, "-c", FETCH, f"http://{web['web-one']}:{PORT}/"])
    assert "Directory listing" in inside.stdout


def test_a_pod_sees_a_folder_of_the_machine(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text("print('from the machine')")
    argv = ["sh", "-c", "PYTHONPATH=/given python3 -c 'import given'; sleep 3600"]
    cluster.apply(pod("seeing", argv, node="one", host_paths={str(tmp_path): "/given"}))
    cluster.wait_pod("seeing")
    assert "from the machine" in cluster.exec(
        "seeing", "env", "PYTHONPATH=/given", "python3", "-c", "import given"
    )


def test_each_node_has_a_metadata_server_of_its_own(cluster: Cluster, web: dict[str, str]) -> None:
    for name in ("one", "two"):
        cluster.node(name).serve_metadata([sys.executable, "-c", METADATA, f"I am {name}"])
    url = "http://169.254.169.254/"
    assert fetch(cluster, "web-one", url).strip() == "I am one"
    assert fetch(cluster, "web-two", url).strip() == "I am two"
    assert "I am two" in fetch(cluster, "web-two", "http://metadata.google.internal/")
    cluster.node("two").serve_metadata([sys.executable, "-c", METADATA, "I am new"])
    assert fetch(cluster, "web-two", url).strip() == "I am new"


def test_a_node_registers_with_what_it_was_given(cluster: Cluster) -> None:
    labels = {"cloud.google.com/gke-spot": "true"}
    taint = Taint("cloud.google.com/gke-spot", "true", "NoSchedule")
    node = cluster.add_node("named", labels, [taint], provider_id="gce://p/z/named")
    try:
        found = cluster.api.get(node.path)
        assert found["spec"]["providerID"] == "gce://p/z/named"
        assert found["metadata"]["labels"]["cloud.google.com/gke-spot"] == "true"
        assert {"key": taint.key, "value": "true", "effect": "NoSchedule"} in found["spec"][
            "taints"
        ]
        assert found["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    finally:
        node.remove()


def test_an_image_is_built_and_given_to_running_nodes(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "word").write_text("built here")
    recipe = "FROM python:3.11-slim AS base\nCOPY word /word\nFROM base AS other\nRUN false\n"
    (tmp_path / "Dockerfile").write_text(recipe)
    archive = images.build(tmp_path, "parcae-cluster-test:1", target="base")
    assert images.build(tmp_path, "parcae-cluster-test:1", target="base") == archive
    cluster.load(archive)
    built = pod("built", FORGET, node="two")
    built["spec"]["containers"][0]["image"] = "parcae-cluster-test:1"
    cluster.apply(built)
    cluster.wait_pod("built")
    assert cluster.exec("built", "cat", "/word") == "built here"


def test_a_notice_is_seen_until_it_is_taken_back(cluster: Cluster, spare: Node) -> None:
    spare.taint("cloud.google.com/impending-node-termination", effect="NoExecute")
    spare.condition("TerminationNotice", reason="Preempted", message="in 30 s")
    spare.label({"parcae.test/pool": None})
    node = cluster.api.get(spare.path)
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert conditions["TerminationNotice"] == "True"
    assert "parcae.test/pool" not in node["metadata"]["labels"]
    assert any("impending" in taint["key"] for taint in node["spec"]["taints"])
    spare.untaint("cloud.google.com/impending-node-termination")
    assert not cluster.api.get(spare.path)["spec"].get("taints")


def test_a_drained_node_has_no_pods_and_gets_none(cluster: Cluster, spare: Node) -> None:
    cluster.apply(server("drained", spare.name))
    cluster.wait_pod("drained")
    spare.drain()
    assert spare.pods() == []
    cluster.apply(server("refused", spare.name))
    assert "unschedulable" in cluster.kubectl("describe", "node", spare.name).lower()
    spare.uncordon()
    cluster.wait_pod("refused")


def test_an_error_of_the_api_says_what_was_asked(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="GET /api/v1/nodes/nobody: 404"):
        cluster.api.get("/api/v1/nodes/nobody")
