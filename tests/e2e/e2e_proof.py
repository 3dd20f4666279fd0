"""The proof: the ledger is sound, losses and final state are an undisturbed run's, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from e2e_site import HERE, ROOT, STEPS, Site

from parcae_agent.ledger import read_ledger


@dataclass(frozen=True)
class Proof:
    """What was found."""

    steps: int
    lost: int
    repeated: int
    differing: int


def prove(site: Site) -> Proof:
    """Compare the run's records with an undisturbed run of the same job."""
    ledger = read_ledger(site.stage / "ledger")
    assert not ledger.problems, ledger.problems[:5]
    assert [line.step for line in ledger.steps] == list(range(STEPS))
    losses = [line.loss for line in ledger.steps]
    program = subprocess.run(
        [sys.executable, str(HERE / "e2e_undisturbed.py"), str(site.stage / "checkpoints")],
        input=json.dumps(site.manifest()["spec"]["entrypoint"]["args"]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}:{ROOT / 'examples' / 'gpt'}"},
    )
    answer = json.loads(program.stdout)
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
