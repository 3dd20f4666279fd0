"""An agent's place on the board: taken, lost, retaken, left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from supervisor_desk import wait_until

from parcae_agent.seat import Seat
from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_api.membership import AgentState, Membership
from parcae_cli.etcd_server import EtcdServer


def make_membership(state: AgentState = AgentState.STARTING) -> Membership:
    return Membership(
        incarnation="a",
        pod="pod",
        node="node",
        node_uid="uid",
        address="127.0.0.1",
        state=state,
        workers=(),
    )


@pytest.fixture
def seat(etcd: EtcdServer, board: JobBoard) -> Iterator[Seat]:
    with EtcdClient([etcd.endpoint], timeout_s=0.5, patience_s=1.0) as client:
        yield Seat(client, JobBoard(client, "test", "job"), 5.0)


def lease_id(client: EtcdClient, board: JobBoard) -> int:
    item = client.get(f"{board.prefix}agents/a")
    assert item is not None
    return item.lease_id


def test_a_membership_lives_by_a_lease(seat: Seat, board: JobBoard, client: EtcdClient) -> None:
    seat.write(make_membership())
    assert lease_id(client, board) != 0
    first = lease_id(client, board)
    seat.write(make_membership(AgentState.STANDBY))
    assert lease_id(client, board) == first
    membership = board.agent("a")
    assert membership is not None
    assert membership.state is AgentState.STANDBY


def test_leaving_takes_effect_at_once(seat: Seat, board: JobBoard) -> None:
    seat.write(make_membership())
    seat.leave()
    assert board.agents() == {}
    seat.write(make_membership())  # a write that came late
    assert board.agents() == {}


def test_a_lost_lease_is_retaken(seat: Seat, board: JobBoard, client: EtcdClient) -> None:
    seat.write(make_membership())
    lease = seat._lease
    assert lease is not None
    assert not seat.is_lost
    lease.revoke()  # as the server does after a long silence
    lease.lost.set()
    assert seat.is_lost
    seat.write(make_membership())
    assert not seat.is_lost
    assert lease_id(client, board) != lease.id


def test_a_lease_that_ended_in_ones_sleep_is_retaken_at_the_first_write(
    seat: Seat, board: JobBoard, client: EtcdClient
) -> None:
    seat.write(make_membership())
    lease = seat._lease
    assert lease is not None
    lease.revoke()
    lease._renewed_monotonic_s -= 3600  # its thread has slept too, and knows nothing
    assert not seat.is_lost
    seat.write(make_membership())
    assert lease_id(client, board) != lease.id


def test_it_tells_since_when_it_is_there(seat: Seat, board: JobBoard) -> None:
    def since_unix_s() -> float:
        found = board.agent("a")
        assert found is not None
        assert found.on_board_since_unix_s is not None
        return found.on_board_since_unix_s

    before_s = time.time()
    seat.write(make_membership())
    first = since_unix_s()
    assert before_s <= first <= time.time()
    seat.write(make_membership(AgentState.STANDBY))
    assert since_unix_s() == first
    lease = seat._lease
    assert lease is not None
    lease.revoke()
    lease.lost.set()
    seat.write(make_membership())
    assert since_unix_s() > first


def test_leaving_a_board_that_is_away_is_no_error(
    own_etcd: EtcdServer, seat: Seat, tmp_path: Path
) -> None:
    seat.write(make_membership())
    own_etcd.kill()
    seat.leave()


def test_the_lease_survives_a_restart_of_etcd(
    own_etcd: EtcdServer, seat: Seat, board: JobBoard, client: EtcdClient
) -> None:
    seat.write(make_membership())
    first = lease_id(client, board)
    own_etcd.kill()
    own_etcd.start()
    wait_until(lambda: "a" in board.agents(), "the board is back")
    seat.write(make_membership(AgentState.STANDBY))
    assert lease_id(client, board) == first
