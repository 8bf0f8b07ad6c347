"""Fetches pages by the standard library, for `draft_site` without a fetching function of the caller."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from forum_reader.definition.page_body import PageRequest
from forum_reader.errors import FetchFailed
from forum_reader.page.response import FetchedPage, TextResponse
from forum_reader.page.web_encoding import in_web_encoding

TIMEOUT_S = 30.0
"""Seconds without a byte."""
MAX_BYTES = 8 * 1024 * 1024
"""Forum pages are smaller."""
DELAY_S = 0.5
"""Seconds between two requests."""
AGENT = "trawl-reader"
_SCHEMES = ("http", "https")


class PlainFetch:
    """Fetches one page after the other, as robots.txt allows, with a time-out, a largest size and a delay. It restricts no
    addresses: a page may redirect to a host of the local network.
    """

    def __init__(self, *, delay_s: float = DELAY_S) -> None:
        self._delay_s = delay_s
        self._next_at = 0.0
        self._robots: dict[str, RobotFileParser] = {}
        self._opener = urllib.request.build_opener(_WebRedirects)

    def get(self, page: PageRequest) -> TextResponse:
        """Return the page, of any status. Raises FetchFailed."""
        parts = urlsplit(page.url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise FetchFailed(f"{page.url!r:.200} is not the URL of a web page: write http://… or https://…")
        if not self._rules(f"{parts.scheme}://{parts.netloc}").can_fetch(AGENT, page.url):
            raise FetchFailed(f"{page.url}: robots.txt forbids it: ask the site's owners, and fetch with a function of your own")
        return in_web_encoding(self._send(page))

    def _rules(self, origin: str) -> RobotFileParser:
        if origin not in self._robots:
            found = self._send(PageRequest(url=f"{origin}/robots.txt"))
            if found.status == 429 or found.status >= 500:  # RFC 9309, 2.3.1.4
                raise FetchFailed(f"{origin}: robots.txt is answered with status {found.status}: try again later")
            rules = self._robots[origin] = RobotFileParser()
            rules.parse(found.text.splitlines() if found.status == 200 else [])
        return self._robots[origin]

    def _send(self, page: PageRequest) -> FetchedPage:
        time.sleep(max(0.0, self._next_at - time.monotonic()))
        try:
            request = urllib.request.Request(  # noqa: S310 - only web addresses come here
                page.url, data=page.body.encode() or None, headers={"User-Agent": AGENT} | page.headers, method=page.method
            )
            with self._answer(request) as answer:
                body = answer.read(MAX_BYTES + 1)
        except (OSError, HTTPException, ValueError) as exc:
            raise FetchFailed(f"{page.url}: {getattr(exc, 'reason', None) or exc or type(exc).__name__}") from exc
        finally:
            self._next_at = time.monotonic() + self._delay_s
        if len(body) > MAX_BYTES:
            raise FetchFailed(f"{page.url}: larger than {MAX_BYTES // 1024**2} MiB")
        return FetchedPage(answer.url, body, status=answer.status, headers=answer.headers.items())

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            return self._opener.open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as answer:  # of another status
            return answer


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects to web addresses: the standard library would also follow one to `ftp:`."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in _SCHEMES:
            raise urllib.error.URLError(f"redirects to {newurl!r:.200}, which is not a web page")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
