"""The CRD's rules on a real API server: what it refuses, and how; defaults; as the models do."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from parcae_api.job import ParcaeJob

from .api_server import CRDS, JOBS, ROOT, Object, Server, as_read, job, python_says
from .job_strategies import Document, hostile_json, jobs, spoilt

pytestmark = pytest.mark.cluster

ON_SERVER = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ONLY_IN_PYTHON = ("nested deeper than 64 levels", "whole number of more than 64 bits")
"""What no schema can say of values that are the user's own."""
ENDS = "with a letter or digit at both ends"
ANOTHER = "it would no longer be one and the same training; create another job instead"


def test_accepted_without_a_complaint(server: Server) -> None:
    text = (ROOT / "crds" / "parcae.dev_parcaejobs.yaml").read_text()
    crd = yaml.safe_load(text)
    answer = server.send(
        "PATCH",
        f"{CRDS}/parcaejobs.parcae.dev",
        crd,
        "application/apply-patch+yaml",
        fieldManager="test",
        force="true",
        fieldValidation="Strict",
        dryRun="All",
    )
    assert answer.ok, answer.body
    assert answer.warnings == ()
    conditions = {c["type"]: c["status"] for c in answer.body["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_rules_are_cheap(server: Server) -> None:
    # Above the budget the server refuses; sixteen rules in place of each would still do.
    crd = server.send("GET", f"{CRDS}/parcaejobs.parcae.dev").body
    crd["metadata"] = {"name": "parcaejobs.dear.dev"}
    crd["spec"] |= {"group": "dear.dev"}
    _repeat_rules(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], times=16)
    crd.pop("status")
    answer = server.send("POST", CRDS, crd, dryRun="All")
    assert answer.ok, answer.body["message"]


def _repeat_rules(schema: Any, times: int) -> None:
    if isinstance(schema, dict):
        rules = schema.get("x-kubernetes-validations")
        if rules:
            schema["x-kubernetes-validations"] = [
                {**rule, "rule": f"{rule['rule']}{' ' * n}"} for rule in rules for n in range(times)
            ]
        for part in schema.values():
            _repeat_rules(part, times)


RULES = [
    (
        {"instances": {"min": 5, "max": 2}},
        "spec.instances.min",
        "min (5) must not be above max (2); lower min or raise max",
    ),
    (
        {"pipeline": {"minStages": 4, "maxStages": 3}},
        "spec.pipeline.minStages",
        "minStages (4) must not be above maxStages (3); lower minStages or raise maxStages",
    ),
    (
        {"pipeline": {"minStages": 9}},
        "spec.pipeline.minStages",
        "pipeline.minStages (9) needs as many instances, but instances.max is 4; raise max or "
        "lower minStages",
    ),
    *(
        (
            {"entrypoint": {"function": function}},
            "spec.entrypoint.function",
            f"'{function}' must have the form module:function, like train:gpt",
        )
        for function in (
            "gpt",
            "a:b:c",
            ":a",
            "a:",
            "a-b:c",
            "a..b:c",
            "1:a",
            "größe:a",
            "",
        )
    ),
    *(
        (
            {"entrypoint": {"function": "a:b", "configMap": name}},
            "spec.entrypoint.configMap",
            f"'{name}' cannot be the name of a ConfigMap; use lower-case letters, digits, '-' and "
            f"'.', {ENDS}",
        )
        for name in ("My Code", "-a", "a-", "ä", "")
    ),
]


@pytest.mark.parametrize(("spec", "field", "message"), RULES)
def test_rules(server: Server, spec: Object, field: str, message: str) -> None:
    answer = server.try_out(job(**spec))
    assert answer.status == 422
    assert answer.refusals == [(field, f"Invalid value: {message}")]
    assert python_says(job(**spec)) == message


def test_a_name_with_a_line_break_is_refused_by_the_rule_itself(server: Server) -> None:
    # A message of two lines is none to the API server.
    answer = server.try_out(job(entrypoint={"function": "a:b\n"}))
    ((field, message),) = answer.refusals
    assert field == "spec.entrypoint.function"
    assert message.startswith("Invalid value: failed rule: self.__function__.matches")


@pytest.mark.parametrize(
    "spec",
    [
        {"instances": {"min": 512, "max": 512}},
        {"pipeline": {"minStages": 4, "maxStages": 4}},
        {"pipeline": {"minStages": 4}},
        {"entrypoint": {"function": "_a.b_1.C:_d", "configMap": "a.b-1"}},
        {"entrypoint": {"function": f"{'a' * 251}:b", "configMap": "a" * 253}},
        {"entrypoint": {"function": "a:b", "args": {"": None, "x": [1, {"y": 0.5}], "z": "ü"}}},
        {"template": {"spec": {"containers": [{"name": "a", "anything": {"goes": 1}}]}}},
        {"template": {"metadata": {"labels": {"a": "b"}}}},
        {"checkpoint": {"everySteps": 10**15, "path": "s3://a/ü"}},
    ],
)
def test_edges_are_accepted(server: Server, spec: Object) -> None:
    answer = server.try_out(job(**spec))
    assert answer.ok, answer.body
    assert python_says(job(**spec)) is None
    assert python_says(as_read(answer.body)) is None


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"instances": {}}, "spec.instances.max", "Required value"),
        ({"instances": {"max": 0}}, "spec.instances.max", "greater than or equal to 1"),
        ({"instances": {"max": 513}}, "spec.instances.max", "less than or equal to 512"),
        ({"instances": {"max": "4"}}, "spec.instances.max", 'must be of type integer: "string"'),
        ({"seed": -1}, "spec.seed", "greater than or equal to 0"),
        ({"seed": 2**31}, "spec.seed", "less than or equal to 2147483647"),
        ({"reduction": "quick"}, "spec.reduction", 'supported values: "exact", "fast"'),
        ({"checkpoint": {"path": ""}}, "spec.checkpoint.path", "at least 1 chars long"),
        ({"checkpoint": {"path": "a" * 4097}}, "spec.checkpoint.path", "more than 4096"),
        (
            {"entrypoint": {"function": "a:b", "args": {f"a{n}": n for n in range(65)}}},
            "spec.entrypoint.args",
            "must have at most 64",
        ),
        (
            {"template": {"spec": {"containers": []}}},
            "spec.template.spec.containers",
            "should have at least 1 items",
        ),
        ({"template": {"spec": {}}}, "spec.template.spec.containers", "Required value"),
    ],
)
def test_bounds(server: Server, spec: Object, field: str, message: str) -> None:
    answer = server.try_out(job(**spec))
    assert answer.status == 422
    messages = dict(answer.refusals)
    assert message in messages[field]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "a" * 41,
            "metadata.name has 41 characters, but pods are named after the job; use at most 40",
        ),
        (
            "a.b",
            "metadata.name 'a.b' cannot name pods; use lower-case letters, digits and '-', " + ENDS,
        ),
    ],
)
def test_names(server: Server, name: str, message: str) -> None:
    answer = server.try_out(job(name))
    assert answer.refusals == [("<nil>", f"Invalid value: {message}")]
    said = python_says(job(name))
    assert said is not None
    assert f"metadata.name {said}" == message


