"""Access of commands to Redis, its errors as one line for the operator; addresses of web pages as people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from redis_components import embedded
from redis_components.errors import ConfigError, RedisUnavailable
from redis_components.server.variables import variable

from .views.output import report

if TYPE_CHECKING:
    import redis


NOTHING = "Nothing is running here. Start the fleet with `trawl up`, or set TRAWL_REDIS_URL to look at another fleet."


def report_nothing_runs(as_json: bool = False) -> None:
    """Print that no Redis runs here."""
    report(as_json, {"running": False}, NOTHING)


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


@contextmanager
def running_client(as_json: bool = False, *, code: int = 0) -> Iterator[redis.Redis]:
    """Yield a client of the Redis that runs. Where none does, print that, and end the command with this exit code."""
    if (url := running_url()) is None:
        report_nothing_runs(as_json)
        raise typer.Exit(code)
    with redis_client(url) as client:
        yield client


def running_url() -> str | None:
    """Return the URL of the Redis that commands use, if there is one: TRAWL_REDIS_URL, or a running embedded server.

    A command that only reads neither starts a server nor keeps one alive, so this does not join the embedded one as a user.
    """
    if named := variable("TRAWL_REDIS_URL"):
        return named
    state = embedded.status()
    return state.url if state else None


_WITHOUT_SCHEME = re.compile(r"(localhost|\[[0-9A-Fa-f:.]+\]|[^\s/?#@:]+\.[^\s/?#@:.]+\.?)(:\d{1,5})?([/?#]\S*)?")
LONGEST = 2000
"""Characters of an address."""

T = TypeVar("T")


def is_address(text: str) -> bool:
    """Return True for a text with a scheme, and for one that begins with the name of a host."""
    return "://" in text or (len(text) <= LONGEST and _WITHOUT_SCHEME.fullmatch(text) is not None)


def addresses(text: str) -> list[str]:
    """Return the addresses that the text may mean, the most probable first; one that is complete means itself.

    A site file decides about its own host. Of other hosts https is tried before http, on this machine the other way round. Raises
    ConfigError for another text.
    """
    from forum_reader.definition.page_requests import is_this_machine, place_of
    from forums.sites import load_all
    from forums.sites.http.fetch import is_web_address

    possible = [text] if "://" in text else [f"https://{text}", f"http://{text}"]
    if not is_address(text) or not all(map(is_web_address, possible)):
        raise ConfigError(
            f"{text!r:.200} is not the address of a web page: write forum.example.org, or https://forum.example.org/"
        )
    known = {place for site in load_all()[0] for place in site.places}
    if found := [url for url in possible if place_of(url) in known]:
        return found
    return possible[::-1] if is_this_machine(possible[-1]) else possible


def first_answer(urls: Sequence[str], read: Callable[[str], Coroutine[Any, Any, T]]) -> T:
    """Return what is read at the first address that answers. Raises the error of the first one where none does."""
    import asyncio

    from forums.sites.http.fetch import FetchFailed

    failed: FetchFailed | None = None
    for url in urls:
        try:
            return asyncio.run(read(url))
        except FetchFailed as error:
            failed = failed or error
    assert failed is not None
    raise failed
