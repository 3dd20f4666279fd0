"""One NetworkPolicy for each job: made before its pods, gone where none is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kube_fakes import until
from kube_objects import make_job
from kube_site import KubeSite, on_site

from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.errors import Forbidden
from parcae_operator.kube.labels import JOB_UID
from parcae_operator.kube.network_policy import NetworkRules, network_policy, policy_name

DNS = {"ports": [{"port": 53, "protocol": "UDP"}]}
PROMETHEUS = {"ports": [{"port": 8082, "protocol": "TCP"}]}
RULES = NetworkRules(ingress=(PROMETHEUS,), egress=(DNS,))


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("etcd")
    with EtcdServer(folder / "data", folder / "etcd.log", unsafe_no_fsync=True) as server:
        yield server.endpoint


def test_only_the_own_job_and_what_the_rules_allow() -> None:
    policy = network_policy(make_job(), RULES)
    spec, own = policy["spec"], {"podSelector": {"matchLabels": {JOB_UID: "uid-of-gpt"}}}
    assert spec["podSelector"] == own["podSelector"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": [own]}, PROMETHEUS]
    assert spec["egress"] == [{"to": [own]}, DNS]


def test_it_goes_with_its_job_and_is_not_another_ones() -> None:
    job = make_job()
    metadata = network_policy(job, RULES)["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == job.metadata.uid
    later = job.model_copy(
        update={"metadata": job.metadata.model_copy(update={"uid": "another-uid"})}
    )
    assert policy_name(later) != policy_name(job) == metadata["name"]


@pytest.mark.processes
def test_it_is_there_before_the_first_pod(etcd: str) -> None:
    async def work(site: KubeSite) -> None:
        site.network_policy = RULES
        site.start()
        site.apply()
        await site.train()
        [policy] = site.api.policies_by_name.values()
        assert policy["spec"]["egress"][1:] == [DNS]
        assert site.api.calls.index("put_network_policy") < site.api.calls.index("create_pod")
        labels = policy["spec"]["podSelector"]["matchLabels"]
        for pod in site.api.pods_by_name.values():
            assert labels.items() <= pod["metadata"]["labels"].items()

    on_site(etcd, work)


@pytest.mark.processes
def test_agents_do_not_start_without_it(etcd: str) -> None:
    async def work(site: KubeSite) -> None:
        site.network_policy = RULES
        site.api.faults["put_network_policy"].append(Forbidden("networkpolicies: 403 no rule"))
        site.start()
        site.apply()
        await until(lambda: "no rule" in str(site.status.conditions), "people are told")
        assert site.pods == []
        await site.train()  # it was tried again

    on_site(etcd, work)


@pytest.mark.processes
def test_one_that_is_no_longer_wanted_is_removed(etcd: str) -> None:
    async def work(site: KubeSite) -> None:
        site.network_policy = RULES
        before = site.start()
        site.apply()
        await site.train()
        await before.end()
        site.network_policy = None
        site.start()
        await until(lambda: not site.api.policies_by_name, "it is removed")

    on_site(etcd, work)


@pytest.mark.processes
def test_an_account_that_never_could_make_one_trains(etcd: str) -> None:
    async def work(site: KubeSite) -> None:
        site.api.faults["delete_network_policy"].append(Forbidden("no rule"))
        site.start()
        site.apply()
        await site.train()
        assert site.reason() == ""

    on_site(etcd, work)
