"""Deleted jobs, and what an operator hears of jobs late, never, or twice."""

from __future__ import annotations

import copy

import pytest
from kube_fakes import until
from kube_site import KubeSite, on_site

from parcae_api.board import JobBoard
from parcae_api.job import Entrypoint, Instances, JobSpec, Metadata, ParcaeJob
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.errors import ClusterUnavailable

pytestmark = pytest.mark.processes

AWAY = ClusterUnavailable("the API server is away")


# Deletion.


def test_a_deleted_job_leaves_nothing(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        site.delete()
        await until(lambda: site.pods == [], "its pods go")
        await until(lambda: not site.client.list(site.board.prefix).items, "its board is clear")
        assert len(operator.jobs) == 0
        assert set(site.api.graces.values()) == {1}

    on_site(kube_etcd.endpoint, work)


def test_a_deletion_that_no_watch_told_is_found(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        operator.is_deaf = True
        site.delete()
        await until(lambda: len(operator.jobs) == 0, "the list tells")
        await until(lambda: not site.client.list(site.board.prefix).items, "its board is clear")

    on_site(kube_etcd.endpoint, work)


def test_a_deleted_job_is_not_brought_back_by_an_old_list(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        old = copy.deepcopy(site.api.jobs_by_name[site.name])
        site.delete()
        operator.jobs.saw(old)
        assert len(operator.jobs) == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_that_is_being_deleted_is_let_go(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        body = copy.deepcopy(site.api.jobs_by_name[site.name])
        body["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        site.api.put_job(body)  # in the foreground: its pods first
        await until(lambda: len(operator.jobs) == 0, "it is let go")
        await until(lambda: site.pods == [], "its pods go")
        site.delete()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 2, "that is all")
        assert len(operator.jobs) == 0

    on_site(kube_etcd.endpoint, work)


def test_a_deletion_that_began_while_no_operator_was_there(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await operator.end()
        body = copy.deepcopy(site.api.jobs_by_name[site.name])
        body["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        site.api.put_job(body)
        operator = site.start()
        await until(lambda: not site.client.list(site.board.prefix).items, "its board is clear")
        assert len(operator.jobs) == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_of_the_same_name_is_another(kube_etcd: EtcdServer) -> None:
    # `kubectl replace --force`: the first one's farewell must not touch the second.
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        first = set(site.pods)
        site.delete()
        site.apply(uid="second", seed=4)
        await until(
            lambda: len(site.pods) == 2 and not first & set(site.pods), "the second's pods only"
        )
        second = set(site.pods)
        assert all(
            site.api.pods_by_name[p]["metadata"]["labels"]["parcae.dev/job-uid"] == "second"
            for p in second
        )
        await until(
            lambda: (job := site.board.job()) is not None and job.metadata.uid == "second",
            "the board is the second's",
        )
        site.run_pods()
        plan = await site.await_plan(1)
        assert plan.revision == 1
        assert {w.removesuffix("-0/0") for w in plan.workers} == second
        assert set(site.pods) == second

    on_site(kube_etcd.endpoint, work)


def test_boards_of_jobs_that_were_deleted_meanwhile_are_cleared(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await operator.end()
        site.delete()
        local = JobBoard(site.client, "team", f"{site.name}-local")
        spec = JobSpec(instances=Instances(max=1), entrypoint=Entrypoint(function="a:b"))
        local.put_job(
            ParcaeJob(
                api_version="parcae.dev/v1alpha1",
                kind="ParcaeJob",
                metadata=Metadata(name=f"{site.name}-local", namespace="team"),
                spec=spec,
            )
        )
        site.start()
        await until(lambda: not site.client.list(site.board.prefix).items, "the board is clear")
        assert local.job() is not None
        local.clear()

    on_site(kube_etcd.endpoint, work)


# Lists and watches.


def test_an_old_list_does_not_undo_an_edit(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        old = copy.deepcopy(site.api.jobs_by_name[site.name])
        site.edit(instances={"min": 1, "max": 4})
        operator.jobs.saw(old)
        await until(lambda: len(site.pods) == 4, "the edit holds")
        assert site.api.count("delete_pod") == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_that_came_while_the_list_was_under_way_stays(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        await until(lambda: site.api.count("jobs") > 0, "it has looked")
        slow = site.api.jobs

        async def jobs(namespace: str = "") -> list[dict[str, object]]:
            found = await slow(namespace)
            if not site.is_there:
                site.apply()
            return found

        site.api.jobs = jobs  # type: ignore[method-assign]
        await until(lambda: len(operator.jobs) == 1, "it is there")
        await site.train()
        assert site.api.count("delete_pod") == 0

    on_site(kube_etcd.endpoint, work)


def test_without_any_watch_lists_are_enough(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        operator.is_deaf = True
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 3})
        await until(lambda: len(site.pods) == 3, "the edit is found")
        site.lose(site.pods[0])
        await site.await_plan(2)

    on_site(kube_etcd.endpoint, work)
