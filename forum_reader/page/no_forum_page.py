"""Reasons why a response holds no posts and no list, as messages with the next step. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .response import FetchedPage
from .soft_block import BUSY, Cause, excerpt, unreadable, verdict

if TYPE_CHECKING:
    from .response import Response

_BY_BROWSER = "save the page with a browser that shows it, then trawl read FILE --url {url}"
ASKS_FOR_LOGIN = f"this page asks for a login: {_BY_BROWSER.format(url='URL')}"
# A comment ends at its first `-->`: if one could hold others, many of them could be matched in 2^n ways.
_FEED = re.compile(r"\s*(?:<\?xml[^<>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*+-->\s*)*<(?:rss|feed|urlset|sitemapindex|rdf:RDF)\b")
_BEGINNING = 3000  # characters
_FEW = 300  # characters of text outside of scripts, where a script makes the page
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)


def refusal(response: Response) -> str | None:
    """Return why a response with another status than 200, or a challenge, is not a page; None where it may be a page
    of a forum.
    """
    url, status = response.url, response.status
    found = verdict(response)
    if found is not None and found.cause is Cause.CHALLENGE:
        return f"{url}: the site answers with {found.reason}, which only a browser passes: {_BY_BROWSER.format(url=url)}"
    if status == 200:
        return None
    if status in BUSY:
        wait = f"in {found.retry_after_s:.0f} s" if found is not None and found.retry_after_s else "later"
        return f"{url}: the site is busy or refuses it for now (status {status}): try again {wait}"
    if status in (401, 403, 407, 451):
        return f"{url}: the site refuses it with status {status}: {_BY_BROWSER.format(url=url)}"
    if status in (404, 410):
        return f"{url} answers with status {status}, there is no such page: check the address"
    if status >= 500:
        return f"{url} answers with status {status}, an error of the site: try again later"
    return f"{url} answers with status {status}: give the URL of a public page"


def why_nothing(html: str, url: str) -> str | None:
    """Return why no posts and no list were found on a page; None where the page does not show why."""
    if _FEED.match(html[:_BEGINNING]):
        return 'this is a feed or a sitemap, not a page: a site file reads it as a list with format = "xml"'
    response = FetchedPage(url, html.encode("utf-8", "replace"), encoding="utf-8")
    found = verdict(response) or unreadable(response, "no posts and no list")
    if found.cause is Cause.CHALLENGE:
        return f"this is {found.reason}, which only a browser passes: {_BY_BROWSER.format(url='URL')}"
    if found.cause is Cause.LOGIN:
        return ASKS_FOR_LOGIN
    if _SCRIPT.search(html) and len(excerpt(response.body, _FEW)) < _FEW:
        return "a script fills the page in a browser: write a site file for the API that it asks (docs/sites.md)"
    return None
