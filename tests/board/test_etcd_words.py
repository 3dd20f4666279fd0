"""What people are told of a board that does not do as asked."""

from __future__ import annotations

import pytest

from parcae_api.etcd_words import plain

TLS = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.9:2379: Tls handshake "
    "failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1000007d:SSL routines:OPENSSL_internal:"
    "CERTIFICATE_VERIFY_FAILED: {}: OK"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (TLS.format("certificate has expired"), "(certificate has expired): renew it"),
        (TLS.format("certificate is not yet valid"), "compare this machine's clock"),
        (TLS.format("self signed certificate in certificate chain"), "is ca.crt of the authority"),
        ("Hostname Verification Check failed.", "for other names"),
        ("etcdserver: no leader", "more than half of its members must run"),
        ("etcdserver: request timed out, waiting too long", "found no majority in time"),
        ("etcdserver: authentication failed, invalid user ID or password", "another password"),
    ],
)
def test_the_remedy_is_named(said: str, told: str) -> None:
    assert told in plain(said)
    assert "etcdserver" not in plain(said)
    assert "SSL" not in plain(said)


def test_what_is_not_known_is_passed_on() -> None:
    assert plain("etcdserver: mvcc: database space exceeded") == (
        "etcdserver: mvcc: database space exceeded"
    )
