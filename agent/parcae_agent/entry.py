"""The worker process from its first line to its exit code."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time

import torch
from torch.distributed.elastic.multiprocessing.errors import record

from parcae_agent.link import Link, UserFailed
from parcae_agent.settings import ExitCode, WorkerConfig
from parcae_agent.training import load_training
from parcae_agent.user_code import UserCodeFailed, user_code
from parcae_agent.worker import Worker
from parcae_api.errors import InputError, TrainingFailed
from parcae_api.events import Failed
from parcae_api.log_context import always
from parcae_api.log_lines import log_format_of, log_ours_to_stderr


def run_worker(config: WorkerConfig, end: socket.socket) -> int:
    """Run a worker until it is told to quit, and return its exit code."""
    # The supervisor speaks for the pod: it turns these signals into a notice.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    always(**config.log_fields, worker=config.worker)
    _configure_torch(config)
    # Where torch's `record` writes what ends this process against our will.
    os.environ["TORCHELASTIC_ERROR_FILE"] = str(config.error_file)
    code = _serve(config, Link(end))
    return ExitCode.DONE if code is None else code


@record
def _serve(config: WorkerConfig, link: Link) -> int:
    """Run; what is neither the user's fault nor a lost peer's goes into the error file."""
    worker: Worker | None = None
    try:
        with user_code("the module of the entrypoint"):
            training = load_training(config.spec.entrypoint, search_path=config.search_path)
        worker = Worker(config, link, training)
        worker.run()
    except (InputError, TrainingFailed) as error:
        if worker is not None:
            worker.stop_listening()
        details = error.details if isinstance(error, UserCodeFailed) else ""
        link.send(
            UserFailed(
                failure=Failed(
                    at_unix_s=time.time(),
                    worker=config.worker,
                    step=worker.step if worker else None,
                    message=str(error),
                    traceback=details,
                )
            )
        )
        return ExitCode.USER_CODE
    finally:
        if worker is not None:
            worker.close()
    link.close()
    return 0


def _configure_torch(config: WorkerConfig) -> None:
    """Pin what decides the bits: threads; and keep gloo on the right interface."""
    torch.set_num_threads(config.spec.threads_per_worker)
    if config.device.startswith("cuda"):
        torch.cuda.set_device(config.device)
    if config.address.startswith("127."):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    # A broken epoch is ours to handle: NCCL must not end the process.
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"
    logging.getLogger("torch.distributed").setLevel(logging.ERROR)


def main() -> None:
    """``python -m parcae_agent.entry CONFIG_JSON FD``: started by the supervisor."""
    config, descriptor = WorkerConfig.from_json(sys.argv[1]), int(sys.argv[2])
    log_ours_to_stderr(log_format_of())
    code = run_worker(config, socket.socket(fileno=descriptor))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of torch and of a broken epoch must not hold the exit up.
    os._exit(code)


if __name__ == "__main__":
    main()
