"""Whatever is written as a job: it parses, or is refused in one sentence that names the field."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from pydantic import ValidationError

from parcae_api.errors import InputError
from parcae_api.job import ParcaeJob, explain, load_job

from .job_strategies import Document, hostile, jobs, nested, spoilt
from .job_strategies import Path as Place

LONGEST = 800
JOB: Document = {
    "apiVersion": "parcae.dev/v1alpha1",
    "kind": "ParcaeJob",
    "metadata": {"name": "gpt"},
    "spec": {"instances": {"max": 4}, "entrypoint": {"function": "gpt:gpt"}},
}


def with_args(**args: Any) -> tuple[Document, Place]:
    entrypoint = {"function": "gpt:gpt", "args": args}
    spec = {**JOB["spec"], "entrypoint": entrypoint}
    return {**JOB, "spec": spec}, ("spec", "entrypoint", "args", *args)


def survives(job: ParcaeJob) -> None:
    """From program to program, as JSON, nothing of it changes."""
    assert ParcaeJob.from_json(job.model_dump_json(by_alias=True)) == job


@given(jobs())
def test_right_jobs_parse(document: Document) -> None:
    survives(ParcaeJob.model_validate(document))


@given(spoilt(hostile))
@example(with_args(a=float("nan")))
@example(with_args(a=nested(1000)))
@example(with_args(a="\ud800"))
@example(with_args(a=[[datetime.date(2026, 1, 1)]]))
@example(with_args(a=10**5000))
def test_spoilt_jobs_are_explained(spoilt_job: tuple[Document, Place]) -> None:
    document, place = spoilt_job
    try:
        job = ParcaeJob.model_validate(document)
    except ValidationError as error:
        sentence = explain(error)
        assert len(sentence) <= LONGEST
        assert sentence.isprintable()
        if all(re.fullmatch(r"\w{1,40}", str(part)) for part in place):
            where, named = ".".join(map(str, place)), sentence.partition(": ")[0]
            assert where.startswith(named) or named.startswith(where)
    else:
        survives(job)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"instances": {"min": 5, "max": 2}},
            "spec.instances: min (5) must not be above max (2); lower min or raise max",
        ),
        (
            {"pipeline": {"minStages": 9}},
            "spec: pipeline.minStages (9) needs as many instances, but instances.max is 4; "
            "raise max or lower minStages",
        ),
        (
            {"pipeline": {"minStages": 4, "maxStages": 3}},
            "spec.pipeline: minStages (4) must not be above maxStages (3); lower minStages or "
            "raise maxStages",
        ),
        (
            {"entrypoint": {"function": "gpt"}},
            "spec.entrypoint.function: 'gpt' must have the form module:function, like train:gpt",
        ),
        (
            {"entrypoint": {"function": "größe:gpt"}},
            "spec.entrypoint.function: 'größe:gpt' must have the form module:function, like "
            "train:gpt",
        ),
        (
            {"entrypoint": {"function": "a:b", "configMap": "My Code"}},
            "spec.entrypoint.configMap: 'My Code' cannot be the name of a ConfigMap; use "
            "lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
        ),
        (
            {"entrypoint": {"function": "a:b", "args": {"day": datetime.date(2026, 1, 2)}}},
            "spec.entrypoint.args: day is a date (2026-01-02), which JSON does not have; write it "
            "in quotes",
        ),
        (
            {"entrypoint": {"function": "a:b", "args": {"sizes": {1: 2}}}},
            "spec.entrypoint.args: sizes has the key 1, which is no text; write it in quotes",
        ),
        (
            {"template": nested(99)},
            "spec.template: is nested deeper than 64 levels; flatten it",
        ),
        ({"checkpoint": {"path": ""}}, "spec.checkpoint.path: String should have at least 1"),
        ({"seed": 2**31}, "spec.seed: Input should be less than or equal to 2147483647"),
        ({"instanzes": 1}, "spec.instanzes: is not a known field; remove it or correct"),
    ],
)
def test_sentences(change: Document, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ParcaeJob.model_validate({**JOB, "spec": {**JOB["spec"], **change}})
    assert explain(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a" * 41, "metadata.name: has 41 characters, but pods are named after the job"),
        ("a.b", "metadata.name: 'a.b' cannot name pods; use lower-case letters, digits and '-'"),
        ("", "metadata.name: '' cannot name pods"),
        ("gpt\n", "metadata.name: 'gpt\ufffd' cannot name pods"),
    ],
)
def test_names(name: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ParcaeJob.model_validate({**JOB, "metadata": {"name": name}})
    assert explain(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "args",
    [
        "2026-13-01",
        '!!int ""',
        "!!timestamp no",
        "[" * 3000 + "]" * 3000,
        "9" * 5000,
        "{a: &a [*a]}",
        "{a: &a [x,x,x,x,x,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a],"
        " c: &c [*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c],"
        " e: &e [*d,*d,*d,*d,*d,*d,*d,*d], f: [*e,*e,*e,*e,*e,*e,*e,*e]}",
        "{a: .inf}",
        "{2026-01-01: 1}",
    ],
)
def test_odd_yaml_is_refused_in_a_sentence(tmp_path: Path, args: str) -> None:
    head = yaml.safe_dump({key: value for key, value in JOB.items() if key != "spec"})
    path = tmp_path / "job.yaml"
    spec = f"spec:\n  instances: {{max: 1}}\n  entrypoint:\n    function: a:b\n    args: {args}\n"
    path.write_text(head + spec)
    with pytest.raises(InputError) as caught:
        load_job(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert len(sentence) <= len(str(path)) + LONGEST
    assert sentence.isprintable()
