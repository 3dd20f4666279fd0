"""``parcae-planner``: the planner service's entrypoint. Its settings come from the environment."""

from __future__ import annotations

import sys

from parcae_api.errors import ParcaeError
from parcae_optimizer.serving import from_environment, serve


def main() -> None:
    """Run until SIGTERM; a mistake in the settings is one line on stderr and exit code 2."""
    try:
        serve(from_environment())
    except ParcaeError as error:
        print(f"parcae-planner: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