def test_the_longest_name(server: Server) -> None:
    assert server.try_out(job("a" * 40)).ok
    generated = job()
    generated["metadata"] = {"generateName": "a" * 34 + "-"}
    assert server.try_out(generated).ok
    generated["metadata"] = {"generateName": "a" * 35 + "-"}
    assert "41 characters" in server.try_out(generated).body["message"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("entrypoint", {"function": "gpt:other"}),
        ("entrypoint", {"args": {"layers": 7}}),
        ("entrypoint", {"args": {"deep": {"a": [1]}}}),
        ("entrypoint", {"args": None}),
        ("entrypoint", {"configMap": "other"}),
        ("entrypoint", {"configMap": None}),
        ("reduction", "fast"),
        ("seed", 2),
        ("seed", None),
        ("threadsPerWorker", 1),
        ("threadsPerWorker", None),
    ],
)
def test_what_cannot_be_changed(server: Server, field: str, change: Any) -> None:
    entrypoint = {"function": "gpt:gpt", "args": {"layers": 6}, "configMap": "code"}
    server.create(job(entrypoint=entrypoint, seed=1, threadsPerWorker=2))
    answer = server.change("gpt", {"spec": {field: change}})
    assert answer.refusals == [(f"spec.{field}", f"Forbidden: cannot be changed: {ANOTHER}")]


