"""``parcae-operator``: the operator's entrypoint. Its settings come from the environment."""

from __future__ import annotations

import sys

from parcae_api.errors import ParcaeError
from parcae_operator.kube.settings import from_environment
from parcae_operator.log_lines import log_to_stderr


def main() -> None:
    """Run until SIGTERM; a mistake in the settings is one line on stderr and exit code 2."""
    try:
        settings = from_environment()
    except ParcaeError as error:
        print(f"parcae-operator: {error}", file=sys.stderr)
        sys.exit(2)
    log_to_stderr(settings.log_format)
    import kopf

    import parcae_operator.kube.startup  # noqa: F401 - registers its handlers
    from parcae_operator.kube.handlers import registry
    from parcae_operator.kube.program import Program

    kopf.run(
        registry=registry,
        memo=Program(settings),
        standalone=True,
        clusterwide=not settings.namespace,
        namespaces=[settings.namespace] if settings.namespace else [],
        liveness_endpoint=f"http://0.0.0.0:{settings.liveness_port}/healthz"
        if settings.liveness_port
        else None,
    )


if __name__ == "__main__":
    main()
