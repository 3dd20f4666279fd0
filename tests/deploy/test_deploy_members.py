"""The chart's board on a real cluster: three members, TLS among them, one of them lost."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster, ProgramFailed, until
from tests.deploy.install import ROOT, VALUES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

RELEASE = NAMESPACE = "three"
CHART = str(ROOT / "charts" / "parcae")
MEMBERS = [f"{RELEASE}-parcae-etcd-{n}" for n in range(3)]


def options(*more: str) -> list[str]:
    """Beside the release that is there: for jobs of its own namespace, with the kind as it is."""
    settings = ["crds.enabled=false", f"watchNamespace={NAMESPACE}", "etcd.replicas=3"]
    settings += ["etcd.persistence.enabled=true", *more]
    given = [f"--set={setting}" for setting in settings]
    return [f"--namespace={NAMESPACE}", f"--values={VALUES}", *given]


def volume(n: int, path: str) -> dict[str, Any]:
    """A disk of the node that stays, as a claim without a class finds it."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["safe"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{n}"},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


@pytest.fixture(scope="module")
def three(cluster: Cluster) -> Iterator[Cluster]:
    cluster.kubectl("create", "namespace", NAMESPACE)
    for n in range(3):
        path = f"/var/lib/volumes/{n}"
        cluster.node("safe").inside(["mkdir", "-p", path])
        cluster.apply(volume(n, path))
    wait = ["--wait", "--timeout=180s"]
    cluster.helm("install", RELEASE, CHART, *options(), *wait, bound_s=210)
    yield cluster
    cluster.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait", bound_s=120)


def login(cluster: Cluster) -> str:
    said = cluster.kubectl("get", "secret", "three-parcae-board", "-n", NAMESPACE, "-o", "json")
    data: dict[str, Any] = json.loads(said)["data"]
    user, password = (base64.b64decode(data[name]).decode() for name in ("user", "password"))
    return f"--user={user}:{password}"


def etcdctl(cluster: Cluster, member: str, *words: str) -> str:
    argv = ["etcdctl", "--endpoints=https://127.0.0.1:2379", "--cacert=/tls/ca.crt"]
    return cluster.exec(member, *argv, login(cluster), *words, namespace=NAMESPACE)


def test_three_members_find_each_other_and_ask_who_one_is(three: Cluster) -> None:
    found = etcdctl(three, MEMBERS[0], "member", "list")
    assert len(found.split("started")) == 4
    argv = ["etcdctl", "--endpoints=https://127.0.0.1:2379", "--cacert=/tls/ca.crt"]

    def refusal() -> str:
        try:
            return three.exec(MEMBERS[0], *argv, "get", "a", namespace=NAMESPACE)
        except ProgramFailed as error:
            return str(error)

    # The operator asks etcd for it once all of it answers; helm waits for the pods only.
    until("strangers to be refused", lambda: "user name is empty" in refusal(), bound_s=30)


def test_two_members_go_on_without_the_third_which_comes_back_with_its_data(
    three: Cluster,
) -> None:
    etcdctl(three, MEMBERS[0], "put", "/parcae/x", "1")
    three.kubectl("delete", "pod", MEMBERS[0], "-n", NAMESPACE, "--grace-period=1", "--wait=false")
    until(
        "the others to answer",
        lambda: "1" in etcdctl(three, MEMBERS[1], "get", "/parcae/x", "--print-value-only"),
        bound_s=30,
    )
    etcdctl(three, MEMBERS[2], "put", "/parcae/x", "2")
    words = ("get", "/parcae/x", "--print-value-only", "--consistency=s")  # from its own disk
    until("it is back", lambda: "2" in etcdctl(three, MEMBERS[0], *words), bound_s=90)


def test_the_number_of_members_stays(three: Cluster) -> None:
    with pytest.raises(ProgramFailed, match=r"replicas: is 3 in the cluster and cannot become 1"):
        three.helm("upgrade", RELEASE, CHART, *options("etcd.replicas=1"), bound_s=60)


def test_certificates_are_made_anew_when_asked_and_nothing_restarts(three: Cluster) -> None:
    def certificate() -> str:
        said = three.kubectl(
            "get", "secret", "three-parcae-etcd-tls", "-n", NAMESPACE, "-o", "json"
        )
        return str(json.loads(said)["data"]["tls.crt"])

    def operator() -> str:
        selector = "app.kubernetes.io/component=operator"
        said = three.kubectl("get", "pods", "-n", NAMESPACE, "-l", selector, "-o", "json")
        return str(json.loads(said)["items"][0]["metadata"]["uid"])

    before, same_operator, same_login = certificate(), operator(), login(three)
    three.helm("upgrade", RELEASE, CHART, *options(), bound_s=60)
    assert certificate() == before
    three.helm("upgrade", RELEASE, CHART, *options("etcd.security.renewal=2"), bound_s=60)
    assert certificate() != before
    assert (operator(), login(three)) == (same_operator, same_login)


def test_without_a_majority_it_is_said_and_with_one_again_all_goes_on(three: Cluster) -> None:
    def board_is_up() -> bool:
        selector = "app.kubernetes.io/component=operator"
        said = three.kubectl("get", "pods", "-n", NAMESPACE, "-l", selector, "-o", "json")
        name = json.loads(said)["items"][0]["metadata"]["name"]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:8081/proxy/metrics"
        return "parcae_board_up 1.0" in three.kubectl("get", "--raw", path)

    until("the board to be up", board_is_up, bound_s=30)
    three.kubectl("cordon", "safe")
    try:
        three.kubectl("delete", "pod", *MEMBERS[:2], "-n", NAMESPACE, "--grace-period=1")
        until("it to be said", lambda: not board_is_up(), bound_s=60)
        with pytest.raises(ProgramFailed, match=r"no leader|timed out|deadline"):
            etcdctl(three, MEMBERS[2], "put", "/parcae/x", "3")
    finally:
        three.kubectl("uncordon", "safe")
    until("the board to be up again", board_is_up, bound_s=90)
    assert "2" in etcdctl(three, MEMBERS[2], "get", "/parcae/x", "--print-value-only")
