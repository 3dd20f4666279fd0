"""The ParcaeJob object: read without trust, written whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_objects import Object, job_body

from parcae_api.errors import InputError
from parcae_api.job_status import Condition, ConditionType, JobStatus, LastMigration
from parcae_operator.kube.objects import (
    dump_status,
    identity,
    is_older,
    read_job,
    read_status,
)


def test_the_job_as_the_user_wants_it() -> None:
    body = job_body(seed=7)
    body["status"] = {"nonsense": True}
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied": "x" * 1000}
    job = read_job(body)
    assert (job.metadata.namespace, job.metadata.name, job.metadata.uid) == (
        "team",
        "gpt",
        "uid-of-gpt",
    )
    assert job.metadata.generation == 1
    assert job.metadata.annotations == {}
    assert job.spec.seed == 7
    assert job.status == JobStatus()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"instances": {"min": 3, "max": 2}}, "spec.instances: min (3) must not be above max (2)"),
        ({"instances": {}}, "spec.instances.max: is required; add it"),
        ({"sed": 1}, "spec.sed: is not a known field"),
        ({"template": {}}, "spec.template.spec.containers: is required"),
    ],
)
def test_what_cannot_work_is_one_sentence(spec: Object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_job(job_body(**spec))
    assert str(caught.value).startswith(message)


def test_no_spec_at_all() -> None:
    body = job_body()
    del body["spec"]
    with pytest.raises(InputError, match="spec: "):
        read_job(body)


KNOWN = [
    *("name", "namespace", "uid", "generation", "labels", "instances", "min", "max", "entrypoint"),
    *("function", "args", "template", "spec", "containers", "image", "status", "phase"),
    *("conditions", "step", "decisions"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(JSON, JSON, JSON)
def test_nothing_but_a_sentence_comes_of_nonsense(
    metadata: object, spec: object, status: object
) -> None:
    body = {"metadata": metadata, "spec": spec, "status": status}
    assert isinstance(read_status(body), JobStatus)
    identity(body)
    assert not is_older(body, body)
    with pytest.raises(InputError) as caught:
        read_job(body)
    assert "\n" not in str(caught.value)


@settings(max_examples=100)
@given(st.sampled_from(list(job_body()["spec"])), JSON)
def test_one_field_of_nonsense_is_named(field: str, value: object) -> None:
    message = f"spec.{field}"
    try:
        read_job(job_body(**{field: value}))
    except InputError as error:
        message = str(error)
    assert message.startswith(f"spec.{field}")


def deep(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [100, 5000])
def test_a_spec_that_is_nested_endlessly_is_refused(levels: int) -> None:
    for spec in (
        {"template": deep(levels)},
        {"entrypoint": {"function": "a:b", "args": {"x": deep(levels)}}},
    ):
        with pytest.raises(InputError, match="nested"):
            read_job(job_body(**spec))


# The status.


def make_status() -> JobStatus:
    return JobStatus(
        conditions=(Condition(type=ConditionType.READY, status="True", reason="Training"),),
        step=5,
        samples=40,
        preemptions=3,
        last_migration=LastMigration(
            time="t",
            revision=2,
            kind="pipeline",
            pause_seconds=0.5,
            bytes_moved=9,
            steps_replayed=0,
        ),
    )


def test_a_status_survives_the_way_to_the_server_and_back() -> None:
    assert read_status({"status": dump_status(make_status())}) == make_status()


def test_what_is_absent_is_removed_on_the_server() -> None:
    assert dump_status(JobStatus())["lastMigration"] is None


def test_nulls_that_a_server_left_out_are_no_difference() -> None:
    dumped = {k: v for k, v in dump_status(JobStatus(step=3)).items() if v is not None}
    assert read_status({"status": dumped}) == JobStatus(step=3)


@pytest.mark.parametrize("status", [None, [], "x", {"step": "many"}, {"conditions": 5}])
def test_a_status_that_cannot_be_read_is_none(status: object) -> None:
    assert read_status({"status": status}) == JobStatus()


# Identity.


def test_versions_tell_which_reading_is_older() -> None:
    young, old = {"metadata": {"resourceVersion": "100"}}, {"metadata": {"resourceVersion": "99"}}
    assert is_older(old, young)
    assert not is_older(young, old)
    assert not is_older(young, young)
    assert is_older({}, young)
