"""The calls of the etcd v3 protocol about users, typed. Only root may make them.

Beside ``etcd_calls`` the only module that imports ``etcd3``.
"""

from __future__ import annotations

from typing import Any

from etcd3 import etcdrpc

from parcae_api.etcd_calls import Call, prefix_end


def enable() -> Call[None]:
    """Ask every caller who it is from now on. Done too where that is so already."""
    return _call("AuthEnable", etcdrpc.AuthEnableRequest())


def disable() -> Call[None]:
    """Ask nobody any more. For tests and tools."""
    return _call("AuthDisable", etcdrpc.AuthDisableRequest())


def add_user(name: str, password: str) -> Call[None]:
    """Make a user without any right."""
    return _call("UserAdd", etcdrpc.AuthUserAddRequest(name=name, password=password))


def change_password(name: str, password: str) -> Call[None]:
    """Give a user another password; its tokens end."""
    request = etcdrpc.AuthUserChangePasswordRequest(name=name, password=password)
    return _call("UserChangePassword", request)


def delete_user(name: str) -> Call[None]:
    """Delete a user; its tokens end."""
    return _call("UserDelete", etcdrpc.AuthUserDeleteRequest(name=name))


def list_users() -> Call[tuple[str, ...]]:
    """Names of all users."""
    request = etcdrpc.AuthUserListRequest()
    return Call(etcdrpc.AuthStub, "UserList", request, lambda reply: tuple(map(str, reply.users)))


def add_role(name: str) -> Call[None]:
    """Make a role without any right."""
    return _call("RoleAdd", etcdrpc.AuthRoleAddRequest(name=name))


def delete_role(name: str) -> Call[None]:
    """Delete a role; who had it loses its rights."""
    return _call("RoleDelete", etcdrpc.AuthRoleDeleteRequest(role=name))


def allow_prefix(role: str, prefix: str) -> Call[None]:
    """Let a role read and write all keys that start with ``prefix``."""
    request = etcdrpc.AuthRoleGrantPermissionRequest(name=role)
    request.perm.permType = request.perm.READWRITE
    request.perm.key = prefix.encode()
    request.perm.range_end = prefix_end(prefix)
    return _call("RoleGrantPermission", request)


def give_role(user: str, role: str) -> Call[None]:
    """Give a user a role. Done too where it has it."""
    return _call("UserGrantRole", etcdrpc.AuthUserGrantRoleRequest(user=user, role=role))


def _call(method: str, request: Any) -> Call[None]:
    return Call(etcdrpc.AuthStub, method, request, lambda _: None)
