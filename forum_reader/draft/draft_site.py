"""Drafts a site file from a forum's address: by the profile of its software, or by what its pages show."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import msgspec

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.errors import AnotherHost, FetchFailed, NoForum, ReaderError, SiteError
from forum_reader.page.response import Fetch, FetchedPage, TextResponse
from forum_reader.page.soft_block import refusal
from forum_reader.reading.page_records import ListedForum
from forum_reader.reading.parse_body import in_web_encoding, markup_root, strictly
from forum_reader.reading.read_page import read_index
from forum_reader.recognise.recognise import Guess, base_of, guesses

from .boards import addressed_forums, boards_below
from .comment_service import find_static, static_wrapper
from .draft_file import Draft, Preview, name_of, preview_of, refuse_variables, site_of_draft, text_of
from .explore import Explorer, FoundForum
from .missing_page import with_gone
from .page_sample import opened
from .paging_links import feeds_of, recent_of_profile, recent_page
from .wrapper import customs_of, wrapper_of

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
        self._opener = urllib.request.build_opener()
        vars(self._opener)["handle_open"].pop("ftp")  # a page may redirect there

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


_INDEX_PAGES = 20  # most pages of an index
_MOST_FEEDS = 4
_FEED = re.compile(rb"<(?:rss|feed|urlset|rdf:RDF)[\s>]")
ARTICLES = "articles"
"""The profile of news sites and blogs."""


class Drafted(NamedTuple):
    """A draft; `guess`: the recognised software, if any; `shown`: threads as the file reads them; `problem`: the reason why the
    index was not read whole.
    """

    draft: Draft
    guess: Guess | None
    shown: Preview
    problem: str | None


def draft_site(
    url: str,
    *,
    fetch: Callable[[PageRequest], TextResponse] | None = None,
    name: str | None = None,
    profile: str | None = None,
) -> str:
    """Return the text of a site file for the forum at `url`, read from up to a hundred of its pages. `fetch` returns a
    `FetchedPage`, or a response of Scrapy, of any status, and raises FetchFailed; without it `PlainFetch` is used. Raises
    NoForum, and other ReaderErrors. Runs its own asyncio loop.
    """
    send = fetch or PlainFetch().get

    async def get(page: str | PageRequest) -> TextResponse:
        return send(PageRequest(url=page) if isinstance(page, str) else page)

    draft = asyncio.run(drafted(url, get, partial(Draft, name=name or name_of(url)), profile)).draft
    if not draft.forums:
        raise NoForum(f"{url}: no forum was found ({draft.software}): give the URL of a list of threads")
    return text_of(draft)


async def drafted(url: str, fetch: Fetch, known: partial[Draft], profile: str | None = None) -> Drafted:
    """Draft the file of the forum at `url`; `known`: values of the draft that the pages do not show. Raises ReaderError."""
    pages = _Pages(fetch)
    found = await _found(url, fetch, pages, known, profile)
    return found._replace(draft=await with_gone(found.draft, found.shown, pages.get)) if found.shown.is_read else found


async def _found(url: str, fetch: Fetch, pages: _Pages, known: partial[Draft], profile: str | None) -> Drafted:
    if profile is not None and profile not in (names := load.profile_names()):
        raise SiteError(f"profile {profile!r:.100} is unknown: profiles are {', '.join(names)}")
    response = await pages.get(url)
    if (why := refusal(response)) is not None:
        raise ReaderError(why)
    _refuse_another_host(url, response.url)
    guess = next((one for one in guesses(response) if profile in (None, one.profile)), None)
    chosen = profile or (guess.profile if guess else None)
    draft, shown, problem = None, Preview([], None), None
    if profile == ARTICLES or (profile is None and _FEED.search(response.body[:500])):
        return await _by_feeds(response, known, pages)
    if chosen and chosen != "generic":
        draft, problem = await _by_profile(fetch, chosen, guess, response, known)
        shown = await preview_of(draft, pages.get)
        if shown.is_read:
            draft, shown = await _with_customs(draft, shown, pages)
            recent = await recent_of_profile(fetch, load.profile_table(chosen), draft.base_url, response)
            draft = msgspec.structs.replace(draft, recent=recent)
        if profile or shown.is_right:
            return Drafted(draft, guess, shown, problem)
    if not profile and (static := await _of_static_pages(response, pages, known)) is not None:
        return static
    # Of unknown software, or with pages that its profile does not read: another skin, another version.
    found = None if profile else await pages.explorer.find(response)
    learned = _learned(found, response, known)
    if found is not None and learned.wrapper is not None:
        recent = await recent_page(fetch, found, learned.wrapper.pages)
        learned.wrapper.pages |= {"recent": recent} if recent else {}
    as_learned = await preview_of(learned, pages.get)
    if learned.wrapper is not None and as_learned.is_by_creation:
        learned.wrapper.pages["list"]["order"] = "created"  # answers to older threads are on any page of it
    if profile is None and draft is None and not (learned.forums and as_learned.is_read):
        articles = await _by_feeds(response, known, pages)
        if articles.shown.is_read:
            return articles
    is_better = as_learned.is_right and as_learned.posts > shown.posts if shown.is_read else as_learned.is_read
    if draft is None or is_better:
        return Drafted(learned, None, as_learned, problem)
    return Drafted(draft, guess, shown, problem)


class _Pages:
    """Pages of the site, each fetched once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[str, TextResponse] = {}
        self.explorer = Explorer(self.get)

    async def get(self, url: str) -> TextResponse:
        if (known := self._known.get(url) or self._known.get(urldefrag(url).url)) is not None:
            return known
        found = self._known[url] = await self._fetch(url)
        if "#" not in url:  # a body of a request may stand behind it
            self._known[found.url] = found
        return found


