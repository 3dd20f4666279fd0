"""Pods from the user's template: what they wrote stays, what an agent needs is added."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_objects import Object, make_job, template

from parcae_agent.settings import from_environment
from parcae_api.errors import InputError
from parcae_api.job import ParcaeJob
from parcae_operator.kube.pod_template import (
    agent_config,
    check_template,
    grace_seconds,
    make_pod,
    wants_gpu,
)
from parcae_operator.kube.settings import OperatorSettings

SETTINGS = OperatorSettings(board="etcd:2379", identity="operator-0")


def pod_of(job: ParcaeJob, settings: OperatorSettings | None = SETTINGS) -> Object:
    return make_pod(job, "gpt-bcdfgh", agent_config={"some": "config"}, settings=settings)


def container_of(job: ParcaeJob) -> Object:
    container: Object = pod_of(job)["spec"]["containers"][0]
    return container


def added(given: list[Any], found: list[Any]) -> list[Any]:
    assert found[: len(given)] == given
    return found[len(given) :]


# What is added.


def test_the_smallest_template_makes_this_pod() -> None:
    field = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in (
            ("PARCAE_NODE_NAME", "spec.nodeName"),
            ("PARCAE_ADDRESS", "status.podIP"),
        )
    ]
    evicted_after = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    assert pod_of(make_job()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gpt-bcdfgh",
            "namespace": "team",
            "labels": {
                "app.kubernetes.io/name": "parcae-agent",
                "app.kubernetes.io/managed-by": "parcae",
                "parcae.dev/job": "gpt",
                "parcae.dev/job-uid": "uid-of-gpt",
            },
            "annotations": {"kubectl.kubernetes.io/default-container": "agent"},
            "ownerReferences": [
                {
                    "apiVersion": "parcae.dev/v1alpha1",
                    "kind": "ParcaeJob",
                    "name": "gpt",
                    "uid": "uid-of-gpt",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"parcae.dev/job-uid": "uid-of-gpt"}},
                            "topologyKey": "kubernetes.io/hostname",
                        }
                    ]
                }
            },
            "tolerations": evicted_after,
            "volumes": [{"name": "parcae", "emptyDir": {}}],
            "containers": [
                {
                    "name": "agent",
                    "image": "gpt:1",
                    "env": [
                        {"name": "PARCAE_AGENT", "value": '{"some":"config"}'},
                        *field,
                        {"name": "PARCAE_METRICS_PORT", "value": "8082"},
                    ],
                    "ports": [{"name": "metrics", "containerPort": 8082}],
                    "volumeMounts": [{"name": "parcae", "mountPath": "/parcae"}],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def test_the_users_code_comes_from_a_config_map() -> None:
    job = make_job(entrypoint={"function": "train:gpt", "configMap": "gpt-code"})
    pod = pod_of(job)
    assert {"name": "parcae-code", "configMap": {"name": "gpt-code"}} in pod["spec"]["volumes"]
    mount = {"name": "parcae-code", "mountPath": "/parcae/code", "readOnly": True}
    assert mount in pod["spec"]["containers"][0]["volumeMounts"]
    config = agent_config(job, "gpt-bcdfgh", SETTINGS, 30)
    assert config["search_path"] == "/parcae/code"


def test_without_one_the_module_is_the_images() -> None:
    assert agent_config(make_job(), "gpt-bcdfgh", SETTINGS, 30)["search_path"] is None


# What the user wrote.


def test_what_the_user_wrote_stays() -> None:
    written = {
        "metadata": {
            "labels": {"team": "nlp", "app.kubernetes.io/name": "theirs", "parcae.dev/job": "x"},
            "annotations": {"cost-centre": "42", "kubectl.kubernetes.io/default-container": "x"},
            "name": "theirs",
        },
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": "gpt:1",
                    "command": ["parcae-agent"],
                    "env": [
                        {"name": "NCCL_DEBUG", "value": "INFO"},
                        {"name": "PARCAE_AGENT", "value": "forged"},
                        {"name": "PARCAE_ADDRESS", "value": "forged"},
                    ],
                    "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "4"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "securityContext": {"allowPrivilegeEscalation": True, "runAsUser": 0},
                },
                {"name": "sidecar", "image": "logs:1"},
            ],
            "initContainers": [{"name": "init", "image": "init:1"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "tolerations": [
                {"key": "spot", "operator": "Exists"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
            ],
            "affinity": {"nodeAffinity": {"a": "b"}, "podAntiAffinity": {}},
            "securityContext": {"runAsNonRoot": False, "fsGroup": 1000},
            "nodeSelector": {"pool": "spot"},
            "priorityClassName": "low",
            "serviceAccountName": "data-reader",
            "automountServiceAccountToken": True,
            "terminationGracePeriodSeconds": 90,
            "restartPolicy": "Always",
            "hostNetwork": True,
        },
    }
    before = copy.deepcopy(written)
    job = make_job(template=written)
    pod = pod_of(job)
    assert job.spec.template == before
    spec, theirs = pod["spec"], before["spec"]
    assert pod["metadata"]["labels"]["team"] == "nlp"
    assert pod["metadata"]["annotations"]["cost-centre"] == "42"
    assert pod["metadata"]["labels"]["parcae.dev/job"] == "gpt"  # ours: pods are found by it
    assert pod["metadata"]["name"] == "gpt-bcdfgh"
    assert pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "trainer"
    for name in (
        "nodeSelector",
        "priorityClassName",
        "serviceAccountName",
        "automountServiceAccountToken",
        "terminationGracePeriodSeconds",
        "hostNetwork",
        "initContainers",
        "affinity",
    ):
        assert spec[name] == theirs[name], name
    assert spec["restartPolicy"] == "Never"
    assert spec["containers"][1] == theirs["containers"][1]
    assert spec["securityContext"] == {
        "runAsNonRoot": False,
        "fsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    trainer = spec["containers"][0]
    for name in ("name", "image", "command", "resources"):
        assert trainer[name] == theirs["containers"][0][name], name
    assert trainer["securityContext"]["allowPrivilegeEscalation"] is True
    assert [e["name"] for e in trainer["env"]] == [
        "NCCL_DEBUG",
        "PARCAE_AGENT",
        "PARCAE_NODE_NAME",
        "PARCAE_ADDRESS",
        "PARCAE_METRICS_PORT",
    ]
    assert "forged" not in json.dumps(trainer["env"])
    assert added(theirs["volumes"], spec["volumes"]) == [{"name": "parcae", "emptyDir": {}}]
    new = added(theirs["tolerations"], spec["tolerations"])
    assert [t["key"] for t in new] == ["node.kubernetes.io/not-ready"]


def test_making_a_pod_does_not_touch_the_job() -> None:
    job = make_job()
    before = job.model_dump()
    first, second = pod_of(job), pod_of(job)
    assert first == second
    first["spec"]["containers"][0]["env"].clear()
    assert pod_of(job) == second
    wants_gpu(job)
    assert job.model_dump() == before


def test_a_volume_of_the_users_may_take_the_place_of_records() -> None:
    mount = {"name": "fast", "mountPath": "/parcae/"}
    job = make_job(template=template({"volumeMounts": [mount]}, volumes=[{"name": "fast"}]))
    pod = pod_of(job)
    assert pod["spec"]["volumes"] == [{"name": "fast"}]
    assert pod["spec"]["containers"][0]["volumeMounts"] == [mount]


def test_null_says_nothing_as_everywhere_in_kubernetes() -> None:
    nulls = dict.fromkeys(
        ("volumes", "tolerations", "affinity", "securityContext", "terminationGracePeriodSeconds")
    )
    container = dict.fromkeys(
        ("env", "volumeMounts", "securityContext", "name", "resources", "ports")
    )
    job = make_job(template={"metadata": None, **template(container, **nulls)})
    plain = pod_of(make_job())
    pod = pod_of(job)
    assert pod["spec"]["containers"][0].pop("resources") is None
    assert pod == plain


# Metrics.


def metrics_of(container: Object | None = None, **spec: Any) -> tuple[str | None, list[Object]]:
    """What the agent is told of its port, and the ports that its container declares."""
    made = container_of(make_job(template=template(container, **spec)))
    told = [e for e in made["env"] if e["name"] == "PARCAE_METRICS_PORT"]
    assert len(told) == 1
    return told[0].get("value"), made.get("ports", [])


OURS = {"name": "metrics", "containerPort": 8082}


def env(value: object) -> Object:
    return {"env": [{"name": "PARCAE_METRICS_PORT", "value": value}]}


def test_the_users_ports_stay() -> None:
    theirs = {"name": "board", "containerPort": 6006}
    assert metrics_of({"ports": [theirs]}) == ("8082", [theirs, OURS])


def test_the_users_choice_is_declared() -> None:
    assert metrics_of(env("9000")) == ("9000", [{"name": "metrics", "containerPort": 9000}])
    declared = {"name": "mine", "containerPort": 9000}
    assert metrics_of({**env("9000"), "ports": [declared]}) == ("9000", [declared])


def test_the_user_may_want_none() -> None:
    assert metrics_of(env("0")) == ("0", [])
    elsewhere = {"env": [{"name": "PARCAE_METRICS_PORT", "valueFrom": {"configMapKeyRef": {}}}]}
    assert metrics_of(elsewhere) == (None, [])


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_port_that_the_user_has_is_left_to_them(where: str) -> None:
    theirs = {"image": "proxy:1", "ports": [{"containerPort": 8082}]}
    others: Object = {where: [theirs]}
    if where == "containers":
        others = {where: [{"image": "gpt:1"}, theirs]}
    assert metrics_of(**others) == ("0", [])
    own = {"ports": [{"name": "x", "containerPort": 8082}]}
    assert metrics_of(own) == ("0", own["ports"])


def test_a_name_that_the_user_has_is_left_to_them() -> None:
    theirs = {"name": "metrics", "containerPort": 9100}
    other = {"name": "parcae-metrics", "containerPort": 8082}
    assert metrics_of({"ports": [theirs]}) == ("8082", [theirs, other])
    both = [theirs, {"name": "parcae-metrics", "containerPort": 9101}]
    assert metrics_of({"ports": both}) == ("8082", both)


def test_on_the_nodes_network_agents_of_two_jobs_keep_no_port_from_each_other() -> None:
    assert metrics_of(hostNetwork=True) == ("0", [])
    assert metrics_of(env("9000"), hostNetwork=True)[0] == "9000"


@pytest.mark.parametrize("value", ["http", "65536", "-1", "", 8082, "8082.0", "\u0664"])
def test_a_port_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"containers\[0\]\.env: PARCAE_METRICS_PORT is "):
        make_job(template=template(env(value)))


# Logs.


def test_agents_write_their_log_as_the_operator_does_unless_the_user_says_how() -> None:
    def told(container: Object | None = None, **more: Any) -> list[str]:
        made = pod_of(
            make_job(template=template(container)), OperatorSettings(board="etcd:2379", **more)
        )["spec"]["containers"][0]["env"]
        return [e["value"] for e in made if e["name"] == "PARCAE_LOG_FORMAT"]

    assert told() == []  # text, as without the variable
    assert told(log_format="json") == ["json"]
    theirs = {"env": [{"name": "PARCAE_LOG_FORMAT", "value": "text"}]}
    assert told(theirs, log_format="json") == ["text"]


# Grace and devices.


def test_grace_is_the_templates_else_the_operators() -> None:
    assert grace_seconds(make_job(), SETTINGS) == 30
    long = OperatorSettings(board="x:1", grace_seconds=100)
    assert pod_of(make_job(), long)["spec"]["terminationGracePeriodSeconds"] == 100
    job = make_job(template=template(terminationGracePeriodSeconds=7))
    assert grace_seconds(job, long) == 7
    assert agent_config(job, "p", long, 7)["grace_seconds"] == 7.0


@pytest.mark.parametrize("amount", [1, "1"])
@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_a_pod_that_asks_for_a_gpu_trains_on_it(kind: str, amount: object) -> None:
    job = make_job(template=template({"resources": {kind: {"nvidia.com/gpu": amount}}}))
    assert wants_gpu(job)
    assert agent_config(job, "p", SETTINGS, 30)["device"] == "cuda:0"


def test_others_train_on_the_cpu() -> None:
    for resources in ({}, {"limits": {"cpu": 4}}, {"limits": {"nvidia.com/gpu": 0}}):
        assert not wants_gpu(make_job(template=template({"resources": resources})))
    assert agent_config(make_job(), "p", SETTINGS, 30)["device"] == "cpu"


# The agent understands it.


def test_the_agent_reads_what_it_is_told() -> None:
    job = make_job(
        entrypoint={"function": "train:gpt", "args": {"layers": 4}, "configMap": "code"},
        checkpoint={"path": "/state", "everySteps": 7},
        template=template({"volumeMounts": [{"name": "s", "mountPath": "/state"}]}),
    )
    settings = OperatorSettings(board="a:1,b:2", agent_board="https://c:3")
    config = agent_config(job, "gpt-bcdfgh", settings, 45)
    pod = make_pod(job, "gpt-bcdfgh", agent_config=config, settings=settings)
    (entry,) = (e for e in pod["spec"]["containers"][0]["env"] if e["name"] == "PARCAE_AGENT")
    told = from_environment(
        {"PARCAE_AGENT": entry["value"], "PARCAE_NODE_NAME": "n", "PARCAE_ADDRESS": "10.0.0.1"}
    )
    assert told.endpoints == ("https://c:3",)
    assert (told.namespace, told.job, told.pod) == ("team", "gpt", "gpt-bcdfgh")
    assert (told.node, told.address, told.grace_seconds) == ("n", "10.0.0.1", 45.0)
    assert told.spec == job.spec.model_copy(update={"template": {}})
    assert (str(told.checkpoints), told.search_path) == ("/state", "/parcae/code")


# What cannot work.


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "spec.template.spec.containers: is required; add one container"),
        ({"spec": {"containers": []}}, "spec.template.spec.containers: is required"),
        ({"spec": {"containers": {}}}, "spec.template.spec.containers: is required"),
        ({"spec": []}, "spec.template.spec: must be an object, but it is list"),
        ({"spec": {"containers": ["x"]}}, "spec.template.spec.containers[0]: must be an object"),
        ({"spec": {"containers": [{}]}}, "spec.template.spec.containers[0].image: is required"),
        (template({"image": 5}), "spec.template.spec.containers[0].image: is required"),
        (template({"name": 5}), "spec.template.spec.containers[0].name: must be text"),
        (template({"env": {"A": "b"}}), "spec.template.spec.containers[0].env: must be a list"),
        (template({"volumeMounts": 1}), "spec.template.spec.containers[0].volumeMounts: must be"),
        (
            template({"securityContext": 1}),
            "spec.template.spec.containers[0].securityContext: must",
        ),
        (template({"ports": 1}), "spec.template.spec.containers[0].ports: must be a list"),
        (template(volumes={}), "spec.template.spec.volumes: must be a list, but it is dict"),
        (template(tolerations="x"), "spec.template.spec.tolerations: must be a list"),
        (template(affinity=[]), "spec.template.spec.affinity: must be an object"),
        (template(securityContext=3), "spec.template.spec.securityContext: must be an object"),
        ({"metadata": 1, **template()}, "spec.template.metadata: must be an object"),
        ({"metadata": {"labels": []}, **template()}, "spec.template.metadata.labels: must be"),
        (
            {"metadata": {"annotations": 1}, **template()},
            "spec.template.metadata.annotations: must",
        ),
        (
            template(terminationGracePeriodSeconds="long"),
            "spec.template.spec.terminationGracePeriodSeconds: is 'long'; give whole seconds",
        ),
        (
            template({"resources": {"limits": {"nvidia.com/gpu": "8"}}}),
            "spec.template.spec.containers[0].resources: 8 nvidia.com/gpu in one pod, but an agent "
            "runs one worker; ask for 1, and for more pods with spec.instances.max",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused_by_its_field(written: Object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_job(template=written)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["/state", "/data2/x", "/parcae/ckpt", "relative"])
def test_a_checkpoint_path_must_lie_on_a_volume(path: str) -> None:
    mounted = template({"volumeMounts": [{"name": "d", "mountPath": "/data"}]})
    with pytest.raises(InputError, match=r"spec\.checkpoint\.path: .* lies on no volume"):
        make_job(checkpoint={"path": path}, template=mounted)


@pytest.mark.parametrize("path", ["/data", "/data/", "/data/deep/er"])
def test_a_checkpoint_path_on_a_volume_is_taken(path: str) -> None:
    mounted = template({"volumeMounts": [{"name": "d", "mountPath": "/data/"}]})
    make_job(checkpoint={"path": path}, template=mounted)


JSON = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
KNOWN = st.sampled_from(
    [
        *("containers", "image", "name", "env", "value", "volumeMounts", "mountPath", "volumes"),
        *("tolerations", "key", "affinity", "podAntiAffinity", "securityContext", "resources"),
        *("initContainers", "ports", "containerPort", "hostNetwork"),
        *("limits", "requests", "nvidia.com/gpu", "terminationGracePeriodSeconds", "capabilities"),
    ]
)
VALUES = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KNOWN, inner, max_size=3),
    max_leaves=8,
)
PARTS = st.dictionaries(KNOWN, VALUES, max_size=5)


@settings(max_examples=200)
@given(PARTS, PARTS, VALUES)
def test_whatever_a_template_holds_there_is_a_pod_or_a_sentence(
    container: Object, spec: Object, metadata: object
) -> None:
    raw = template(container, **{k: v for k, v in spec.items() if k != "containers"})
    job = make_job()
    with_raw = job.spec.model_copy(update={"template": {**raw, "metadata": metadata}})
    job = job.model_copy(update={"spec": with_raw})
    try:
        check_template(job)
    except InputError as error:
        message = str(error)
    else:
        config = agent_config(job, "p", SETTINGS, grace_seconds(job, SETTINGS))
        json.dumps(make_pod(job, "p", agent_config=config, settings=SETTINGS))
        return
    assert message.startswith("spec.template.")
    assert len(message) < 300