@pytest.mark.parametrize(("before", "after"), [("/a", "/b"), ("/a", None), (None, "/b")])
def test_the_checkpoint_path_cannot_be_changed(
    server: Server, before: str | None, after: str | None
) -> None:
    server.create(job(checkpoint={"path": before} if before else {}))
    answer = server.change("gpt", {"spec": {"checkpoint": {"path": after}}})
    assert answer.refusals == [
        (
            "spec.checkpoint.path",
            "Forbidden: cannot be changed: saved state would be looked for in another folder; "
            "create another job instead",
        )
    ]


def test_the_checkpoint_goes_with_its_path(server: Server) -> None:
    server.create(job(checkpoint={"path": "/a"}))
    assert not server.change("gpt", {"spec": {"checkpoint": None}}).ok


def test_what_can_be_changed(server: Server) -> None:
    server.create(job(entrypoint={"function": "a:b", "args": {"a": [1, {"b": 2.5}]}}))
    changes = {
        "instances": {"min": 2, "max": 8},
        "entrypoint": {"function": "a:b", "args": {"a": [1, {"b": 2.5}]}},
        "pipeline": {"minStages": 2},
        "checkpoint": {"everySteps": 7},
        "planning": {"horizon": 3},
        "suspend": True,
        "backoffLimit": 1,
        "ttlSecondsAfterFinished": 60,
        "template": {"spec": {"containers": [{"name": "a"}]}},
    }
    answer = server.change("gpt", {"spec": changes})
    assert answer.ok, answer.body
    assert answer.body["metadata"]["generation"] == 2


def test_defaults(server: Server) -> None:
    body = server.create(job())
    assert body["spec"] == {
        "instances": {"min": 1, "max": 4},
        "entrypoint": {"function": "gpt:gpt", "args": {}},
        "reduction": "exact",
        "seed": 0,
        "pipeline": {"minStages": 1, "maxStages": 512},
        "checkpoint": {"everySteps": 50},
        "threadsPerWorker": 1,
        "planning": {"intervalSeconds": 60, "horizon": 12},
        "suspend": False,
        "backoffLimit": 0,
        "template": {},
    }
    assert "status" not in body
    read = ParcaeJob.model_validate(as_read(body))
    assert read.spec == ParcaeJob.model_validate(job()).spec
    assert read.metadata.uid


def test_parts_get_the_other_defaults(server: Server) -> None:
    spec = server.create(job(pipeline={"minStages": 2}, planning={}, checkpoint={"path": "/a"}))[
        "spec"
    ]
    assert spec["pipeline"] == {"minStages": 2, "maxStages": 512}
    assert spec["planning"] == {"intervalSeconds": 60, "horizon": 12}
    assert spec["checkpoint"] == {"path": "/a", "everySteps": 50}


def test_arguments_arrive_as_they_are(server: Server) -> None:
    args = {"none": None, "": [None, {"a": None}], "float": 2.0, "deep": {"a": {"b": [[]]}}}
    body = server.create(job(entrypoint={"function": "a:b", "args": args}))
    assert body["spec"]["entrypoint"]["args"] == args
    assert server.send("GET", f"{JOBS}/gpt").body["spec"]["entrypoint"]["args"] == args


def test_unknown_fields(server: Server) -> None:
    wrong = job(instanzes=1, pipeline={"stages": 2})
    wrong["sepc"] = {}
    answer = server.try_out(wrong)
    assert answer.status == 400
    for field in ("sepc", "spec.instanzes", "spec.pipeline.stages"):
        assert f'unknown field "{field}"' in answer.body["message"]
    lenient = server.send("POST", JOBS, wrong, dryRun="All", fieldValidation="Warn")
    assert len(lenient.warnings) == 3
    assert "instanzes" not in lenient.body["spec"]


class TestBothCheckAlike:
    @ON_SERVER
    @given(jobs())
    def test_right_jobs_are_accepted(self, server: Server, document: Document) -> None:
        answer = server.try_out(document)
        assert answer.ok, answer.body["message"]
        stored = ParcaeJob.model_validate(as_read(answer.body))
        assert stored.spec == ParcaeJob.model_validate(document).spec

    @ON_SERVER
    @given(spoilt(hostile_json))
    def test_what_the_server_accepts_python_accepts(
        self, server: Server, spoilt_job: tuple[Document, Any]
    ) -> None:
        document, _ = spoilt_job
        answer = server.try_out(document)
        if not answer.ok:
            return
        said = python_says(as_read(answer.body)) or ""
        assert not said or any(known in said for known in ONLY_IN_PYTHON), said
