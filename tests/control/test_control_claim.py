"""Which of several operators drives a job, on a real board."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from control_site import Site, wait_until

from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_api.leader import Leader
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.claim import Claim
from parcae_operator.loop import JobLoop
from parcae_optimizer.reactive import ReactivePlanner

pytestmark = pytest.mark.processes


class Operator:
    """A claim with a client of its own."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.client = EtcdClient([endpoint], timeout_s=0.5, patience_s=1.0)
        self.claim = Claim(self.client, name)

    def tries(self, site: Site) -> bool:
        """Look at the board as its loop would, and ask."""
        board = JobBoard(self.client, "test", site.board.prefix.split("/")[3])
        return self.claim.holds(board, site.board.leader())

    def dies(self) -> None:
        """Without a word; its lease is renewed no more."""
        self.client.close()


@pytest.fixture
def two(shared_etcd: EtcdServer) -> Iterator[tuple[Operator, Operator]]:
    operators = Operator(shared_etcd.endpoint, "one"), Operator(shared_etcd.endpoint, "two")
    yield operators
    for operator in operators:
        operator.client.close()


def test_the_first_that_asks_gets_it_and_keeps_it(
    site: Site, two: tuple[Operator, Operator]
) -> None:
    first, second = two
    assert first.tries(site)
    assert not second.tries(site)
    assert first.tries(site)
    leader = site.board.leader()
    assert leader is not None
    assert leader.identity.startswith("one-")


def test_of_many_that_ask_at_once_one_gets_it(site: Site, shared_etcd: EtcdServer) -> None:
    operators = [Operator(shared_etcd.endpoint, f"op{i}") for i in range(6)]
    start, won = threading.Barrier(6), list[Operator]()

    def race(operator: Operator) -> None:
        board = JobBoard(operator.client, "test", site.board.prefix.split("/")[3])
        start.wait()
        if operator.claim.holds(board, None):
            won.append(operator)

    threads = [threading.Thread(target=race, args=(operator,)) for operator in operators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    for operator in operators:
        operator.client.close()


def test_one_claim_serves_all_jobs(shared_etcd: EtcdServer, two: tuple[Operator, Operator]) -> None:
    first, second = two
    with Site(shared_etcd.endpoint) as one, Site(shared_etcd.endpoint) as other:
        assert first.tries(one)
        assert second.tries(other)
        assert not first.tries(other)
        assert first.tries(one)


def test_an_operator_that_ends_in_peace_passes_it_on_at_once(
    site: Site, two: tuple[Operator, Operator]
) -> None:
    first, second = two
    assert first.tries(site)
    first.claim.give_up()
    assert site.board.leader() is None
    assert second.tries(site)
    assert not first.tries(site)


def test_an_operator_that_dies_passes_it_on_with_its_lease(
    site: Site, two: tuple[Operator, Operator]
) -> None:
    first, second = two
    assert first.tries(site)
    first.dies()
    wait_until(lambda: second.tries(site), "the claim passes on")


def test_giving_up_twice_or_without_a_claim_does_no_harm(two: tuple[Operator, Operator]) -> None:
    first, _ = two
    first.claim.give_up()
    first.claim.give_up()
    assert not first.claim.board_is_away


def test_a_restarted_operator_is_another(site: Site, shared_etcd: EtcdServer) -> None:
    before = Operator(shared_etcd.endpoint, "pod")
    assert before.tries(site)
    after = Operator(shared_etcd.endpoint, "pod")
    assert not after.tries(site)  # until the lease of the one before is over
    before.claim.give_up()
    assert after.tries(site)
    for operator in (before, after):
        operator.client.close()


def test_a_lease_that_the_board_has_lost_is_replaced(
    site: Site, two: tuple[Operator, Operator]
) -> None:
    first, _ = two
    assert first.tries(site)
    lease = first.claim._lease
    assert lease is not None
    lease._session.call(_revoke(lease.id), 5.0)
    wait_until(lease.lost.is_set, "its loss is noticed")
    wait_until(lambda: lease.remaining_s < 0, "it would be over")
    assert not first.claim.board_is_away  # it has just said so
    assert first.tries(site)
    assert first.claim._lease is not lease


def _revoke(lease_id: int):  # type: ignore[no-untyped-def]
    from parcae_api import etcd_calls

    return etcd_calls.revoke(lease_id)


def test_while_the_board_is_away_nobody_drives(own_etcd: EtcdServer) -> None:
    # Another may have got it meanwhile: this one must not go on asking for pods.
    operator = Operator(own_etcd.endpoint, "one")
    with Site(own_etcd.endpoint) as site:
        assert operator.tries(site)
        leader = site.board.leader()
        own_etcd.kill()
        wait_until(lambda: operator.claim.board_is_away, "the lease runs out")
        assert not operator.claim.holds(site.board, leader)
        other = JobBoard(operator.client, "test", "other")
        assert not operator.claim.holds(other, None)
        own_etcd.start()
        wait_until(lambda: not operator.claim.board_is_away, "it is renewed")
        assert operator.tries(site)
    operator.client.close()


def test_only_the_loop_that_holds_the_claim_acts(
    site: Site, two: tuple[Operator, Operator]
) -> None:
    first, second = two
    site.board.lead(Leader(identity="somebody", since_unix_s=1.0), site._client.lease(60))
    turns: list[bool] = []

    def loop_of(operator: Operator) -> JobLoop:
        name = site.board.prefix.split("/")[3]
        loop = JobLoop(
            site.job,
            JobBoard(operator.client, "test", name),
            site.cluster,
            ReactivePlanner(),
            report=site.events.append,
            claim=operator.claim,
            on_turn=lambda: turns.append(True),
        )
        return loop

    loops = [loop_of(first), loop_of(second)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(turns) > 4, "both have looked")
    assert [loop.leads for loop in loops] == [False, False]
    assert site.cluster.asked_for == 0
    assert not loops[0].status.conditions
    site._client.delete(site.board.prefix + "leader")
    wait_until(lambda: site.cluster.asked_for == 4, "one of them drives")
    assert sorted(loop.leads for loop in loops) == [False, True]
    driving = loops[0] if loops[0].leads else loops[1]
    resting = loops[1] if driving is loops[0] else loops[0]
    driving.stop()
    (first if driving is loops[0] else second).claim.give_up()
    wait_until(lambda: resting.leads, "the other takes over")
    assert site.cluster.asked_for == 4  # it adopts what is there
    resting.stop()
    for thread in threads:
        thread.join()
