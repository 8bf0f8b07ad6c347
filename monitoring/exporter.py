"""`python -m monitoring.exporter`: serve metrics and the status page until SIGTERM or SIGINT.

Exit code 0 after a signal, 1 if it cannot serve, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from redis_components.errors import TrawlError
from redis_components.server.printable import in_one_line
from redis_components.server.variables import load_env_file, refuse_example_secrets

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

DEFAULT_PORT = 9410


class ServeError(TrawlError):
    """The exporter cannot listen; the message has the address and the fix."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the exporter; the exit code."""
    about = "Serve the fleet's metrics for Prometheus, and a status page."
    options = parsed(arguments, "python -m monitoring.exporter", about, DEFAULT_PORT)
    return program(lambda: _serve(options.host, options.port))


def program(run: Callable[[], None]) -> int:
    """Run a server after the signals are set and `.env` is read; return the exit code. Each error is one line."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)  # uvicorn stops on these, and then sends them on to us
    try:
        load_env_file()
        run()
    except TrawlError as error:
        sys.stderr.write(f"{in_one_line(str(error))}\n")
        return 1
    return 0


def _serve(host: str, port: int) -> None:
    from redis_components.embedded import redis_url  # after the signal handlers: loading takes a while, and a signal may come
    from workers.fleet.sizes import default_fleet

    from .api.access import Tokens
    from .app import create_app
    from .client_limits import allowed_hosts
    from .source import Source

    refuse_example_secrets(os.environ)
    default_fleet()  # a declaration that cannot be read is refused now
    hosts, tokens, source = allowed_hosts() | {host.lower()}, Tokens.that_are_set(), Source(redis_url(), None)
    with listen(host, port) as listener:
        sys.stdout.write(f"exporter at {url_of(listener)} (/metrics, /livez, /readyz), reading {source.name}\n")
        sys.stdout.flush()
        serve(create_app(source, hosts=hosts, tokens=tokens), listener)


def serve(app: FastAPI, listener: socket.socket) -> None:
    """Answer requests until a signal comes."""
    gc.collect()
    gc.freeze()  # imported objects stay: else each large collection, with 10,000 boards one in a scrape, takes 80 ms more
    server_of(app).run(sockets=[listener])


def server_of(app: FastAPI) -> uvicorn.Server:
    """Return the HTTP server; `client_limits.py` bounds the resources of a client."""
    import uvicorn

    from . import client_limits

    config = uvicorn.Config(
        app,
        http=client_limits.BoundedConnection,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,  # s; a scrape that waits for Redis is not worth more
    )
    return uvicorn.Server(config)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """End this process: what a signal means before uvicorn listens to it, and after. At once: SystemExit would be lost where the
    signal comes while a destructor runs, and nothing here has to be closed.
    """
    os._exit(0)


def listen(host: str, port: int, of: str = "exporter") -> socket.socket:
    """Return a bound socket for `of`. Made here and not by uvicorn, so that a port in use is one line."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ServeError(
            f"{of}: cannot listen on {host} port {port}: {reason}; choose another --port (0 takes any free one) or --host"
        ) from error


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listener."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def parsed(arguments: Sequence[str] | None, program: str, description: str, port: int) -> argparse.Namespace:
    """Parse the command line of a server, with this default port."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port_number, default=port, help="default: %(default)s; 0 takes any free one")
    return parser.parse_args(arguments)


def port_number(text: str) -> int:
    """Parse a port of a command line. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
