"""The port that Prometheus asks, of an operator at work: jobs that train, end, go on elsewhere."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from kube_fakes import FakeApi, until
from kube_objects import make_node
from kube_site import KubeSite, Operator, on_site
from prometheus_client.parser import text_string_to_metric_families

from parcae_api.events import Migration, MigrationKind
from parcae_api.plan import PlanReason
from parcae_api.progress import Progress
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.api import ClusterApi
from parcae_operator.kube.errors import ClusterUnavailable
from parcae_operator.kube.program import Program
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.telling import Telling

pytestmark = pytest.mark.processes


class Prometheus:
    """Asks one operator."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    async def ask(self) -> dict[str, float]:
        """Samples by name and values of labels, such as ``parcae_instances team gpt training``."""
        text = await asyncio.to_thread(self._read)
        return {
            " ".join([sample.name, *(sample.labels[k] for k in _in_order(sample.labels))]): value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            for value in [sample.value]
        }

    def _read(self) -> str:
        with urllib.request.urlopen(self._url, timeout=10) as answer:
            return answer.read().decode()


def _in_order(labels: dict[str, str]) -> list[str]:
    first = [k for k in ("namespace", "job") if k in labels]
    return [*first, *sorted(k for k in labels if k not in first)]


@contextmanager
def scraped(operator: Operator) -> Iterator[Prometheus]:
    telling = Telling.on(0, operator.jobs._services, operator.jobs)
    assert telling.port is not None
    try:
        yield Prometheus(telling.port)
    finally:
        telling.close()


