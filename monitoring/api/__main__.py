"""`trawl api` and `python -m monitoring.api`: serve the API until SIGTERM or SIGINT.

Exit code 0 after a signal, 1 if it cannot serve, 2 for wrong use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from monitoring.exporter import listen, parsed, program, serve, url_of
from redis_components.server.variables import refuse_example_secrets

DEFAULT_PORT = 6800
ANSWER_S = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the API; the exit code."""
    options = parsed(arguments, "python -m monitoring.api", "Serve the fleet's HTTP API.", DEFAULT_PORT)
    return program(lambda: _serve(options.host, options.port))


def _serve(host: str, port: int) -> None:
    from redis_components.connection import connect  # after the signal handlers: loading takes a while
    from redis_components.embedded import redis_url
    from redis_components.server.printable import masked
    from redis_components.server.url import impatient

    from .access import Tokens
    from .routes import create_api

    refuse_example_secrets(os.environ)
    tokens, url = Tokens.from_environment(), redis_url()
    with listen(host, port, "API") as listener:
        sys.stdout.write(f"API at {url_of(listener)} (/api/v1, /openapi.json), of {masked(url)}\n")
        sys.stdout.flush()
        serve(create_api(connect(impatient(url, ANSWER_S)), tokens, url), listener)


if __name__ == "__main__":
    sys.exit(main())
