"""Train undisturbed, then compare with a final checkpoint. Speaks a line of JSON at a time.

Reads the arguments of the user's code, and when it has trained, the folder of checkpoints; a reader
that goes away ends it. A process of its own: its user code must not sleep or crash, and torch stays
out of the tests'.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from parcae_agent.checkpoint import layer_file
from parcae_agent.reference import Reference
from parcae_agent.training import load_training
from parcae_api.job import Entrypoint


def main() -> None:
    torch.set_num_threads(1)
    args = json.loads(sys.stdin.readline())
    training = load_training(Entrypoint(function="e2e_train:train", args=args))
    reference = Reference.start(training, seed=1)
    losses = list(reference.losses(training.steps))
    folder = Path(json.loads(sys.stdin.readline()))
    differing = sum(
        not torch.equal(
            load_file(layer_file(folder, training.steps, layer.index))["state"], layer.flat
        )
        for layer in reference.layers
    )
    json.dump({"losses": losses, "layers_differing": differing}, sys.stdout)


if __name__ == "__main__":
    main()
