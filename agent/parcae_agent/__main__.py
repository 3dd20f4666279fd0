"""``python -m parcae_agent``: the agent pod's entrypoint."""

from __future__ import annotations

import sys

from parcae_agent.pid_one import hold_sigterm, warn_of_a_shell_in_front


def main() -> None:
    """Run the agent that the environment describes, and exit with its code."""
    hold_sigterm()
    # Only now what takes long to import: as a container's first process it would lose the signal.
    from parcae_agent.agent import run_agent
    from parcae_agent.launch import spawn_worker
    from parcae_agent.notices.settings import notice_settings
    from parcae_agent.settings import from_environment
    from parcae_api.errors import ParcaeError
    from parcae_api.log_lines import log_format_of, log_to_stderr

    try:
        log_to_stderr(log_format_of())
        warn_of_a_shell_in_front()
        code = run_agent(from_environment(), spawn_worker, notice_settings())
    except ParcaeError as error:
        print(f"parcae-agent: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code)


if __name__ == "__main__":
    main()
