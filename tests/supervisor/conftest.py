"""A real etcd, supervisors with scripted workers, and whole agent programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from supervisor_desk import Desk, MakeDesk
from supervisor_program import AgentProgram, MakeProgram

from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import EtcdServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "etcd" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    folder = tmp_path_factory.mktemp("supervisor")
    with EtcdServer(folder / "etcd", folder / "etcd.log", unsafe_no_fsync=True) as server:
        yield server


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """One that a test may kill. Ask for it before ``desk`` or ``program``."""
    with EtcdServer(tmp_path / "etcd", tmp_path / "etcd.log", unsafe_no_fsync=True) as server:
        yield server


@pytest.fixture
def etcd(request: pytest.FixtureRequest) -> EtcdServer:
    """The test's own server, if it asks for one; else the shared one, emptied."""
    if "own_etcd" in request.fixturenames:
        server: EtcdServer = request.getfixturevalue("own_etcd")
        return server
    server = request.getfixturevalue("shared_etcd")
    with EtcdClient([server.endpoint]) as client:
        client.delete_prefix("/")
    return server


@pytest.fixture
def client(etcd: EtcdServer) -> Iterator[EtcdClient]:
    with EtcdClient([etcd.endpoint], timeout_s=1.0, patience_s=15.0) as client:
        yield client


@pytest.fixture
def board(client: EtcdClient) -> JobBoard:
    return JobBoard(client, "test", "job")


@pytest.fixture
def make_desk(etcd: EtcdServer, board: JobBoard, tmp_path: Path) -> Iterator[MakeDesk]:
    """Supervisors with a scripted worker; options as for ``AgentConfig``."""
    desks: list[Desk] = []

    def make(**options: object) -> Desk:
        desks.append(Desk(etcd.endpoint, board, tmp_path, **options))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


@pytest.fixture
def make_program(etcd: EtcdServer, board: JobBoard, tmp_path: Path) -> Iterator[MakeProgram]:
    """``python -m parcae_agent``; options as for ``AgentConfig``."""
    programs: list[AgentProgram] = []

    def make(**options: object) -> AgentProgram:
        programs.append(AgentProgram(etcd.endpoint, board, tmp_path, **options))
        return programs[-1]

    yield make
    for program in programs:
        program.close()
