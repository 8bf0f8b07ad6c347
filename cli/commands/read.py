"""`trawl read`: the posts and links that Trawl finds on a page without a site file, of one page or of a batch."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Annotated, Any
from urllib.parse import unquote

import msgspec
import typer

from cli.access import addresses, first_answer, is_address
from cli.views.options import AsJson
from cli.views.output import counted, echo, print_json, working
from cli.views.tables import echo_indented, shortened, show
from forum_reader.errors import ReaderError
from forum_reader.page.records import SeenPage, SeenPost
from forum_reader.page.soft_block import refusal
from forum_reader.readers.limited_reading import read_limited
from forum_reader.reading.parse_body import in_web_encoding
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.printable import in_words

_PAGES = (".html", ".htm", ".xhtml", ".mhtml", ".xml", ".json", ".txt")  # what a file may be called, and no host is
_BINARY = (b"%PDF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x1f\x8b")


def read(
    source: Annotated[
        str | None, typer.Argument(metavar="URL|FILE", help="URL of a page, or a saved page; `-` reads standard input.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The URL of a saved page.")] = None,
    as_json: AsJson = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Read many pages: a JSON line {url, html} or {url, path} for each.")
    ] = False,
    ignore_robots: Annotated[bool, typer.Option("--ignore-robots", help="Fetch the page even if robots.txt forbids it.")] = False,
) -> int:
    """Show what Trawl reads from a page of any forum: its kind, the forum software, and the posts.

    No site file is needed and nothing is stored. The way of each result is shown: by the profile of the forum software, by the
    page's structured data (schema.org), or from the structure that posts repeat.

        trawl read https://forum.example/threads/some-thread.123/
        trawl read saved.html --url https://forum.example/threads/some-thread.123/
    """
    if batch:
        if source is not None or url is not None:
            raise ConfigError("--batch reads from standard input: remove the URL or FILE")
        return read_batch(sys.stdin.buffer, sys.stdout)
    if source is None:
        raise ConfigError("give the URL of a page, or a file: trawl read https://forum.example/some-thread")
    page = _read(source, url, obey_robots=not ignore_robots)
    if as_json:
        print_json(msgspec.to_builtins(page))
    else:
        show_page(page)
    return 0


def _read(source: str, url: str | None, *, obey_robots: bool) -> SeenPage:
    if is_address(source) and not (Path(source).exists() or ("/" not in source and source.lower().endswith(_PAGES))):
        if url is not None:
            raise ConfigError("--url cannot be combined with a URL to fetch: it names the source of a saved page")
        html, address = _fetched(addresses(source), obey_robots=obey_robots)
        return read_limited(html, address)
    if source == "-":
        return read_limited(decoded(sys.stdin.buffer.read(), "standard input"), url or "https://unknown.example/")
    return read_limited(decoded(Path(source).read_bytes(), source), url or "https://unknown.example/")


def _fetched(urls: Sequence[str], *, obey_robots: bool) -> tuple[str, str]:
    """Return the page at the first address that answers, and its address."""
    from cli.names import visit_limits
    from forums.sites.http.fetch import Visitor

    async def one(url: str) -> Any:
        async with Visitor(obey_robots=obey_robots, limits=visit_limits(url)) as visitor:
            return await visitor.get(url)

    url = urls[0]
    with working(f"reading {url}"):
        response = first_answer(urls, one)
    kind = (response.headers.get("Content-Type") or b"").decode("latin-1").split(";")[0].strip()
    if (why := refusal(response)) is not None:
        raise TrawlError(why)
    if "json" in kind:
        raise TrawlError(f"{url} is {kind}, not HTML: trawl read reads HTML pages; for an API write a site file")
    return response.text, response.url


def decoded(body: bytes, name: str) -> str:
    """Return the text of a saved page: UTF-8, else the encoding that it declares, else the most probable of its bytes.

    Raises ConfigError for a binary or empty file.
    """
    if not body.strip():
        raise ConfigError(f"{name} is empty")
    if body.startswith(_BINARY) or b"\x00\x00" in body[:1000]:
        raise ConfigError(f"{name} is not an HTML page: it begins with {body[:8]!r}")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        from scrapy.http import HtmlResponse

        return in_web_encoding(HtmlResponse("", body=body)).text


_SHOWN = 240  # characters of a post
_ROWS = 15  # of a list
_HOW = {
    "profile": "by the profile of the software",
    "schema.org": "by the page's marks for search engines (schema.org)",
    "learned": "learned from the structure that they repeat",
}


def show_page(page: SeenPage) -> None:
    """Print a page, of each post the beginning; `--json` has them whole."""
    echo_indented("", f"{page.kind.value}  {page.title or page.url}")
    if page.software:
        software = page.software
        version = f" {software.version}" if software.version else ""
        echo(f"software: {software.name}{version}, {software.score:.0%} sure (profile {software.profile})")
    else:
        echo("software: not recognised")
    if page.reader:
        comments = sum(len(post.comments) for post in page.posts)
        posts = counted(len(page.posts), "post") + (f" with {counted(comments, 'comment')} on them" if comments else "")
        echo(f"{posts}, {_HOW[page.reader.value]}; confidence {page.confidence:.0%}")
    for note in page.notes if page.posts else ():
        echo_indented("but: ", note)
    for post in page.posts:
        echo("")
        for one in (post, *post.comments):
            _show_post(one)
    if not page.posts and page.rows:
        echo(f"{counted(len(page.rows), 'link')} of the same kind:")
        show(page.rows[:_ROWS], {"title": lambda row: shortened(row.title, 60), "address": "url"}, False)
        if len(page.rows) > _ROWS:
            echo(f"and {len(page.rows) - _ROWS} more")
    if page.next:
        echo("", f"next page: {page.next}")
    if not page.posts and not page.rows:
        why = "; ".join(page.notes) or "give the address of a thread or of a board; what to write by hand: docs/sites.md"
        echo_indented("", f"No posts and no list were found: {why}.")


def _show_post(post: SeenPost) -> None:
    when = f"{post.published:%Y-%m-%d %H:%M}" if post.published else "no date"
    parts = [f"#{post.number}" if post.number else "  comment", post.author or "no author", when]
    parts += [f"id {post.id}"] if post.id else []
    parts += [f"answers {post.parent}"] if post.parent else []
    parts += [f"edited {post.edited:%Y-%m-%d %H:%M}"] if post.edited else []
    echo(" · ".join(parts))
    echo_indented("    ", shortened(post.text, _SHOWN) or "(no text)")


_GC_THRESHOLD = (50_000, 50, 50)  # as in crawlers; the default of 700 takes a fifteenth of the time of a page
_LINE_ENDS = {end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}  # Python's splitlines, among others, ends lines there


def read_batch(lines: Iterable[bytes], out: IO[str]) -> int:
    """Read a page for each line; return 1 where some were not read: their answers have an `error`."""
    gc.set_threshold(*_GC_THRESHOLD)
    failed = False
    for line in lines:
        if not line.strip():
            continue
        answer = _answer(line)
        failed = failed or answer["error"] is not None
        text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace").decode()  # half a surrogate pair has no encoding
        for end, escaped in _LINE_ENDS.items():
            text = text.replace(end, escaped)
        out.write(text + "\n")
        out.flush()
    return int(failed)


def _answer(line: bytes) -> dict[str, Any]:
    url: Any = None
    try:
        asked = json.loads(line)
        if not isinstance(asked, dict) or not isinstance(asked.get("url"), str):
            raise TrawlError('each line is an object with "url" and "html" or "path"')
        url = asked["url"]
        return _row(read_limited(_html(asked), url, links=False))
    except (TrawlError, ReaderError, ValueError, OSError, RecursionError) as exc:
        reason = f"not JSON: {exc}" if isinstance(exc, json.JSONDecodeError) else str(exc) or in_words(exc)
        return {"url": url, "kind": None, "reader": None, "profile": None, "posts": [], "error": reason}


def _html(asked: dict[str, Any]) -> str:
    if isinstance(asked.get("html"), str):
        return str(asked["html"])
    if not isinstance(asked.get("path"), str):
        raise TrawlError('each line has "html", the page, or "path", a file')
    return decoded(Path(asked["path"]).read_bytes(), asked["path"])


def _row(page: SeenPage) -> dict[str, Any]:
    return {
        "url": page.url,
        "kind": page.kind.value,
        "reader": page.reader.value if page.reader else None,
        "profile": page.software.profile if page.software else None,
        "posts": [_post_row(post) for post in page.posts],
        "confidence": page.confidence,
        "notes": list(page.notes),
        "error": None,
    }


def _post_row(post: SeenPost) -> dict[str, Any]:
    """Return a post; on sites of questions and answers a post may have `comments`."""
    comments = [_post_row(comment) for comment in post.comments]
    return {
        "id": post.id,
        "author": _author(post),
        "author_name": post.author,
        "author_url": post.author_url,
        "published": post.published.isoformat() if post.published else None,
        "edited": post.edited.isoformat() if post.edited else None,
        "parent": post.parent,
        "text": post.text,
    } | ({"comments": comments} if comments else {})


def _author(post: SeenPost) -> str | None:
    """Return the author with the address of the profile, which distinguishes authors of the same name."""
    return f"{post.author} <{unquote(post.author_url)}>" if post.author and post.author_url else post.author
