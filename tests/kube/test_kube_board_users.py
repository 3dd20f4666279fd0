"""One user of the board for each job: made before its pods, limited to it, gone with it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_fakes import until
from kube_objects import make_job
from kube_site import KubeSite, on_site

from parcae_api.board_access import BoardAccess, read_access
from parcae_api.errors import BoardRefused, InputError
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Login, Tls
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.kube.board_users import BoardUsers, secret_name
from parcae_operator.kube.errors import ClusterUnavailable

pytestmark = pytest.mark.processes

ROOT = Login("root", "secret of root")
ACCESS = BoardAccess(login=ROOT)


@pytest.fixture
def asking_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """It hashes passwords cheaply; nobody is asked yet."""
    with EtcdServer(
        tmp_path / "etcd",
        tmp_path / "etcd.log",
        unsafe_no_fsync=True,
        arguments=["--bcrypt-cost=4"],
    ) as server:
        yield server


def written(secret: dict[str, dict[str, str]], folder: Path) -> BoardAccess:
    """As a pod that mounts it reads it."""
    folder.mkdir(exist_ok=True)
    for name, text in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    return read_access(folder)


def test_pods_get_a_login_for_their_own_board(asking_etcd: EtcdServer, tmp_path: Path) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        [secret] = site.api.secrets_by_name.values()
        assert secret["metadata"]["ownerReferences"][0]["uid"] == f"uid-of-{site.name}"
        for pod in site.api.pods_by_name.values():
            volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
            name = secret["metadata"]["name"]
            assert volumes["parcae-board"]["secret"] == {"secretName": name}
            [container] = pod["spec"]["containers"]
            [config] = [e["value"] for e in container["env"] if e["name"] == "PARCAE_AGENT"]
            mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
            assert json.loads(config)["access"] == mounts["parcae-board"]
            assert ROOT.password not in json.dumps(pod)
        login = written(secret, tmp_path / "pod").login
        assert login is not None
        assert login.password not in json.dumps(site.api.jobs_by_name)
        assert login.password not in json.dumps(site.api.pods_by_name)
        with EtcdClient([asking_etcd.endpoint], login=login) as client:
            assert await asyncio.to_thread(client.list, site.board.prefix)
            with pytest.raises(BoardRefused, match="permission denied"):
                await asyncio.to_thread(client.list, "/parcae/")

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_the_user_goes_with_its_job(asking_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        assert len(site.client.users.names()) == 2
        site.delete()
        await until(lambda: site.client.users.names() == ("root",), "its user is dismissed")

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_users_of_jobs_that_went_while_nobody_looked_are_dismissed(
    asking_etcd: EtcdServer,
) -> None:
    async def work(site: KubeSite) -> None:
        first = site.start()
        site.apply()
        await site.train()
        await first.end()
        site.delete()
        site.start("operator-1")
        await until(lambda: site.client.users.names() == ("root",), "its user is dismissed")

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_another_operator_gives_the_same_login(asking_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        first = site.start()
        site.apply()
        await site.train()
        before = dict(site.api.secrets_by_name)
        await first.end()
        made = site.api.count("put_secret")
        site.start("operator-1")
        await until(lambda: site.api.count("put_secret") > made, "it takes the job over")
        assert site.api.secrets_by_name == before

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_no_pod_is_asked_for_before_its_secret_is_there(asking_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.api.faults["put_secret"].append(ClusterUnavailable("503"))
        site.start()
        site.apply()
        await until(lambda: len(site.pods) == 2, "pods are asked for")
        assert site.api.count("put_secret") == 2
        assert site.api.calls.index("create_pod") > site.api.calls.index("put_secret") + 1

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_a_board_that_lost_its_data_is_protected_anew(asking_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()

        def start_over() -> None:  # what is left of a board whose volume went
            client = site.client
            for name in client.users.names():
                if name != "root":
                    client.users.dismiss(name)
            from parcae_api import etcd_auth_calls

            client._session.call(etcd_auth_calls.disable(), 5.0)

        await asyncio.to_thread(start_over)
        await until(
            lambda: site.client.users.are_asked(ROOT) and len(site.client.users.names()) == 2,
            "everybody is asked again, and the job is known",
        )

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_a_board_that_starts_after_its_operator_is_protected_as_soon_as_it_answers(
    asking_etcd: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(site: KubeSite) -> None:
        site.resync_seconds = 600.0
        asking_etcd.kill()
        site.start()
        await until(lambda: "not protected yet" in caplog.text, "the board is missed")
        asking_etcd.start()
        await until(lambda: site.client.users.are_asked(ROOT), "everybody is asked")

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_jobs_at_work_are_known_before_a_new_operator_protects_their_board(
    asking_etcd: EtcdServer,
) -> None:
    async def work(site: KubeSite) -> None:
        site.apply()  # it was at work when operator and board were lost
        site.start()
        asked = site.client.users
        await until(lambda: asked.are_asked(ROOT), "everybody is asked")
        assert len(asked.names()) == 2

    on_site(asking_etcd.endpoint, work, access=ACCESS)


def test_the_authoritys_certificate_comes_along(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_text("a certificate")
    job = make_job()
    with EtcdClient(["127.0.0.1:1"]) as client:  # it is never asked
        secret = BoardUsers(client, BoardAccess(tls=Tls(ca=ca))).admit(job)
    assert secret["metadata"]["name"] == secret_name(job)
    assert set(secret["data"]) == {"ca.crt"}
    access = written(secret, tmp_path / "pod")
    assert access.login is None
    assert access.tls is not None
    assert access.tls.ca is not None
    assert access.tls.ca.read_text() == "a certificate"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"user": "root"}, "password is missing or empty"),
        ({"password": "x"}, "user is missing or empty"),
        ({"user": "root", "password": " \n"}, "password is missing or empty"),
        ({"user": b"\xff", "password": b"x"}, "user cannot be read"),
    ],
)
def test_half_a_login_is_refused(
    files: dict[str, str | bytes], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        read_access(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*nowhere; mount the Secret there"):
        read_access(tmp_path / "nowhere")
    assert read_access(None) == BoardAccess()
    assert read_access(tmp_path) == BoardAccess()
