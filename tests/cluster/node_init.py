"""The first process of a node: gives it mounts of its own, starts its programs, reaps its orphans.

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


def mount_own(folder: Path) -> None:
    """Makes /var/lib, /var/log and /run the node's own, so that all default paths can be kept."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for name, place in {"varlib": "/var/lib", "log": "/var/log"}.items():
        (folder / name).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", folder / name, place], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    # Within the node, mounts of pods' volumes must reach the containers.
    subprocess.run(["mount", "--make-rshared", "/"], check=True)


def start(argv: list[str], name: str, folder: Path) -> None:
    """Starts a program whose log is in the node's folder and whose pid is in /run."""
    with (folder / f"{name}.log").open("ab") as log:
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    Path(f"/run/{name}.pid").write_text(str(program.pid))


def reap_for_ever() -> None:
    """Takes in the exit of every child, adopted ones, too."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


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
    start([containerd, "--config", str(home / "containerd.toml")], "containerd", home)
    while not SOCKET.exists():
        time.sleep(0.02)
    if kubelet:
        start(kubelet, "kubelet", home)
    reap_for_ever()


if __name__ == "__main__":
    main()