async def _by_profile(
    fetch: Fetch, profile: str, guess: Guess | None, response: TextResponse, known: partial[Draft]
) -> tuple[Draft, str | None]:
    """Return the draft by the profile of the software, and the reason why the index was not read whole."""
    table = load.profile_table(profile)
    fixed = table.get("base_url")
    base_url = str(fixed or (guess.base_url if guess else base_of(response.url)))
    forums, can_discover, problem = await _forums(fetch, known.keywords["name"], profile, base_url)
    draft = known(
        profile=profile,
        software=str(table.get("recognise", {}).get("about") or profile),
        base_url=base_url,
        base_in_profile=fixed is not None,
        forums=forums or addressed_forums(table, base_url, response.url, markup_root(response)),
        can_discover=can_discover,
        wrapper=None,
    )
    return draft, problem


def _learned(found: FoundForum | None, response: TextResponse, known: partial[Draft]) -> Draft:
    """Return the draft by what was learned from the pages, if anything."""
    wrapper = wrapper_of(found) if found else None
    return known(
        profile=None,
        software="unknown software",
        base_url=urljoin(response.url, "/").rstrip("/") if wrapper else base_of(response.url),
        base_in_profile=False,
        forums=wrapper.forums if wrapper else (),
        can_discover=wrapper is not None and "index" in wrapper.pages,
        wrapper=wrapper,
    )


async def _of_static_pages(response: TextResponse, pages: _Pages, known: partial[Draft]) -> Drafted | None:
    """Return the draft for static pages whose comments come from a service; None for other pages. Raises ReaderError where it
    cannot be written.
    """
    page = opened(response)
    found = await find_static(page, pages.explorer.page) if page is not None and not page.is_thread else None
    if found is None:
        return None
    service = found.service
    at = f" at {service.address}" if service.comments is not None else ""
    what = f"{response.url}: its comments are filled by {service.name}{at}"
    if service.comments is None:
        raise ReaderError(f"{what}, which is not read: write a site file for the interface that the page asks (docs/sites.md)")
    wrapper = await static_wrapper(found, pages.get)
    if wrapper is None:
        raise ReaderError(f"{what}, and no list of such pages was found: give the address of the page that lists them")
    base, place = urljoin(response.url, "/").rstrip("/"), urljoin(service.address, "/").rstrip("/")
    draft = known(
        profile=None,
        software=f"static pages with comments by {service.name}",
        base_url=base,
        also_allowed=() if place == base else (place,),
        forums=wrapper.forums,
        wrapper=wrapper,
    )
    return Drafted(draft, None, await preview_of(draft, pages.get), None)


async def _by_feeds(response: TextResponse, known: partial[Draft], pages: _Pages) -> Drafted:
    """Return the draft of a site of articles by the first of its feeds that is read, else by the first one."""
    table = load.profile_table(ARTICLES)["recognise"]
    base_url = urljoin(response.url, "/")
    empty = known(profile=ARTICLES, software=table["about"], base_url=base_url.rstrip("/"))
    first = Drafted(empty, None, Preview([], None), None)
    linked = sorted(feeds_of(response), key=lambda url: ("comment" in url, "atom" not in url))  # Atom has the time of an update
    for url in [response.url] if _FEED.search(response.body[:500]) else linked[:_MOST_FEEDS]:
        path = url.removeprefix(base_url)
        draft = msgspec.structs.replace(empty, forums=(ListedForum(id=path, name=path),))
        found = Drafted(draft, None, await preview_of(draft, pages.get), None)
        if found.shown.is_read:
            return found
        first = first if first.draft.forums else found
    return first


def _refuse_another_host(asked: str, found: str) -> None:
    """Raise AnotherHost where the address leads to another site than the named one."""
    hosts = [(urlsplit(one).hostname or "").removeprefix("www.") for one in (asked, found)]
    if hosts[0] != hosts[1]:
        raise AnotherHost(asked, found)


async def _forums(fetch: Fetch, name: str, profile: str, base_url: str) -> tuple[tuple[ListedForum, ...], bool, str | None]:
    """Return the forums that the index lists, and those below them; True if the profile's index lists them all; and the reason
    why the index was not read whole.
    """
    table = {"profile": profile, "base_url": base_url, "forums": ["?"]}
    refuse_variables(table)
    site = site_of(load.read(Path(f"{name}.toml"), table))
    if site.pages.index is None:
        fixed = load.profile_table(profile).get("forums", ())
        return tuple(ListedForum(id=forum, name=forum) for forum in fixed), False, None
    forums: dict[str, ListedForum] = {}
    url: str | None = site.url("index")
    number, problem = 1, None
    try:
        while url and number <= _INDEX_PAGES:
            with strictly():
                page = read_index(site, await fetch(site.asking("index", url)), number)
            known = len(forums)
            forums |= {forum.id: forum for forum in page.forums if forum.id not in forums}
            url, number = (page.next if len(forums) > known else None), number + 1
    except (SiteError, FetchFailed) as exc:
        problem = f"the forums could not be listed: {exc}"
    found = await boards_below(site, forums, fetch)
    return tuple(found.values()), len(found) == len(forums), problem


async def _with_customs(draft: Draft, shown: Preview, pages: _Pages) -> tuple[Draft, Preview]:
    """Add the language and the time zone that the threads' pages show, where the profile has others."""
    urls = [thread.url for thread in shown.threads if thread.problem is None]
    threads = [page for url in urls if (page := opened(await pages.get(url))) is not None]
    language, time_zone = customs_of(site_of_draft(draft), threads)
    if language is None and time_zone is None:
        return draft, shown
    changed = msgspec.structs.replace(draft, language=language, time_zone=time_zone)
    again = await preview_of(changed, pages.get)
    return (changed, again) if again.is_read else (draft, shown)