def test_no_port_no_metrics_and_a_port_that_is_taken_is_no_end(
    kube_etcd: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        services = operator.jobs._services
        silent = replace(services, settings=OperatorSettings(board="etcd:1", metrics_port=0))
        off = Telling.start(silent, operator.jobs)
        assert off.port is None
        off.close()
        with socket.create_server(("0.0.0.0", 0)) as taken:
            port = taken.getsockname()[1]
            busy = replace(services, settings=OperatorSettings(board="etcd:1", metrics_port=port))
            failed = Telling.start(busy, operator.jobs)
        assert failed.port is None
        assert f"port {port} cannot be had" in caplog.text
        failed.close()

    on_site(kube_etcd.endpoint, work)


class WholeApi(FakeApi):
    """With what a program asks at its start and end."""

    async def has_jobs_kind(self) -> bool:
        return True

    async def close(self) -> None:
        pass


def test_a_program_answers_from_its_start_to_its_end(
    kube_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect() -> WholeApi:
        return WholeApi()

    monkeypatch.setattr(ClusterApi, "connect", connect)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def work() -> None:
        settings = OperatorSettings(
            board=kube_etcd.endpoint, planner="http://127.0.0.1:1", metrics_port=port
        )
        program = Program(settings)
        await program.start()
        prometheus = Prometheus(port)
        found = await has(prometheus, parcae_board_up=1, parcae_api_server_up=1)
        await has(prometheus, parcae_planner_up=0)
        assert found["parcae_jobs"] == 0
        assert any(key.startswith("parcae_build_info ") for key in found)
        await program.close()
        with pytest.raises(urllib.error.URLError):
            await prometheus.ask()

    asyncio.run(work())


def migration(revision: int) -> Migration:
    return Migration(
        at_unix_s=time.time(),
        revision=revision,
        kind=MigrationKind.PIPELINE,
        reason=PlanReason.LOSS,
        resumed_step=7,
        bytes_moved=4096,
        pause_seconds=1.25,
        transfer_seconds=0.1,
        steps_replayed=1,
        sudden=True,
    )


async def has(prometheus: Prometheus, **expected: float) -> dict[str, float]:
    """What is told once these values are."""
    deadline_s = time.monotonic() + 20
    while True:
        found = await prometheus.ask()
        differ = {k: found.get(k) for k, v in expected.items() if found.get(k) != v}
        if not differ:
            return found
        assert time.monotonic() < deadline_s, f"never told: {differ}"
        await asyncio.sleep(0.05)


def test_a_job_from_its_first_step_to_its_deletion(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        with scraped(operator) as prometheus:
            site.apply()
            await site.train()
            of_job = f"team {site.name}"
            found = await has(
                prometheus,
                **{
                    f"parcae_job_phase {of_job} Training": 1,
                    f"parcae_steps_committed_total {of_job}": 3,
                    "parcae_board_up": 1,
                },
            )
            assert found[f"parcae_instances {of_job} training"] == 2
            assert found[f"parcae_instances_max {of_job}"] == 2
            assert found[f"parcae_plan_revision {of_job}"] == 1
            assert found[f"parcae_ideal_samples_per_second {of_job}"] > 0
            assert found[f"parcae_job_condition {of_job} Ready"] == 1
            assert found[f"parcae_preemptions_total {of_job} false"] == 0
            assert found["parcae_plan_seconds_count"] >= 1
            assert found["parcae_api_server_up"] == found["parcae_jobs"] == 1
            assert found["parcae_nodes true healthy "] == 2
            assert found["parcae_scrape_failures"] == 0
            assert "parcae_planner_up" not in found  # it was given none
            site.delete()
            deadline_s = time.monotonic() + 20
            while site.name in " ".join(await prometheus.ask()):
                assert time.monotonic() < deadline_s, "a deleted job is still told of"

    on_site(kube_etcd.endpoint, work)


def test_counters_go_on_where_they_were_in_another_operator(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        of_job = f"team {site.name}"
        with scraped(operator) as prometheus:
            site.lose(site.pods[1])
            await site.await_plan(2)
            site.board.add_event(migration(2))
            site.form(7)
            kept = {
                f"parcae_steps_committed_total {of_job}": 7,
                f"parcae_samples_committed_total {of_job}": 56,
                f"parcae_steps_replayed_total {of_job}": 1,
                f"parcae_preemptions_total {of_job} false": 1,
                f"parcae_migrations_total {of_job} pipeline": 1,
                f"parcae_migration_bytes_total {of_job} pipeline": 4096,
                f"parcae_migration_pause_seconds_sum {of_job} pipeline": 1.25,
                f"parcae_migration_pause_seconds_count {of_job} pipeline": 1,
            }
            before = await has(prometheus, **kept)
        await operator.end()
        with scraped(site.start("operator-1")) as prometheus:
            deadline_s = time.monotonic() + 20
            while f"parcae_plan_revision {of_job}" not in (found := await prometheus.ask()):
                assert time.monotonic() < deadline_s, "the job is not told of"
            counters = [k for k in before if "_total " in k or k.endswith("_sum pipeline")]
            assert {k: found.get(k) for k in counters if of_job in k} == {
                k: before[k] for k in counters if of_job in k
            }  # from its first word on
            assert f"parcae_checkpoint_age_seconds {of_job}" not in found
            site.form(5)  # back to a checkpoint
            await until(lambda: site.status.step == 5, "it trains")
            found = await prometheus.ask()
            assert found[f"parcae_steps_committed_total {of_job}"] == 7
            written = Progress(revision=2, step=8, samples=64, checkpoint_unix_s=time.time() - 100)
            site.board.put_progress(written)
            await has(prometheus, **{f"parcae_steps_committed_total {of_job}": 8})
            age_s = (await prometheus.ask())[f"parcae_checkpoint_age_seconds {of_job}"]
            assert 100 <= age_s < 130
            site.form(9)
            kept[f"parcae_steps_committed_total {of_job}"] = 9
            kept[f"parcae_samples_committed_total {of_job}"] = 72
            await has(prometheus, **kept)

    on_site(kube_etcd.endpoint, work)


def test_of_two_operators_one_tells_of_a_job(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        first = site.start("first")
        site.apply()
        await site.train()
        second = site.start("second")
        revision = f"parcae_plan_revision team {site.name}"
        with scraped(first) as one, scraped(second) as other:
            await has(one, **{revision: 1})
            await has(other, parcae_jobs=1)

            def stands_by() -> bool:
                thread = second.jobs._runners[next(iter(second.jobs._runners))]._thread
                return thread is not None and thread.is_anothers

            await until(stands_by, "the second has read the board")
            assert revision not in await other.ask()
            await first.end()
            await has(other, **{revision: 1})

    on_site(kube_etcd.endpoint, work)


def test_what_the_operator_leans_on(mortal_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        with scraped(operator) as prometheus:
            await has(prometheus, parcae_board_up=1, parcae_api_server_up=1)
            site.api.down = ClusterUnavailable("away")
            await has(prometheus, parcae_api_server_up=0)
            site.api.down = None
            await has(prometheus, parcae_api_server_up=1)
            mortal_etcd.kill()
            await has(prometheus, parcae_board_up=0)

    on_site(mortal_etcd.endpoint, work)


def test_nodes_by_where_and_how_they_are(kube_etcd: EtcdServer) -> None:
    zone = {"topology.kubernetes.io/zone": "b"}
    doomed = [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]

    async def work(site: KubeSite) -> None:
        site.api.nodes_by_name = {
            "n1": make_node("n1", labels=zone),
            "n2": make_node("n2", labels=zone, taints=doomed),
            "n3": make_node("n3", ready="False"),
        }
        with scraped(site.start()) as prometheus:
            found = await has(prometheus, **{"parcae_nodes true healthy b": 1})
            assert found["parcae_nodes true leaving b"] == 1
            assert {k: v for k, v in found.items() if k.startswith("parcae_nodes true suspect")}
            notices = {k: v for k, v in found.items() if k.startswith("parcae_notices_total")}
            assert any(k.startswith("parcae_notices_total notice ") for k in notices), notices
            del site.api.nodes_by_name["n2"]

            async def is_gone() -> bool:
                return "parcae_nodes true leaving b" not in await prometheus.ask()

            deadline_s = time.monotonic() + 20
            while not await is_gone():
                assert time.monotonic() < deadline_s, "a node that is gone is still counted"

    on_site(kube_etcd.endpoint, work)
