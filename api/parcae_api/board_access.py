"""What a program needs to reach a board that asks who it is: a folder of small files.

::

    ca.crt      certificates of the authority that signed the board's; without it no TLS
    user        a user of etcd
    password    its password; without these two nobody is asked

The shape of a mounted Secret of Kubernetes. Nothing of it is ever put into a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parcae_api.errors import InputError
from parcae_api.etcd_types import Login, Tls

CA, USER, PASSWORD = "ca.crt", "user", "password"


@dataclass(frozen=True, slots=True)
class BoardAccess:
    """TLS and a login for ``EtcdClient``; None where the board wants none."""

    tls: Tls | None = None
    login: Login | None = None


def read_access(folder: Path | None) -> BoardAccess:
    """Reads such a folder.

    Args:
        folder: None: the board asks for nothing.

    Raises:
        InputError: it is not there, or holds half of a login.
    """
    if folder is None:
        return BoardAccess()
    if not folder.is_dir():
        raise InputError(f"board credentials: there is no folder {folder}; mount the Secret there")
    ca = folder / CA
    user, password = _text(folder / USER), _text(folder / PASSWORD)
    if bool(user) != bool(password):
        missing = PASSWORD if user else USER
        raise InputError(f"board credentials: {folder / missing} is missing or empty")
    return BoardAccess(
        tls=Tls(ca=ca) if ca.is_file() else None,
        login=Login(user, password) if user else None,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"board credentials: {path} cannot be read: {error}") from error
