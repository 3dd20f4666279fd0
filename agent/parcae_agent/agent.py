"""Running an agent: start the worker, connect to the board, supervise until the end."""

from __future__ import annotations

from collections.abc import Callable

from parcae_agent.launch import WorkerProcess
from parcae_agent.settings import AgentConfig, ExitCode, WorkerConfig
from parcae_agent.supervisor import Supervisor, new_incarnation, worker_id
from parcae_api.etcd import EtcdClient


def run_agent(
    config: AgentConfig, start_worker: Callable[[WorkerConfig], WorkerProcess]
) -> ExitCode:
    """Run one agent in this process.

    The worker is started first: forking is only safe while this process has no other thread,
    and the client of the board has several.
    """
    incarnation = new_incarnation(config.pod)
    settings = WorkerConfig(
        worker=worker_id(incarnation),
        spec=config.spec,
        address=config.address,
        search_path=config.search_path,
        ledger=config.ledger,
        checkpoints=config.checkpoints,
        device=config.device,
        probe=config.probe,
    )
    worker = start_worker(settings)
    try:
        with EtcdClient(config.endpoints) as client:
            supervisor = Supervisor(config, incarnation, worker, client, settings.error_file)
            return supervisor.run()
    finally:
        worker.kill()
