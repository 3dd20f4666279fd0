"""A cluster's certificate authority, and the certificates and kubeconfigs that it hands out."""

from __future__ import annotations

from pathlib import Path

import yaml

from .layout import API_SERVICE, GATEWAY
from .programs import run

DAYS = "3650"
SERVER_NAMES = (
    f"IP:127.0.0.1,IP:{API_SERVICE},IP:{GATEWAY},DNS:localhost,DNS:kubernetes,"
    "DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
)
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "front-proxy": "/CN=front-proxy-client",
}
_EMPTY_SETTINGS = "[req]\ndistinguished_name=dn\n[dn]\n"


def make_all(folder: Path) -> None:
    """Makes the authority, the API server's certificate, all clients', and the tokens' key pair."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openssl.cnf").write_text(_EMPTY_SETTINGS)
    authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
    _certificate(folder, folder / "ca", "/CN=parcae-test-cluster", authority, signed=False)
    server = ["extendedKeyUsage=serverAuth", f"subjectAltName={SERVER_NAMES}"]
    _certificate(folder, folder / "apiserver", "/CN=kube-apiserver", server)
    for name, subject in CLIENTS.items():
        client(folder, folder / name, subject)
    tokens = folder / "tokens.key"
    run(["openssl", "genrsa", "-out", tokens, "2048"])
    run(["openssl", "rsa", "-in", tokens, "-pubout", "-out", folder / "tokens.pub"])


def client(authority: Path, stem: Path, subject: str) -> None:
    """Makes ``stem.key`` and ``stem.crt``: a client certificate of the authority in a folder.

    The subject's O are the user's groups, its CN is the user's name.
    """
    _certificate(authority, stem, subject, ["extendedKeyUsage=clientAuth"])


def _certificate(
    authority: Path, stem: Path, subject: str, extensions: list[str], signed: bool = True
) -> None:
    argv = ["openssl", "req", "-x509", "-new", "-newkey", "ec", "-nodes", "-days", DAYS]
    argv += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-config", str(authority / "openssl.cnf")]
    argv += ["-keyout", f"{stem}.key", "-out", f"{stem}.crt", "-subj", subject]
    for extension in extensions:
        argv += ["-addext", extension]
    if signed:
        argv += ["-CA", str(authority / "ca.crt"), "-CAkey", str(authority / "ca.key")]
    run(argv)


def kubeconfig(authority: Path, server: str, stem: Path) -> str:
    """Returns a kubeconfig of one cluster and one user, who has ``stem.crt`` and ``stem.key``.

    Args:
        authority: the folder of the cluster's certificate authority.
        server: as in ``https://10.77.0.1:443``.
        stem: the client certificate's path, less its ending.
    """
    cluster = {"server": server, "certificate-authority": str(authority / "ca.crt")}
    user = {"client-certificate": f"{stem}.crt", "client-key": f"{stem}.key"}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": stem.name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": stem.name}}],
            "current-context": "test",
        },
        sort_keys=False,
    )
