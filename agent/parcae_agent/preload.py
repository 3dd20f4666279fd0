"""Imports everything a worker needs: a fork server loads this once, forks then cost nothing.

It starts no thread and touches no device, so that forking stays safe.
"""

from torch.distributed.pipelining import schedules  # noqa: F401

import parcae_agent.entry  # noqa: F401
