"""Running an agent: start the worker, connect to the board, supervise until the end."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable

from parcae_agent.launch import WorkerProcess
from parcae_agent.metrics.page import Page, new_page
from parcae_agent.metrics.telling import Telling
from parcae_agent.notices.listener import SpotListener
from parcae_agent.notices.settings import Listen, NoticeSettings
from parcae_agent.pid_one import release_sigterm
from parcae_agent.settings import AgentConfig, ExitCode, WorkerConfig
from parcae_agent.supervisor import News, Supervisor, Terminate, new_incarnation, worker_id
from parcae_api.board_access import read_access
from parcae_api.etcd import EtcdClient
from parcae_api.log_context import always


def run_agent(
    config: AgentConfig,
    start_worker: Callable[[WorkerConfig], WorkerProcess],
    notices: NoticeSettings | None = None,
) -> ExitCode:
    """Run one agent in this process.

    The worker is started first: forking is only safe while this process has no other thread,
    and the client of the board has several. Without ``notices`` no cloud is asked.

    Raises:
        InputError: what the board asks for is not where it should be.
    """
    notices = notices or NoticeSettings(listen=Listen.OFF)
    if notices.grace_s is not None:
        config = config.model_copy(update={"grace_seconds": notices.grace_s})
    # First of all: a notice may come at any moment, and unheard it would end this process.
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: news.put(Terminate()))
    release_sigterm()
    incarnation = new_incarnation(config.pod)
    fields = {"namespace": config.namespace, "job": config.job, "pod": config.pod}
    always(**fields, worker=worker_id(incarnation))
    descriptor = new_page()
    settings = WorkerConfig(
        worker=worker_id(incarnation),
        spec=config.spec,
        address=config.address,
        search_path=config.search_path,
        ledger=config.ledger,
        checkpoints=config.checkpoints,
        device=config.device,
        page=descriptor,
        log_fields=fields,
        probe=config.probe,
    )
    worker = start_worker(settings)
    page = Page(descriptor)
    os.close(descriptor)
    listener = SpotListener(notices, news.put)
    try:
        listener.start()
        access = read_access(config.access)
        with EtcdClient(config.endpoints, tls=access.tls, login=access.login) as client:
            supervisor = Supervisor(config, incarnation, worker, client, settings.error_file, news)
            telling = Telling(page, supervisor.facts, config.metrics_port, config.metrics_host)
            try:
                return supervisor.run()
            finally:
                telling.close()
    finally:
        listener.close()
        worker.kill()
