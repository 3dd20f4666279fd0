"""The proof: the ledger is sound, losses and final state are an undisturbed run's, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_site import HERE, ROOT, STEPS, Site

from parcae_agent.ledger import read_ledger

_LEAST_PRIORITY = 19


@dataclass(frozen=True)
class Proof:
    """What was found."""

    steps: int
    lost: int
    repeated: int
    differing: int


class Undisturbed:
    """The same training once more, with what the scenario leaves of the machine meanwhile."""

    def __init__(self, args: dict[str, Any]) -> None:
        """``args`` are the user's code's."""
        self._program = subprocess.Popen(
            [sys.executable, str(HERE / "e2e_undisturbed.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}:{ROOT / 'examples' / 'gpt'}"},
        )
        os.setpriority(os.PRIO_PROCESS, self._program.pid, _LEAST_PRIORITY)
        self._say(args)

    def compare(self, checkpoints: Path) -> dict[str, Any]:
        """Its losses, and how many layers of the final checkpoint are not as its own."""
        os.setpriority(os.PRIO_PROCESS, self._program.pid, 0)
        said, _ = self._program.communicate(json.dumps(str(checkpoints)) + "\n")
        assert self._program.returncode == 0
        found: dict[str, Any] = json.loads(said)
        return found

    def stop(self) -> None:
        """Whatever it does."""
        self._program.kill()
        self._program.communicate()

    def _say(self, what: object) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()


def prove(site: Site, undisturbed: Undisturbed) -> Proof:
    """Compare the run's records with an undisturbed run of the same job."""
    ledger = read_ledger(site.stage / "ledger")
    assert not ledger.problems, ledger.problems[:5]
    assert [line.step for line in ledger.steps] == list(range(STEPS))
    losses = [line.loss for line in ledger.steps]
    answer = undisturbed.compare(site.stage / "checkpoints")
    wrong = [
        step
        for step, (ours, true) in enumerate(zip(losses, answer["losses"], strict=True))
        if ours is not None and ours != true
    ]
    return Proof(
        steps=len(losses),
        lost=ledger.samples_lost,
        repeated=ledger.samples_repeated,
        differing=len(wrong) + answer["layers_differing"],
    )
