"""What protects the board: certificates, root's login, and who may see them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chart_site import Object, Render

from parcae_operator.kube.settings import from_environment

pytestmark = pytest.mark.cluster


def named(objects: list[Object], kind: str, name: str) -> Object:
    [found] = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def pod_of(objects: list[Object], kind: str, name: str) -> Object:
    spec: Object = named(objects, kind, name)["spec"]["template"]["spec"]
    return spec


def secrets(objects: list[Object]) -> set[str]:
    return {o["metadata"]["name"] for o in objects if o["kind"] == "Secret"}


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["openssl", *map(str, arguments)], check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout


def test_certificates_are_signed_for_every_name_of_every_member(
    render: Render, tmp_path: Path
) -> None:
    objects = render()
    data = named(objects, "Secret", "parcae-etcd-tls")["data"]
    for name, text in data.items():
        (tmp_path / name).write_bytes(base64.b64decode(text))
    openssl("verify", "-CAfile", tmp_path / "ca.crt", tmp_path / "tls.crt")
    shown = openssl("x509", "-in", tmp_path / "tls.crt", "-noout", "-text")
    assert "TLS Web Server Authentication, TLS Web Client Authentication" in shown
    names = {"DNS:parcae-etcd.infra.svc", "DNS:localhost", "IP Address:127.0.0.1"}
    names |= {f"DNS:parcae-etcd-{n}.parcae-etcd-peers" for n in range(3)}
    for name in names:
        assert f"{name}," in shown or f"{name}\n" in shown, name


def test_etcd_speaks_tls_only(render: Render) -> None:
    pod = pod_of(render(), "StatefulSet", "parcae-etcd")
    arguments = pod["containers"][0]["args"]
    plain = [a for a in arguments if "http://" in a]
    assert plain == ["--listen-metrics-urls=http://0.0.0.0:2381"]
    assert "--peer-client-cert-auth" in arguments
    members = next(a for a in arguments if a.startswith("--initial-cluster="))
    assert members.count("https://") == 3


def test_who_gets_which_secret(render: Render) -> None:
    objects = render()
    assert secrets(objects) == {"parcae-board", "parcae-etcd-ca", "parcae-etcd-tls"}
    mounted: dict[str, set[str]] = {}
    for each in objects:
        template = each.get("spec", {}).get("template") if each["kind"] != "Pod" else each
        if not isinstance(template, dict):
            continue
        names = set()
        for volume in template["spec"].get("volumes", []):
            sources = [volume, *volume.get("projected", {}).get("sources", [])]
            for source in (s["secret"] for s in sources if "secret" in s):
                keys = "+".join(item["key"] for item in source.get("items", []))
                names.add(f"{source.get('secretName') or source['name']}:{keys}")
        mounted[each["metadata"]["name"]] = names
    assert mounted["parcae-etcd"] == {"parcae-etcd-tls:"}
    assert mounted["parcae-operator"] == {"parcae-board:", "parcae-etcd-tls:ca.crt"}
    assert mounted["parcae-planner"] == set()


def test_the_operator_finds_its_login(render: Render) -> None:
    objects = render()
    pod = pod_of(objects, "Deployment", "parcae-operator")
    env = {e["name"]: e.get("value", "") for e in pod["containers"][0]["env"]}
    settings = from_environment({**env, "PARCAE_IDENTITY": "x"})
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    assert str(settings.board_access) == mounts["board"]
    data = named(objects, "Secret", "parcae-board")["data"]
    assert base64.b64decode(data["user"]) == b"root"
    assert len(base64.b64decode(data["password"])) == 48


def test_nothing_of_it_where_it_is_turned_off(render: Render) -> None:
    objects = render(etcd={"security": {"enabled": False}})
    assert secrets(objects) == set()
    pod = pod_of(objects, "StatefulSet", "parcae-etcd")
    assert not any("https://" in a or "tls" in a for a in pod["containers"][0]["args"])
    operator = pod_of(objects, "Deployment", "parcae-operator")
    assert "PARCAE_BOARD_ACCESS" not in [e["name"] for e in operator["containers"][0]["env"]]
    [role] = [o for o in objects if o["kind"] == "ClusterRole"]
    assert not any("secrets" in rule["resources"] for rule in role["rules"])


@pytest.mark.parametrize(
    ("security", "left"),
    [
        ({"tlsSecret": "mine"}, {"parcae-board"}),
        ({"rootSecret": "mine"}, {"parcae-etcd-ca", "parcae-etcd-tls"}),
        ({"tlsSecret": "mine", "rootSecret": "mine-too"}, set()),
        (
            {"certManager": {"enabled": True, "issuerRef": {"name": "ours", "kind": "Issuer"}}},
            {"parcae-board"},
        ),
    ],
)
def test_secrets_of_your_own(render: Render, security: dict[str, Any], left: set[str]) -> None:
    objects = render(etcd={"security": security})
    assert secrets(objects) == left
    tls = security.get("tlsSecret", "parcae-etcd-tls")
    etcd = pod_of(objects, "StatefulSet", "parcae-etcd")
    assert {"name": "tls", "secret": {"secretName": tls, "defaultMode": 0o440}} in etcd["volumes"]
    operator = pod_of(objects, "Deployment", "parcae-operator")
    [board] = [v for v in operator["volumes"] if v["name"] == "board"]
    assert board["projected"]["sources"] == [
        {"secret": {"name": security.get("rootSecret", "parcae-board")}},
        {"secret": {"name": tls, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]


def test_cert_manager_makes_the_certificates(render: Render) -> None:
    issuer = {"name": "ours", "kind": "ClusterIssuer"}
    objects = render(
        etcd={"security": {"certManager": {"enabled": True, "issuerRef": issuer}}, "replicas": 1}
    )
    spec = named(objects, "Certificate", "parcae-etcd-tls")["spec"]
    assert spec["issuerRef"] == issuer
    assert "parcae-etcd-0.parcae-etcd-peers.infra.svc" in spec["dnsNames"]
    assert spec["usages"] == ["server auth", "client auth"]


def test_an_etcd_of_your_own_that_asks(render: Render) -> None:
    objects = render(
        etcd={"enabled": False}, board={"endpoints": ["a:2379"], "accessSecret": "mine"}
    )
    assert secrets(objects) == set()
    operator = pod_of(objects, "Deployment", "parcae-operator")
    [board] = [v for v in operator["volumes"] if v["name"] == "board"]
    assert board["projected"]["sources"] == [{"secret": {"name": "mine"}}]


def test_one_member_is_alone(render: Render) -> None:
    objects = render(etcd={"replicas": 1})
    spec = named(objects, "StatefulSet", "parcae-etcd")["spec"]
    assert spec["replicas"] == 1
    assert "podManagementPolicy" not in spec
    assert not [o for o in objects if o["kind"] == "PodDisruptionBudget"]
