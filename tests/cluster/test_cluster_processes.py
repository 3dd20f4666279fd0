"""Processes that are found again by a file, waits, and folders that are made once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import ClusterError, Process, WaitedInVain, until
from tests.cluster.places import once
from tests.cluster.processes import BOOT_ID


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    one = Process(tmp_path / "sleeper.pid", tmp_path / "sleeper.log")
    yield one
    one.kill()


def test_a_process_is_found_again_by_its_file(process: Process) -> None:
    pid = process.start(["sleep", "100"])
    again = Process(process.file, process.log)
    assert again.pid == pid
    again.kill()
    assert process.pid is None


def test_a_process_outlives_who_started_it(process: Process) -> None:
    code = (
        "from pathlib import Path; from tests.cluster import Process; import sys;"
        "Process(Path(sys.argv[1]), Path(sys.argv[2])).start(['sleep', '100'])"
    )
    argv = [sys.executable, "-c", code, str(process.file), str(process.log)]
    subprocess.run(argv, check=True, cwd=Path(__file__).parents[2])
    assert process.alive()


def test_a_reused_pid_is_not_taken_for_the_process(process: Process) -> None:
    process.start(["sleep", "100"])
    other = Process(process.file.with_name("old.pid"), process.log)
    boot, stat = process.file.read_text().split("\n", 1)
    fields = stat.split(" ")
    fields[21] = str(int(fields[21]) - 1)
    other.file.write_text(f"{boot}\n{' '.join(fields)}")
    assert other.pid is None
    other.kill()
    assert process.alive()


def test_a_pid_of_an_earlier_boot_is_not_taken_for_the_process(process: Process) -> None:
    process.start(["sleep", "100"])
    earlier = process.file.with_name("earlier.pid")
    text = process.file.read_text().replace(BOOT_ID.read_text().strip(), "0000")
    earlier.write_text(text)
    assert Process(earlier, process.log).pid is None


def test_no_second_start(process: Process) -> None:
    process.start(["sleep", "100"])
    with pytest.raises(ClusterError, match="runs already"):
        process.start(["sleep", "100"])


def test_who_ignores_sigterm_is_killed(process: Process) -> None:
    process.start([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN);"
                   "print('deaf', flush=True); time.sleep(100)"])  # fmt: skip
    until("it to be deaf", lambda: "deaf" in process.log.read_text(), bound_s=10)
    process.stop(grace_s=0.1)
    assert not process.alive()


def test_a_process_lives_as_long_as_any_of_its_threads(process: Process) -> None:
    """It holds its ports until then; what is started in its place would find them taken."""
    lines = (
        "import ctypes, threading, time",
        "threading.Thread(target=time.sleep, args=(600,)).start()",
        "ctypes.CDLL(None).pthread_exit(None)",
    )
    pid = process.start([sys.executable, "-c", "; ".join(lines)])
    until("its first thread is dead", lambda: state_of(pid) == "Z", bound_s=20)
    assert process.alive()
    process.kill()
    assert not process.alive()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_wait_in_vain_says_for_what_and_shows_the_log(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("first\nno space left\n")
    with pytest.raises(WaitedInVain, match=r"the moon: not within 0.1 s \(last: 0\)") as caught:
        until("the moon", lambda: 0, bound_s=0.1, log=log)
    assert "no space left" in str(caught.value)


def test_errors_mean_not_yet() -> None:
    answers = iter([ConnectionRefusedError("down"), 0, "up"])

    def probe() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert until("a server", probe, bound_s=5) == "up"


def test_a_wait_ends_with_the_process_it_waits_for(process: Process) -> None:
    process.start(["sh", "-c", "echo out of luck"])
    with pytest.raises(WaitedInVain, match="its process is dead") as caught:
        until("a port", lambda: False, bound_s=60, log=process.log, alive=process.alive)
    assert "out of luck" in str(caught.value)


def test_a_folder_is_made_once_by_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARCAE_CLUSTER_CACHE", str(tmp_path))
    made = []

    def make(target: Path) -> None:
        made.append(target)
        (target / "thing").touch()

    threads = [threading.Thread(target=once, args=(tmp_path / "a", make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert (tmp_path / "a" / "thing").exists()


def test_what_a_killed_build_left_is_not_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARCAE_CLUSTER_CACHE", str(tmp_path))

    def fail(target: Path) -> None:
        (target / "half").touch()
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        once(tmp_path / "a", fail)
    assert not (tmp_path / "a").exists()
    once(tmp_path / "a", lambda target: None)
    assert not (tmp_path / "a" / "half").exists()
