"""The operator's settings, from its environment."""

from __future__ import annotations

import socket

import pytest

from parcae_api.errors import InputError
from parcae_operator.kube.settings import OperatorSettings, from_environment


def test_the_least_that_is_needed() -> None:
    settings = from_environment({"PARCAE_BOARD": "etcd:2379"})
    assert settings == OperatorSettings(board="etcd:2379")
    assert settings.endpoints == settings.agent_endpoints == ("etcd:2379",)
    assert settings.identity == socket.gethostname()
    assert settings.namespace == ""


def test_everything() -> None:
    settings = from_environment(
        {
            "PARCAE_BOARD": " http://a:1 , http://b:2,",
            "PARCAE_AGENT_BOARD": "http://c:3",
            "PARCAE_PLANNER": "http://planner:8080",
            "PARCAE_NAMESPACE": "team",
            "PARCAE_IDENTITY": "operator-0",
            "PARCAE_RESYNC_SECONDS": "5",
            "PARCAE_NODE_RESYNC_SECONDS": "7.5",
            "PARCAE_LIVENESS_PORT": "0",
            "PARCAE_METRICS_PORT": "9100",
            "PARCAE_LOG_FORMAT": "json",
            "PARCAE_GRACE_SECONDS": "60",
            "PARCAE_NETWORK_POLICY": '{"ingress": [], "egress": [{"ports": [{"port": 53}]}]}',
            "PARCAE_OF_ANOTHER_PROGRAM": "x",
            "PATH": "/bin",
        }
    )
    assert settings.endpoints == ("http://a:1", "http://b:2")
    assert settings.agent_endpoints == ("http://c:3",)
    assert (settings.resync_seconds, settings.node_resync_seconds) == (5.0, 7.5)
    assert (settings.liveness_port, settings.metrics_port) == (0, 9100)
    assert settings.grace_seconds == 60
    assert settings.log_format == "json"
    assert settings.network_policy is not None
    assert settings.network_policy.egress == ({"ports": [{"port": 53}]},)


def test_empty_is_as_if_it_were_not_set() -> None:
    names = ("AGENT_BOARD", "PLANNER", "NAMESPACE", "IDENTITY", "RESYNC_SECONDS", "LIVENESS_PORT")
    empty = {f"PARCAE_{name}": "" for name in names}
    assert from_environment({"PARCAE_BOARD": "etcd:1", **empty}) == OperatorSettings(board="etcd:1")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "PARCAE_BOARD: is required; add it"),
        ({"PARCAE_BOARD": ""}, "PARCAE_BOARD: is required; add it"),
        ({"PARCAE_BOARD": " , "}, "PARCAE_BOARD: ' , ' names no endpoint; give at least one"),
        ({"PARCAE_BOARD": "x:1", "PARCAE_AGENT_BOARD": ","}, "PARCAE_AGENT_BOARD: ',' names no"),
        ({"PARCAE_BOARD": "x:1", "PARCAE_RESYNC_SECONDS": "0"}, "PARCAE_RESYNC_SECONDS: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_RESYNC_SECONDS": "nan"}, "PARCAE_RESYNC_SECONDS: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_RESYNC_SECONDS": "soon"}, "PARCAE_RESYNC_SECONDS: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_LIVENESS_PORT": "70000"}, "PARCAE_LIVENESS_PORT: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_LOG_FORMAT": "xml"}, "PARCAE_LOG_FORMAT: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_METRICS_PORT": "-1"}, "PARCAE_METRICS_PORT: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_NETWORK_POLICY": "{"}, "PARCAE_NETWORK_POLICY: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_NETWORK_POLICY": "[]"}, "PARCAE_NETWORK_POLICY: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_NETWORK_POLICY": '{"a": []}'}, "PARCAE_NETWORK_POLICY: "),
        ({"PARCAE_BOARD": "x:1", "PARCAE_GRACE_SECONDS": "-1"}, "PARCAE_GRACE_SECONDS: "),
    ],
)
def test_a_mistake_names_its_variable(environ: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        from_environment(environ)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
