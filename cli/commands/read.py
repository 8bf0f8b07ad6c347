"""`trawl read`: what Trawl sees on a page, without a site file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from cli.access.visits import visit_limits
from cli.views.output import print_json
from cli.views.progress import working
from cli.views.read import show
from forum_reader.page.records import SeenPage
from forum_reader.page.response import in_web_encoding
from forum_reader.page.soft_block import refusal
from forum_reader.readers.limited_reading import read_limited
from redis_components.errors import ConfigError, TrawlError

from .read_batch import run

_BINARY = (b"%PDF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x1f\x8b")


def read(
    source: Annotated[
        str | None, typer.Argument(metavar="URL|FILE", help="URL of a page, or a saved page; `-` reads standard input.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The URL of a saved page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with everything that was found.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show whole posts.")] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Read many pages: a JSON line {url, html} or {url, path} for each.")
    ] = False,
    author_names: Annotated[
        bool,
        typer.Option("--author-names", help="With --batch: write authors as plain names, not as `name <profile URL>`."),
    ] = False,
    ignore_robots: Annotated[bool, typer.Option("--ignore-robots", help="Fetch the page even if robots.txt forbids it.")] = False,
) -> int:
    """Show what Trawl reads from a page of any forum: its kind, the forum software, and the posts.

    No site file is needed and nothing is stored. Each result says how it was found: by the profile of the forum software, by the
    page's structured data (schema.org), or from the structure that posts repeat.

        trawl read https://forum.example/threads/some-thread.123/
        trawl read saved.html --url https://forum.example/threads/some-thread.123/
    """
    if batch:
        if source is not None or url is not None:
            raise ConfigError("--batch reads from standard input: remove the URL or FILE")

        return run(sys.stdin.buffer, sys.stdout, author_names=author_names)
    if source is None:
        raise ConfigError("give the URL of a page, or a file: trawl read https://forum.example/some-thread")
    page = _read(source, url, obey_robots=not ignore_robots)
    if as_json:
        print_json(_as_json(page))
    else:
        show(page, full=full)
    return 0


def _read(source: str, url: str | None, *, obey_robots: bool) -> SeenPage:

    if "://" in source:
        if url is not None:
            raise ConfigError("--url cannot be combined with a URL to fetch: it names the source of a saved page")
        html, address = _fetched(source, obey_robots=obey_robots)
        return read_limited(html, address, compare=True)
    if source == "-":
        return read_limited(decoded(sys.stdin.buffer.read(), "standard input"), url or "https://unknown.example/", compare=True)
    path = Path(source)
    try:
        body = path.read_bytes()
    except OSError as exc:
        hint = "" if path.exists() else "; an address begins with https:// or http://"
        raise ConfigError(f"{source}: cannot be read: {exc.strerror or exc}{hint}") from exc
    return read_limited(decoded(body, source), url or "https://unknown.example/", compare=True)


def _fetched(url: str, *, obey_robots: bool) -> tuple[str, str]:

    from forums.sites.http.fetch import Visitor

    async def one() -> Any:
        async with Visitor(obey_robots=obey_robots, limits=visit_limits(url)) as visitor:
            return await visitor.get(url)

    with working(f"reading {url}"):
        response = asyncio.run(one())
    kind = (response.headers.get("Content-Type") or b"").decode("latin-1").split(";")[0].strip()
    if (why := refusal(response)) is not None:
        raise TrawlError(why)
    if "json" in kind:
        raise TrawlError(f"{url} is {kind}, not HTML: trawl read reads HTML pages; for an API write a site file")
    return response.text, response.url


def decoded(body: bytes, name: str) -> str:
    """The text of a saved page: UTF-8, else the encoding that it declares, else the one that its bytes look like. Raises
    ConfigError for a binary or empty file.
    """
    if not body.strip():
        raise ConfigError(f"{name} is empty")
    if body.startswith(_BINARY) or b"\x00\x00" in body[:1000]:
        raise ConfigError(f"{name} is not an HTML page: it begins with {body[:8]!r}")
    try:
        return body.decode("utf-8-sig", "surrogatepass").encode("utf-8", "replace").decode("utf-8")
    except UnicodeDecodeError:
        from scrapy.http import HtmlResponse

        return in_web_encoding(HtmlResponse("", body=body)).text


def _as_json(page: SeenPage) -> Any:

    return msgspec.to_builtins(page)
