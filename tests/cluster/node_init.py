"""The first process of a node: its mounts, its programs, its orphans.

It is process 1 of the node's PID namespace: when it is killed, the kernel kills every container,
containerd and the kubelet with it, as when a machine loses power. It imports nothing of ours, so
``python -I`` can run it: ``node_init.py FOLDER HOSTNAME CONTAINERD PATH [KUBELET…]``.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

SOCKET = Path("/run/containerd/containerd.sock")
STOPPING = Path("/run/stopping")
"""While this file is there, programs that ended are not started again."""
RESTART_S = 1.0


def mount_own(folder: Path) -> None:
    """Makes /var/lib, /var/log and /run the node's own, so that all default paths can be kept."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for name, place in {"varlib": "/var/lib", "log": "/var/log"}.items():
        (folder / name).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", folder / name, place], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    # Within the node, mounts of pods' volumes must reach the containers.
    subprocess.run(["mount", "--make-rshared", "/"], check=True)


def start(argv: list[str], name: str, folder: Path) -> int:
    """Starts a program whose log is in the node's folder and whose pid is in /run."""
    with (folder / f"{name}.log").open("ab") as log:
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    Path(f"/run/{name}.pid").write_text(str(program.pid))
    program.returncode = 0  # its end is seen by ``keep_up``, not by Popen
    return program.pid


def keep_up(programs: dict[str, list[str]], pids: dict[int, str], folder: Path) -> None:
    """Starts a program that ended again, as a service manager does, and reaps orphans. For ever."""
    while True:
        try:
            pid, _ = os.wait()
        except ChildProcessError:
            time.sleep(RESTART_S)
            continue
        name = pids.pop(pid, None)
        if name is not None and not STOPPING.exists():
            time.sleep(RESTART_S)
            pids[start(programs[name], name, folder)] = name


def main() -> None:
    folder, hostname, containerd, path, *kubelet = sys.argv[1:]
    home = Path(folder)
    mount_own(home)
    socket.sethostname(hostname)
    (home / "tmp").mkdir(exist_ok=True)
    os.environ.update(HOME="/root", TMPDIR=str(home / "tmp"), PATH=path)
    settings = home / "pods.conflist"
    if settings.exists():
        Path("/run/cni").mkdir()
        Path("/run/cni/10-pods.conflist").write_text(settings.read_text())
    programs = {"containerd": [containerd, "--config", str(home / "containerd.toml")]}
    pids = {start(programs["containerd"], "containerd", home): "containerd"}
    while not SOCKET.exists():
        time.sleep(0.02)
    if kubelet:
        programs["kubelet"] = kubelet
        pids[start(kubelet, "kubelet", home)] = "kubelet"
    keep_up(programs, pids, home)


if __name__ == "__main__":
    main()
