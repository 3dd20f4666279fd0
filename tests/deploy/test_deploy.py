"""``make deploy`` on a real cluster: what runs where, what it may do; the example trains."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster, ProgramFailed, until
from tests.deploy.install import NAMESPACE, ROOT, give_code, install

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

Object = dict[str, Any]


def pods(cluster: Cluster, namespace: str, selector: str) -> list[Object]:
    said = cluster.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json")
    found: list[Object] = json.loads(said)["items"]
    return found


def ours(cluster: Cluster) -> list[Object]:
    return pods(cluster, NAMESPACE, "app.kubernetes.io/instance=parcae")


def may(cluster: Cluster, account: str, *words: str) -> bool:
    try:
        said = cluster.kubectl("auth", "can-i", *words, f"--as=system:serviceaccount:{account}")
    except ProgramFailed:
        return False
    return said.strip() == "yes"


def test_all_programs_run_beside_spot_nodes(cluster: Cluster) -> None:
    found = {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in ours(cluster)}
    assert set(found) == {"operator", "planner", "etcd"}
    for pod in found.values():
        assert pod["spec"]["nodeName"] == "safe"
        assert pod["status"]["containerStatuses"][0]["ready"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_helm_test_passes(cluster: Cluster) -> None:
    assert "Succeeded" in cluster.helm("test", "parcae", f"--namespace={NAMESPACE}")


def test_rights_of_the_operator(cluster: Cluster) -> None:
    account = f"{NAMESPACE}:parcae-operator"
    allowed = "list nodes", "create pods", "delete pods", "list parcaejobs.parcae.dev"
    for words in (*allowed, "create secrets", "create networkpolicies.networking.k8s.io"):
        assert may(cluster, account, *words.split(), "--namespace=default"), words
    for words in (
        "get secrets",
        "list secrets",
        "delete secrets",
        "list configmaps",
        "list networkpolicies.networking.k8s.io",
        "create pods --subresource=exec",
        "patch pods",
        "patch nodes",
        "delete nodes",
        "create parcaejobs.parcae.dev",
        "create clusterroles",
        "patch customresourcedefinitions",
    ):
        assert not may(cluster, account, *words.split(), "--namespace=default"), words


def test_nothing_is_refused_to_the_operator(cluster: Cluster) -> None:
    log = cluster.kubectl("logs", "-n", NAMESPACE, "deployment/parcae-operator")
    assert ": 403 " not in log
    assert "orbidden" not in log


def test_what_did_not_change_is_not_restarted(cluster: Cluster) -> None:
    def by_image() -> dict[str, str]:
        pods = ours(cluster)
        return {
            pod["metadata"]["annotations"]["parcae.dev/image"]: pod["metadata"]["uid"]
            for pod in pods
        }

    before = by_image()
    install(cluster)
    after = by_image()
    unchanged = before.keys() & after.keys()  # somebody may edit sources meanwhile
    assert unchanged
    assert {image: after[image] for image in unchanged} == {i: before[i] for i in unchanged}


_STEPS = "parcae_worker_steps_total"
_PATH = "/apis/parcae.dev/v1alpha1/namespaces/default/parcaejobs/gpt"


def status(cluster: Cluster) -> Object:
    return cluster.api.get(_PATH).get("status") or {}


@pytest.fixture(scope="module")
def example(cluster: Cluster) -> Iterator[None]:
    """The example, as it trains."""
    give_code(cluster)
    cluster.kubectl("apply", "-f", str(ROOT / "examples" / "gpt" / "job.yaml"))
    until("the job to train", lambda: status(cluster).get("step", 0) > 0, bound_s=300)
    yield
    cluster.kubectl("delete", "parcaejob", "gpt", "--wait=false")
    until(
        "its pods to be gone",
        lambda: not pods(cluster, "default", "parcae.dev/job=gpt"),
        bound_s=120,
    )


def test_the_example_trains_unchanged(cluster: Cluster, example: None) -> None:
    step = status(cluster)["step"]
    until("the next step", lambda: status(cluster)["step"] > step, bound_s=60)


def test_its_agents_tell_prometheus_what_they_do(cluster: Cluster, example: None) -> None:
    ask = "import urllib.request as u; print(u.urlopen('http://{}:8082/metrics').read().decode())"
    running = [
        pod
        for pod in pods(cluster, "default", "parcae.dev/job=gpt")
        if pod["status"]["phase"] == "Running"
    ]
    assert running
    for pod in running:
        [container] = pod["spec"]["containers"]
        assert {"name": "metrics", "containerPort": 8082, "protocol": "TCP"} in container["ports"]
        at = pod["status"]["podIP"]  # as Prometheus reaches it
        text = cluster.exec(pod["metadata"]["name"], "python", "-c", ask.format(at))
        [line] = [each for each in text.splitlines() if each.startswith(_STEPS)]
        labels, value = line.split()
        assert labels == _STEPS + '{namespace="default",job="gpt"}'
        assert float(value) >= 1


def test_its_first_plan_is_told_by_all_programs(cluster: Cluster, example: None) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "parcae_cli.main", "logs", "gpt", "--revision", "1"),
            *("-o", "json", "-n", "default", "--kubeconfig", str(cluster.kubeconfig)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["time"] for each in told] == sorted(each["time"] for each in told)
    of_it = {each["who"] for each in told if each.get("revision") == 1}
    names = {pod["metadata"]["name"] for pod in pods(cluster, "default", "parcae.dev/job=gpt")}
    assert of_it >= {"event", "operator", "planner"}
    assert len(of_it & names) >= 2
    messages = "\n".join(each["message"] for each in told)
    assert "plan published: " in messages
    assert "goes on from step 0" in messages
