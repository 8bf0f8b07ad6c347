"""Redis for commands: the client, and its errors as one line for the operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.views.output import echo, print_json
from redis_components import embedded
from redis_components.errors import RedisUnavailable
from redis_components.server.variables import variable

if TYPE_CHECKING:
    import redis

NOTHING = "Nothing is running here. Start the fleet with `trawl up`, or set TRAWL_REDIS_URL to look at another fleet."


def report_nothing_runs(as_json: bool = False) -> None:
    """Print that no Redis runs here."""
    if as_json:
        print_json({"running": False})
    else:
        echo(NOTHING)


@contextmanager
def redis_client(url: str | None = None) -> Iterator[redis.Redis]:
    """Yield a client of `url`, else of TRAWL_REDIS_URL or the embedded server, which is started if need be.

    Raises RedisUnavailable for every error of Redis within the block, ConfigError for an invalid URL.
    """
    import redis

    from redis_components.connection import connect, explain

    url = url or embedded.redis_url()
    try:
        yield connect(url)
    except redis.RedisError as error:
        if isinstance(error, redis.ConnectionError) and not variable("TRAWL_REDIS_URL") and embedded.status() is None:
            raise RedisUnavailable("the private Redis has just stopped, because nothing used it: try again") from error
        raise explain(error, url) from error


def running_url() -> str | None:
    """Return the URL of the Redis that commands use, if there is one: TRAWL_REDIS_URL, or a running embedded server.

    A command that only reads neither starts a server nor keeps one alive, so this does not join the embedded one as a user.
    """
    if named := variable("TRAWL_REDIS_URL"):
        return named
    state = embedded.status()
    return state.url if state else None
