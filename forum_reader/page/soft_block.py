"""Responses that are not a page of the site (a login wall, a challenge, an empty page, a refusal), and why a page has no
posts, as messages with the next step. Pure.

The markers are those of challenge pages themselves, not of scripts that the same services put into ordinary pages: Cloudflare's
documented header `cf-mitigated: challenge`, and of each service the markup of a page that demands a proof instead of content. A
forum may talk about any of them, so a marker counts in a small page only, and inside of a script or an attribute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .response import FetchedPage

if TYPE_CHECKING:
    from .response import Response


class Cause(StrEnum):
    """Kind of a response that is not the page; a label of metrics."""

    CHALLENGE = "challenge"  # a captcha, or a test of the browser
    LOGIN = "login"  # a login page, instead of the page
    EMPTY = "empty"  # an empty body with a status of success
    FORMAT = "format"  # not the format of the site file: HTML for JSON, a page without its rows
    REFUSED = "refused"  # 401, 403, 451
    BUSY = "busy"  # 429, 502 to 504 and similar
    UNREACHABLE = "unreachable"  # no answer, or its name was not resolved
    ELSEWHERE = "elsewhere"  # a redirect to a place that the site's file does not name
    HUNG = "hung"  # a page that a crawler hung or died over
    DRIFT = "drift"  # pages of the site that lack fields or rows which they had before
    SITE_FILE = "site file"  # no request was sent: the site's file is missing or wrong


@dataclass(frozen=True, kw_only=True)
class BlockVerdict:
    """Fault of a response."""

    cause: Cause
    reason: str  # one line, for the operator
    excerpt: str = ""  # beginning of the body as text; at most 300 characters
    this_page_only: bool = False  # it may be about this one page, such as a private thread
    retry_after: str = ""  # the header, as it came
    date: str = ""  # the same, of the site's clock


CHALLENGE_MAX_BYTES = 200_000
"""Challenge pages are small; larger ones are not searched for markers."""

# (name, a literal of the page, an expression that then must match). The literal is searched first: 2 µs in 30 kB. Within
# a tag no expression goes further than the next "<" or a number of characters: else 200 kB of "<" would take minutes.
_MARKERS: tuple[tuple[str, bytes, re.Pattern[bytes]], ...] = tuple(
    (name, literal, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for name, literal, pattern in (
        ("Cloudflare", b"_cf_chl_opt", rb"<script[^<>]{0,500}>[^<]{0,20000}_cf_chl_opt"),
        ("Cloudflare", b"cf-browser-verification", rb"<[^<>]{1,500}cf-browser-verification"),
        ("Cloudflare", b"cf-error-details", rb"<title>\s*attention required.{0,20}cloudflare"),
        ("Anubis", b"anubis_challenge", rb"<[^<>]{1,500}id=[\"']?anubis_challenge"),
        (
            "DDoS-Guard",
            b"/.well-known/ddos-guard/",
            rb"<script[^<>]{1,500}/\.well-known/ddos-guard/(?:js-challenge|ddg-captcha-page)/",
        ),
        ("Sucuri", b"sucuri_cloudproxy_js", rb"<script[^<>]{0,500}>[^<]{0,20000}sucuri_cloudproxy_js"),
        (
            "Imperva",
            b"_Incapsula_Resource",
            rb"<(?:iframe|script)[^<>]{1,500}_incapsula_resource\?[^<>]{0,500}(?:cwudnsai|swcghoel|swudnsai)",
        ),
        ("DataDome", b"captcha-delivery.com", rb"<(?:script|iframe)[^<>]{1,500}captcha-delivery\.com"),
        ("HUMAN", b"px-captcha", rb"<[^<>]{1,500}id=[\"']?px-captcha"),
    )
)
_TITLE = re.compile(rb"<title[^<>]*>\s*([^<]{1,200})", re.IGNORECASE)
_CHALLENGE_TITLE = re.compile(
    r"just a moment|attention required|checking your browser|verify(?:ing)? (?:that )?you are (?:a )?human|are you (?:a )?human"
    r"|making sure you.{1,6}re not a bot|security check|ddos-guard|access denied|bot (?:check|verification)"
    r"|请稍候|安全验证|人机验证",
    re.IGNORECASE,
)
_LOGIN_TITLE = re.compile(
    r"\b(?:log ?in|sign ?in|log ?on|anmelden|einloggen|connexion|iniciar sesión)\b|登录|登錄|登入", re.IGNORECASE
)
_CAPTCHA = re.compile(rb"(?:hcaptcha\.com|recaptcha/(?:api|enterprise)|challenges\.cloudflare\.com/turnstile)", re.IGNORECASE)
_PASSWORD = re.compile(rb"<input[^<>]{1,500}type=[\"']?password", re.IGNORECASE)
_MUST_LOG_IN = re.compile(
    r"you must (?:be logged[- ]in|log in)|you are (?:either )?not logged in|not authori[sz]ed to (?:read|view)"
    r"|requires you to be (?:registered and )?logged in|please (?:log|sign) in|需要先登录|尚未登录|没有权限访问",
    re.IGNORECASE,
)
_LOGIN_PATH = re.compile(
    r"/(?:log-?in|log-?on|sign-?in|sign_in|auth|sso|session/new|account/login|users/sign_in)(?:[/.?]|$)"
    r"|ucp\.php\?.{0,200}mode=login|member\.php\?.{0,200}(?:mod=logging|action=login)|do=login",
    re.IGNORECASE,
)
_TAGS = re.compile(rb"<(script|style|noscript)\b.*?(?:</\1\s*>|\Z)|<[^<>]*>", re.IGNORECASE | re.DOTALL)

_BLANK = b"\xef\xbb\xbf \t\r\n"  # also a byte order mark
_REFUSED = frozenset({401, 403, 451})
BUSY = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527})


def verdict(response: Response, expects: str | None = None) -> BlockVerdict | None:
    """Find the fault of the last response of a request, after redirects and decompression; None where there is none, or where it
    is an ordinary error of one page, such as 404.

    `expects`: `json` or `html`, the format in the site file.
    """
    status, body = response.status, response.body
    if (found := _challenge(response)) is not None:
        return found
    if status in _REFUSED:
        what = "asks for a login (HTTP 401)" if status == 401 else f"refused (HTTP {status})"
        cause = Cause.LOGIN if status == 401 else Cause.REFUSED
        return BlockVerdict(cause=cause, reason=what, excerpt=excerpt(body), this_page_only=True)
    if status in BUSY:
        after, date = ((response.headers.get(name) or b"").decode("latin-1") for name in ("Retry-After", "Date"))
        return BlockVerdict(cause=Cause.BUSY, reason=f"HTTP {status}", excerpt=excerpt(body), retry_after=after, date=date)
    if not 200 <= status < 300:
        return None
    if _was_sent_to_login(response):
        reason = f"redirected to a login page, {response.url:.200}"
        return BlockVerdict(cause=Cause.LOGIN, reason=reason, excerpt=excerpt(body), this_page_only=True)
    start = body[:200].lstrip(_BLANK)
    if not start and not body.strip(_BLANK):
        return BlockVerdict(cause=Cause.EMPTY, reason=f"an empty answer (HTTP {status})")
    if start.startswith(b"<"):
        if _is_login_page(body):
            reason = f"a login page, {_title(body)!r}"
            return BlockVerdict(cause=Cause.LOGIN, reason=reason, excerpt=excerpt(body), this_page_only=True)
        if expects == "json":
            return BlockVerdict(cause=Cause.FORMAT, reason="HTML where JSON is expected", excerpt=excerpt(body))
    return None


def unreadable(response: Response, reason: str) -> BlockVerdict:
    """Return the cause of a page that could not be read as the site file describes it."""
    body, text = response.body, excerpt(response.body, 5000)
    if _CAPTCHA.search(body[:CHALLENGE_MAX_BYTES]) and len(body) <= CHALLENGE_MAX_BYTES:
        return BlockVerdict(cause=Cause.CHALLENGE, reason=f"a captcha, and not the page: {reason}", excerpt=text[:300])
    if _MUST_LOG_IN.search(text):
        why = f"it asks for a login: {reason}"
        return BlockVerdict(cause=Cause.LOGIN, reason=why, excerpt=text[:300], this_page_only=True)
    return BlockVerdict(cause=Cause.FORMAT, reason=reason, excerpt=text[:300], this_page_only=True)


def without_rows(response: Response) -> BlockVerdict | None:
    """Return the cause of a page without rows; None where it may simply be empty."""
    found = unreadable(response, "a page without rows")
    return None if found.cause is Cause.FORMAT else found


def led_elsewhere(reason: str) -> BlockVerdict:
    """Return the verdict on a page that leads to a place which is not the site's: one thread may be a link to another site, and
    a site that asks for a login at another host, or has moved, does so with all pages.
    """
    return BlockVerdict(cause=Cause.ELSEWHERE, reason=reason, this_page_only=True)


def excerpt(body: bytes, most: int = 300) -> str:
    """Return the beginning of a page's text, for the operator."""
    text = _TAGS.sub(b" ", body[: CHALLENGE_MAX_BYTES // 4]).decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def _challenge(response: Response) -> BlockVerdict | None:
    headers, body = response.headers, response.body
    if (headers.get("cf-mitigated") or b"").strip().lower() == b"challenge":
        return _challenged("a challenge of Cloudflare", body)
    if (headers.get("x-amzn-waf-action") or b"").strip().lower() in (b"captcha", b"challenge"):
        return _challenged("a challenge of AWS WAF", body)
    if len(body) > CHALLENGE_MAX_BYTES or not body[:200].lstrip(_BLANK).startswith(b"<"):
        return None
    for name, literal, pattern in _MARKERS:
        if literal in body and pattern.search(body):
            return _challenged(f"a challenge of {name}", body)
    # A thread may have such a title; then the page has as much text as a page of a forum, and a status of success.
    if (title := _title(body)) and _CHALLENGE_TITLE.search(title) and (response.status >= 400 or len(excerpt(body, 3000)) < 1500):
        return _challenged(f"a challenge: a page with the title {title!r}", body)
    return None


def _challenged(reason: str, body: bytes) -> BlockVerdict:
    return BlockVerdict(cause=Cause.CHALLENGE, reason=reason, excerpt=excerpt(body))


def _is_login_page(body: bytes) -> bool:
    """Return True if the title and a password field are a login page's: many forums have a small login form on every page."""
    title = _title(body)
    return bool(title and len(body) <= CHALLENGE_MAX_BYTES and _LOGIN_TITLE.search(title) and _PASSWORD.search(body)) and (
        len(excerpt(body, 3000)) < 2000
    )


def _title(body: bytes) -> str:
    found = _TITLE.search(body[:20_000])
    return " ".join(found[1].decode("utf-8", "replace").split()) if found else ""


def _was_sent_to_login(response: Response) -> bool:
    """Return True if the page is a login page, and another page was requested."""
    request = getattr(response, "request", None)  # of a crawl; a page that was not requested was sent nowhere else
    if request is None or not _LOGIN_PATH.search(_tail(response.url)):
        return False
    asked: list[str] = request.meta.get("redirect_urls") or [request.url]
    return asked[0] != response.url and not _LOGIN_PATH.search(_tail(asked[0]))


def _tail(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


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
        after = f" (its Retry-After: {found.retry_after!r:.60})" if found is not None and found.retry_after else ""
        return f"{url}: the site is busy or refuses it for now (status {status}): try again later{after}"
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
