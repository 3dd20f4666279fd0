"""Says loudly what the suite leaves out on this machine. Run by ``make test`` before pytest."""

import importlib.util
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cluster import needs


def _can_unshare() -> bool:
    try:
        command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main() -> None:
    missing = []
    if importlib.util.find_spec("torch") is not None:
        import torch

        if not torch.cuda.is_available():
            missing.append("gpu: no CUDA device; NCCL paths are not tested here")
    if sys.platform != "linux":
        missing.append("processes: needs Linux (/proc, parent-death signals)")
    if not _can_unshare():
        missing.append("notices: no right to make PID namespaces; SIGTERM as a first process")
    missing += [f"cluster: {sentence}" for sentence in needs.missing()]
    missing += [f"monitoring: {sentence}" for sentence in needs.missing_for_packages()]
    for line in missing:
        print(f"LEFT OUT  {line}")


if __name__ == "__main__":
    main()
