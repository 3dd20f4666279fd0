"""Jobs from the moment they are applied to their end."""

from __future__ import annotations

import time

import pytest
from kube_fakes import until
from kube_objects import template
from kube_site import TOTAL_STEPS, KubeSite, on_site

from parcae_api.events import Failed
from parcae_api.plan import PlanReason
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.errors import ClusterUnavailable, Forbidden

pytestmark = pytest.mark.processes

AWAY = ClusterUnavailable("the API server is away")


# The beginning.


def test_a_job_is_driven_from_nothing_to_training(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        status = site.status
        assert (status.step, status.configuration, status.revision) == (3, "2x1", 1)
        assert status.observed_generation == 1
        assert status.start_time
        assert [d.reason for d in status.decisions] == ["initial"]
        assert all(c.last_transition_time for c in status.conditions)
        job = site.board.job()
        assert job is not None
        assert job.metadata.uid == f"uid-of-{site.name}"
        await until(
            lambda: {"Planned", "InstanceJoined"} <= {e["reason"] for e in site.api.events},
            "people are told",
        )

    on_site(kube_etcd.endpoint, work)


@pytest.mark.parametrize("call", ["nodes", "pods", "jobs"])
def test_nothing_is_touched_before_the_first_complete_look(
    kube_etcd: EtcdServer, call: str
) -> None:
    # To an operator that has just started, all pods and nodes would seem to be missing.
    async def work(site: KubeSite) -> None:
        site.apply()
        site.api.faults[call].extend([AWAY, Forbidden("no"), AWAY])
        operator = site.start()
        site.edit(seed=3)  # its watch tells of it
        await until(lambda: site.api.count(call) == 3, "it has tried")
        assert len(operator.jobs) == 0
        assert site.pods == []
        await until(lambda: len(site.pods) == 2, "then it begins")

    on_site(kube_etcd.endpoint, work)


def test_a_spec_that_cannot_work_creates_nothing_until_it_is_corrected(
    kube_etcd: EtcdServer,
) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply(template={})
        await until(lambda: site.reason() == "InvalidSpec", "it says so")
        degraded = next(c for c in site.status.conditions if c.type == "Degraded")
        assert degraded.message.startswith("spec.template.spec.containers: is required")
        assert site.pods == []
        assert site.board.job() is None
        written = len(site.api.statuses)
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "it looks again and again")
        assert len(site.api.statuses) == written
        site.edit(template=template())
        await until(lambda: len(site.pods) == 2, "it begins")
        await until(lambda: site.reason() == "", "all is well")
        assert site.status.observed_generation == 2

    on_site(kube_etcd.endpoint, work)


# Edits.


def test_an_edit_reaches_the_job(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 4})
        await until(lambda: len(site.pods) == 4, "more pods are asked for")
        site.edit(instances={"min": 1, "max": 2})
        await until(lambda: len(site.pods) == 2, "those that wait are given back")
        assert all(site.api.pods_by_name[p]["spec"].get("nodeName") for p in site.pods)
        await until(lambda: site.status.observed_generation == 3, "it is said")
        assert site.status.preemptions == 0

    on_site(kube_etcd.endpoint, work)


def test_a_slip_in_an_edit_leaves_the_last_good_spec_in_force(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 3})
        await until(lambda: len(site.pods) == 3, "a good edit")
        site.edit(instances={"min": 1, "max": 5}, template={})
        await until(lambda: site.reason() == "InvalidSpec", "it is said")
        assert site.phase == "Training"
        site.lose(site.pods[0])
        plan = await site.await_plan(2)
        assert plan.reason is PlanReason.LOSS
        await operator.end()
        site.start()  # another one knows only the board
        site.form(5)
        await until(lambda: site.status.step == 5, "it drives on")
        assert site.reason() == "InvalidSpec"
        await until(lambda: len(site.pods) == 3, "by the last good spec, not the first")

    on_site(kube_etcd.endpoint, work)


def test_suspended_and_on_again(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply(suspend=True)
        await until(lambda: site.phase == "Suspended", "it is said")
        assert site.pods == []
        site.edit(suspend=False)
        await site.train()

    on_site(kube_etcd.endpoint, work)


# The end.


async def complete(site: KubeSite) -> None:
    site.form(TOTAL_STEPS)
    await until(lambda: not site.is_there or site.phase == "Completed", "it is complete")


def test_a_finished_job_gives_its_pods_back_and_stays(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await complete(site)
        status = site.status
        assert status.completion_time
        assert (status.step, status.configuration, status.instances) == (TOTAL_STEPS, "", 0)
        assert len(status.decisions) == 1
        await until(lambda: site.pods == [], "its pods go")
        assert set(site.api.graces.values()) == {5}
        written = len(site.api.statuses)
        await operator.end()
        site.start()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "another one looks at it")
        assert site.status == status
        assert len(site.api.statuses) == written
        assert site.pods == []

    on_site(kube_etcd.endpoint, work)


def test_a_finished_job_is_deleted_when_its_time_has_come(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        await complete(site)
        site.edit(ttlSecondsAfterFinished=3600)  # edits count after the end, too
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "it looks again and again")
        assert site.is_there
        site.edit(ttlSecondsAfterFinished=0)
        await until(lambda: not site.is_there, "it is deleted")
        await until(lambda: site.board.job() is None, "with its board")

    on_site(kube_etcd.endpoint, work)


def test_a_failure_of_the_users_code_ends_the_job_for_good(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        crashed, other = site.pods
        failed = Failed(
            at_unix_s=time.time(), worker=f"{crashed}-0/0", step=3, message="ValueError: boom"
        )
        site.board.put_failure(failed)
        site.api.end(crashed, 42)
        await until(lambda: site.phase == "Failed", "it is said")
        message = next(c.message for c in site.status.conditions if c.type == "Failed")
        assert message == "ValueError: boom"
        assert site.status.failures == 1
        await until(lambda: site.pods == [crashed], f"{other} goes, the other's logs stay")
        await operator.end()
        site.start()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "another one looks at it")
        assert site.pods == [crashed]
        assert site.phase == "Failed"

    on_site(kube_etcd.endpoint, work)


def test_pods_that_cannot_be_given_back_yet_are_later(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        site.api.faults["delete_pod"].extend([AWAY] * 3)
        await complete(site)
        await until(lambda: site.pods == [], "its pods go")

    on_site(kube_etcd.endpoint, work)
