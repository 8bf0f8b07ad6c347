"""`trawl read --batch`: a JSON line for each page in, a JSON line for each out; one that is wrong does not stop the others."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from forum_reader.errors import ReaderError
from forum_reader.page.records import SeenPage, SeenPost
from forum_reader.readers.limited_reading import read_limited
from redis_components.errors import TrawlError

_GC_THRESHOLD = (50_000, 50, 50)  # as in crawlers; the default of 700 takes a fifteenth of the time of a page
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}  # Python's splitlines, among others, ends lines there


def run(lines: Iterable[bytes], out: IO[str], *, author_names: bool = False) -> int:
    """Exit code 0 where each line was read, 1 where some were not: their answers have an `error`."""
    gc.set_threshold(*_GC_THRESHOLD)
    failed = False
    for line in lines:
        if not line.strip():
            continue
        answer = _answer(line, author_names=author_names)
        failed = failed or answer["error"] is not None
        text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace").decode()  # half a surrogate pair has no encoding
        out.write(text.translate(_LINE_ENDS) + "\n")
        out.flush()
    return int(failed)


def _answer(line: bytes, *, author_names: bool) -> dict[str, Any]:

    url: Any = None
    try:
        asked = json.loads(line)
        if not isinstance(asked, dict) or not isinstance(asked.get("url"), str):
            raise TrawlError('each line is an object with "url" and "html" or "path"')
        url = asked["url"]
        return _row(read_limited(_html(asked), url), author_names=author_names)
    except (TrawlError, ReaderError, ValueError, OSError, RecursionError) as exc:
        reason = f"not JSON: {exc}" if isinstance(exc, json.JSONDecodeError) else str(exc) or type(exc).__name__
        return {"url": url, "kind": None, "reader": None, "profile": None, "posts": [], "error": reason}


def _html(asked: dict[str, Any]) -> str:
    from .read import decoded

    if isinstance(asked.get("html"), str):
        return str(asked["html"]).encode("utf-8", "replace").decode("utf-8")
    if not isinstance(asked.get("path"), str):
        raise TrawlError('each line has "html", the page, or "path", a file')
    return decoded(Path(asked["path"]).read_bytes(), asked["path"])


def _row(page: SeenPage, *, author_names: bool) -> dict[str, Any]:
    return {
        "url": page.url,
        "kind": page.kind.value,
        "reader": page.reader.value if page.reader else None,
        "profile": page.software.profile if page.software else None,
        "posts": [_post(post, author_names=author_names) for post in page.posts],
        "confidence": page.confidence,
        "notes": list(page.notes),
        "error": None,
    }


def _post(post: SeenPost, *, author_names: bool) -> dict[str, Any]:
    """A post; on sites of questions and answers those that are commented on have `comments`."""
    comments = [_post(comment, author_names=author_names) for comment in post.comments]
    return {
        "id": post.id,
        "author": post.author if author_names else _author(post),
        "author_name": post.author,
        "author_url": post.author_url,
        "published": post.published.isoformat() if post.published else None,
        "edited": post.edited.isoformat() if post.edited else None,
        "parent": post.parent,
        "text": post.text,
    } | ({"comments": comments} if comments else {})


def _author(post: SeenPost) -> str | None:
    """Who wrote it, told apart from others of the same name by the address of the profile."""
    return f"{post.author} <{unquote(post.author_url)}>" if post.author and post.author_url else post.author
