"""The board's password is in no line of a log, whatever is logged of what holds it."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from parcae_agent.settings import AgentConfig, WorkerConfig
from parcae_api.board_access import read_access
from parcae_api.errors import BoardError
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Login
from parcae_api.job import Entrypoint, Instances, JobSpec
from parcae_api.log_lines import LogFormat, formatter_of
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.board_users import BoardUsers
from parcae_operator.kube.settings import OperatorSettings

PASSWORD = "correct-horse-battery"
SPEC = JobSpec(instances=Instances(max=2), entrypoint=Entrypoint(function="m:f"))


@pytest.fixture
def access(tmp_path: Path) -> Path:
    (tmp_path / "user").write_text("job/team/gpt/uid")
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "ca.crt").write_text("certificate")
    return tmp_path


def settings_of(folder: Path) -> list[object]:
    """All that programs hold of the board's access."""
    agent = AgentConfig(
        endpoints=("etcd:2379",),
        access=folder,
        namespace="team",
        job="gpt",
        spec=SPEC,
        pod="p",
        node="n",
        node_uid="u",
        address="10.0.0.1",
        ledger=Path("/ledger"),
    )
    worker = WorkerConfig(
        worker="p/0",
        spec=SPEC,
        address="10.0.0.1",
        search_path=None,
        ledger=Path("/ledger"),
        checkpoints=None,
    )
    operator = OperatorSettings(board="etcd:2379", board_access=folder)
    found = read_access(folder)
    return [agent, worker, operator, found, found.login, found.tls]


def test_settings_do_not_show_it(access: Path) -> None:
    for each in settings_of(access):
        assert PASSWORD not in repr(each)
        assert PASSWORD not in str(each)


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_neither_does_a_line_that_has_them(access: Path, log_format: LogFormat) -> None:
    held = settings_of(access)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter_of(log_format))
    log = logging.Logger("parcae_agent.test")
    log.addHandler(handler)
    log.info("%s %r", held, held, extra={"settings": held, "login": held[4]})
    try:
        raise RuntimeError(held[4])
    except RuntimeError:
        log.exception("failed")
    assert "job/team/gpt/uid" in written.getvalue()  # it was shown, but not all of it
    assert PASSWORD not in written.getvalue()


def test_what_it_travels_as_holds_the_folder_only(access: Path) -> None:
    agent = settings_of(access)[0]
    assert isinstance(agent, AgentConfig)
    assert json.loads(agent.to_json())["access"] == str(access)
    assert PASSWORD not in agent.to_json().decode()


@pytest.mark.processes
def test_a_board_that_refuses_it_says_no_more_than_that(
    access: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    folder = tmp_path_factory.mktemp("etcd")
    root = Login("root", "root-" + PASSWORD)
    with EtcdServer(
        folder / "etcd", folder / "log", unsafe_no_fsync=True, arguments=["--bcrypt-cost=4"]
    ) as server:
        with EtcdClient([server.endpoint], login=root) as client:
            client.users.protect(root)
        login = read_access(access).login
        stranger = EtcdClient([server.endpoint], login=login)
        with stranger, pytest.raises(BoardError) as caught:
            stranger.get("/parcae/team/gpt/plan")
        server.kill()
    assert PASSWORD not in repr(caught.value)
    assert PASSWORD not in caplog.text


def test_users_of_jobs_are_made_without_a_word_of_it(access: Path) -> None:
    users = BoardUsers(None, read_access(access))  # type: ignore[arg-type]
    assert PASSWORD not in repr(users)
