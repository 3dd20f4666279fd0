"""TLS with certificates on both sides, from an authority that lives as long as the test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_helpers import MakeClient, Recorder

from parcae_api.errors import BoardUnavailable, InputError
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Tls
from parcae_cli.etcd_server import EtcdServer


def _openssl(folder: Path, *arguments: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made with openssl, which is not here")
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority ``ca``, and pairs ``server`` and ``client`` that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n", encoding="ascii")
    _openssl(
        folder, "req", "-x509", *new_key, "-days", "1", "-subj", "/CN=test authority",
        "-keyout", "ca.key", "-out", "ca.pem",
    )  # fmt: skip
    for name, days in (("server", "1"), ("client", "1"), ("expired", "-1")):
        _openssl(
            folder, "req", *new_key, "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", days, "-extfile", "san", "-out", f"{name}.pem",
        )  # fmt: skip
    return folder


@pytest.fixture
def server(tmp_path: Path, certificates: Path, _no_thread_is_left: None) -> Iterator[EtcdServer]:
    with EtcdServer(
        tmp_path / "etcd",
        tmp_path / "etcd.log",
        unsafe_no_fsync=True,
        scheme="https",
        arguments=[
            f"--cert-file={certificates / 'server.pem'}",
            f"--key-file={certificates / 'server.key'}",
            f"--trusted-ca-file={certificates / 'ca.pem'}",
            "--client-cert-auth",
        ],
    ) as server:
        yield server
        server.kill()


@pytest.fixture
def tls(certificates: Path) -> Tls:
    return Tls(certificates / "ca.pem", certificates / "client.pem", certificates / "client.key")


def test_everything_works_with_certificates(
    server: EtcdServer, make_client: MakeClient, tls: Tls
) -> None:
    client = make_client(tls=tls)
    recorder = Recorder()
    recorder.watch(client, "/w/")
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")
    server.kill()
    server.restart()
    client.put("/w/a", b"2", client.lease(5))
    recorder.wait_for(b"2")
    assert recorder.values == [b"1", b"2"]


def test_no_client_certificate_is_not_let_in(make_client: MakeClient, tls: Tls) -> None:
    with pytest.raises(BoardUnavailable):
        make_client(tls=Tls(ca=tls.ca), patience_s=0.5).get("/a")


def test_a_server_that_another_authority_signed_is_not_trusted(
    make_client: MakeClient, tls: Tls
) -> None:
    with pytest.raises(BoardUnavailable, match=r"is ca\.crt of the authority that signed it\?"):
        make_client(tls=Tls(cert=tls.cert, key=tls.key), patience_s=0.5).get("/a")


def test_a_certificate_that_has_expired_is_said(
    tmp_path: Path, certificates: Path, tls: Tls
) -> None:
    arguments = [f"--cert-file={certificates / 'expired.pem'}"]
    arguments += [f"--key-file={certificates / 'expired.key'}"]
    folder, log = tmp_path / "etcd", tmp_path / "etcd.log"
    with (
        EtcdServer(folder, log, unsafe_no_fsync=True, scheme="https", arguments=arguments) as old,
        EtcdClient([old.endpoint], tls=Tls(ca=tls.ca), patience_s=0.5) as client,
        pytest.raises(BoardUnavailable) as caught,
    ):
        client.get("/a")
    assert str(caught.value) == (
        "etcd did not answer within 0.5 s: its certificate does not hold (certificate has "
        "expired): renew it (the chart's etcd.security.renewal)"
    )


def test_certificate_files_that_do_not_help_are_named(tls: Tls, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.pem"):
        EtcdClient(["https://localhost:1"], tls=Tls(ca=tmp_path / "missing.pem"))
    with pytest.raises(InputError, match="both cert and key"):
        EtcdClient(["https://localhost:1"], tls=Tls(ca=tls.ca, cert=tls.cert))
