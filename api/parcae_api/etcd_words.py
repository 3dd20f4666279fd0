"""What etcd and the transport say, in words that name the remedy. Pure; what is not known stays."""

from __future__ import annotations

import re

_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED: ([^:]+)")
_NAME = re.compile(r"Hostname Verification Check failed|hostname .*mismatch", re.IGNORECASE)
_REMEDIES = (
    ("certificate has expired", "renew it (the chart's etcd.security.renewal)"),
    ("certificate is not yet valid", "compare this machine's clock with the one that made it"),
    ("", "is ca.crt of the authority that signed it?"),
)
_KNOWN = {
    "etcdserver: no leader": "it has no leader: more than half of its members must run and reach "
    "each other",
    "etcdserver: request timed out": "a write found no majority in time: more than half of its "
    "members must run and reach each other, and their disks must keep up",
    "etcdserver: authentication failed, invalid user ID or password": "it knows another password "
    "for this user: its data may be of an earlier installation, or the Secret was replaced",
}


def plain(said: str) -> str:
    """The sentence for people.

    Args:
        said: As gRPC or etcd reported it.
    """
    if found := _CERTIFICATE.search(said):
        problem = found[1].strip()
        remedy = next(text for words, text in _REMEDIES if words in problem)
        return f"its certificate does not hold ({problem}): {remedy}"
    if _NAME.search(said):
        return "its certificate is for other names than the one it was reached by"
    return next((text for words, text in _KNOWN.items() if said.startswith(words)), said)
