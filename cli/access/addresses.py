"""Addresses of web pages as people write them: with or without their scheme."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from redis_components.errors import ConfigError

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
    from forum_reader.definition.origins import is_this_machine, place_of
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
    from forums.sites.http.fetch import FetchFailed

    failed: FetchFailed | None = None
    for url in urls:
        try:
            return asyncio.run(read(url))
        except FetchFailed as error:
            failed = failed or error
    assert failed is not None
    raise failed
