"""The status on a real API server, and what kubectl shows of jobs: explain, columns, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from parcae_api.crd import job_schema
from parcae_api.job import ParcaeJob
from parcae_api.job_status import (
    Condition,
    ConditionType,
    Decision,
    InstanceCounts,
    JobStatus,
    LastMigration,
    Phase,
)

from .api_server import JOBS, ROOT, Object, Server, as_read, job, python_says

pytestmark = pytest.mark.cluster

STATUS = JobStatus(
    observed_generation=1,
    phase=Phase.TRAINING,
    conditions=(
        Condition(
            type=ConditionType.PROGRESSING,
            status="True",
            reason="Training",
            message="2x3 is best for 6 instances",
            last_transition_time="2026-11-30T00:00:00Z",
        ),
    ),
    configuration="2x3",
    revision=7,
    step=120,
    total_steps=1000,
    samples=3840,
    instances=6,
    instance_counts=InstanceCounts(training=6),
    throughput_samples_per_second=12.5,
    liveput_samples_per_second=11.25,
    preemptions=3,
    preemptions_noticed=2,
    last_migration=LastMigration(
        time="2026-11-30T00:00:00Z",
        revision=7,
        kind="pipeline",
        pause_seconds=0.5,
        bytes_moved=2**40,
        steps_replayed=1,
    ),
    decisions=(
        Decision(
            time="2026-11-30T00:00:00Z",
            revision=7,
            reason="loss",
            configuration="2x3",
            why="best",
        ),
    ),
    start_time="2026-11-30T00:00:00Z",
)


def written(status: JobStatus) -> Object:
    dumped: Object = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


class TestStatus:
    def test_it_is_the_operators_own_resource(self, server: Server) -> None:
        with_status = job() | {"status": {"phase": "Failed"}}
        assert "status" not in server.create(with_status)
        answer = server.change("gpt", {"status": written(STATUS), "spec": {"seed": 9}}, "/status")
        assert answer.ok, answer.body
        assert answer.body["spec"]["seed"] == 0
        assert answer.body["metadata"]["generation"] == 1
        read = ParcaeJob.model_validate(as_read(answer.body))
        assert read.status == STATUS
        assert server.change("gpt", {"status": {"step": 1}}).body["status"]["step"] == STATUS.step

    def test_all_that_the_model_writes_is_known(self, server: Server) -> None:
        server.create(job())
        answer = server.change(
            "gpt", {"status": written(STATUS)}, "/status", fieldValidation="Strict"
        )
        assert answer.ok, answer.body
        stored = answer.body["status"]
        assert stored == written(STATUS)

    def test_absent_values_are_removed_by_a_merge_patch(self, server: Server) -> None:
        server.create(job())
        assert server.change("gpt", {"status": written(STATUS)}, "/status").ok
        empty = JobStatus().model_dump(mode="json", by_alias=True)
        answer = server.change("gpt", {"status": empty}, "/status", fieldValidation="Strict")
        assert answer.ok, answer.body
        assert "lastMigration" not in answer.body["status"]
        assert ParcaeJob.model_validate(as_read(answer.body)).status == JobStatus()

    def test_conditions_are_merged_by_type(self, server: Server) -> None:
        server.create(job())
        for type_, manager in (("Ready", "one"), ("Degraded", "two")):
            condition = {"type": type_, "status": "True", "reason": "Test"}
            head = {"apiVersion": "parcae.dev/v1alpha1", "kind": "ParcaeJob"}
            answer = server.send(
                "PATCH",
                f"{JOBS}/gpt/status",
                {**head, "metadata": {"name": "gpt"}, "status": {"conditions": [condition]}},
                "application/apply-patch+yaml",
                fieldManager=manager,
            )
            assert answer.ok, answer.body
        assert [c["type"] for c in answer.body["status"]["conditions"]] == ["Ready", "Degraded"]
        twice = {"status": {"conditions": [condition, condition]}}
        answer = server.change("gpt", twice, "/status")
        assert answer.refusals[0][1].startswith("Duplicate value")

    @pytest.mark.parametrize(
        ("status", "field"),
        [
            ({"phase": "Thinking"}, "status.phase"),
            ({"step": -1}, "status.step"),
            ({"conditions": [{"type": "Ready"}]}, "status.conditions[0].reason"),
            ({"decisions": [{}] * 11}, "status.decisions"),
        ],
    )
    def test_nonsense_is_refused(self, server: Server, status: Object, field: str) -> None:
        server.create(job())
        answer = server.change("gpt", {"status": status}, "/status")
        assert answer.status == 422
        assert field in dict(answer.refusals)


class TestKubectl:
    def test_explain(self, server: Server) -> None:
        for path in ("spec", "status", "spec.entrypoint", "spec.checkpoint", "status.conditions"):
            said = " ".join(server.kubectl("explain", f"parcaejob.{path}").split())
            node = job_schema()
            for part in path.split("."):
                node = node["properties"][part]
            assert node["description"] in said
            for name, field in node.get("items", node)["properties"].items():
                assert f"{name} <" in said
                assert field["description"] in said

    def test_explain_tells_what_may_be_written(self, server: Server) -> None:
        said = server.kubectl("explain", "pj.spec.reduction")
        assert "exact" in said
        assert "fast" in said
        assert "-required-" in server.kubectl("explain", "pj.spec.instances")

    def test_columns(self, server: Server) -> None:
        server.create(job())
        header, empty = server.kubectl("get", "pj").splitlines()
        assert header.split() == [
            "NAME",
            "PHASE",
            "CONFIG",
            "STEP",
            "INSTANCES",
            "LIVEPUT",
            "PREEMPTIONS",
            "AGE",
        ]
        assert empty.split()[0] == "gpt"
        assert server.change("gpt", {"status": written(STATUS)}, "/status").ok
        _, row = server.kubectl("get", "pj").splitlines()
        assert row.split()[:-1] == ["gpt", "Training", "2x3", "120", "6", "11.25", "3"]
        header, row = server.kubectl("get", "pj", "-o", "wide").splitlines()
        assert header.split()[-3:] == ["THROUGHPUT", "REVISION", "MESSAGE"]
        assert row.endswith("2x3 is best for 6 instances")
        assert row.split()[8:10] == ["12.5", "7"]

    def test_names_and_categories(self, server: Server) -> None:
        server.create(job())
        for name in ("pj", "parcaejob", "parcaejobs", "all", "parcae"):
            assert "gpt" in server.kubectl("get", name, "-o", "name"), name

    def test_selection_by_phase(self, server: Server) -> None:
        server.create(job())
        server.create(job("other"))
        assert server.change("gpt", {"status": {"phase": "Training"}}, "/status").ok
        selector = "--field-selector=status.phase="
        assert server.kubectl("get", "pj", "-o", "name", f"{selector}Training").split() == [
            "parcaejob.parcae.dev/gpt"
        ]
        assert "other" in server.kubectl("get", "pj", "-o", "name", selector)

    @pytest.mark.parametrize("name", ["job.yaml", "kubernetes.yaml"])
    def test_examples(self, server: Server, name: str) -> None:
        path = f"examples/gpt/{name}"
        assert "created" in server.kubectl("apply", "-f", path)
        assert "unchanged" in server.kubectl("apply", "-f", path)
        body = server.send("GET", f"{JOBS}/gpt").body
        assert python_says(as_read(body)) is None

    def test_a_refusal_as_people_see_it(self, server: Server, tmp_path: Any) -> None:
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump(job(instances={"min": 5, "max": 2})))
        said = server.kubectl("apply", "-f", path, check=False)
        assert said == (
            'The ParcaeJob "gpt" is invalid: spec.instances.min: Invalid value: min (5) must not '
            "be above max (2); lower min or raise max\n"
        )
        page = (ROOT / "docs" / "parcaejob.md").read_text()
        assert said.strip() in page
