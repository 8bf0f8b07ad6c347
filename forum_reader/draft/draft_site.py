"""Drafts a site file from a forum's address: by the profile of its software, or by what its pages show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from forum_reader.dates.date_customs import customs_of
from forum_reader.definition import layers
from forum_reader.definition.load import site_of
from forum_reader.definition.page_body import PageRequest
from forum_reader.errors import AnotherHost, FetchFailed, NoForum, ReaderError, SiteError
from forum_reader.page.no_forum_page import refusal
from forum_reader.page.response import Fetch, TextResponse
from forum_reader.reading.parse_body import markup_root
from forum_reader.reading.read_page import ListedForum, read_index
from forum_reader.reading.reading_budget import strictly
from forum_reader.recognise.recognise import Guess, base_of, guesses

from .addressed_forums import addressed_forums
from .draft_file import Draft, name_of, refuse_variables, text_of
from .explore import Explorer, FoundForum
from .inner_boards import boards_below
from .linked_feed import recent_of_profile, recent_page
from .plain_fetch import PlainFetch
from .preview import Preview, preview_of, site_of_draft
from .wrapper import wrapper_of

_INDEX_PAGES = 20  # most pages of an index


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
    if profile is not None and profile not in (names := layers.profile_names()):
        raise SiteError(f"profile {profile!r:.100} is unknown: profiles are {', '.join(names)}")
    response = await fetch(url)
    if (why := refusal(response)) is not None:
        raise ReaderError(why)
    _refuse_another_host(url, response.url)
    pages = _Pages(fetch)
    guess = next((one for one in guesses(response) if profile in (None, one.profile)), None)
    chosen = profile or (guess.profile if guess else None)
    draft, shown, problem = None, Preview([], None), None
    if chosen and chosen != "generic":
        draft, problem = await _by_profile(fetch, chosen, guess, response, known)
        shown = await preview_of(draft, pages.get)
        if shown.is_read:
            draft, shown = await _with_customs(draft, shown, pages)
            recent = await recent_of_profile(fetch, layers.profile_table(chosen), draft.base_url, response)
            draft = msgspec.structs.replace(draft, recent=recent)
        if profile or shown.is_read:
            return Drafted(draft, guess, shown, problem)
    # Of unknown software, or with pages that its profile does not read: another skin, another version.
    found = None if profile else await pages.explorer.find(response)
    learned = _learned(found, response, known)
    if found is not None and learned.wrapper is not None:
        recent = await recent_page(fetch, found, learned.wrapper.pages)
        learned.wrapper.pages |= {"recent": recent} if recent else {}
    as_learned = await preview_of(learned, pages.get)
    if draft is None or as_learned.is_read:
        return Drafted(learned, None, as_learned, problem)
    return Drafted(draft, guess, shown, problem)


class _Pages:
    """Pages of the site, each fetched once."""

    def __init__(self, fetch: Fetch) -> None:
        self.explorer = Explorer(fetch)
        self._fetch = fetch
        self._known: dict[str, TextResponse] = {}

    async def get(self, url: str) -> TextResponse:
        if url not in self._known:
            known = self.explorer.response(url)
            self._known[url] = known if known is not None else await self._fetch(url)
        return self._known[url]


async def _by_profile(
    fetch: Fetch, profile: str, guess: Guess | None, response: TextResponse, known: partial[Draft]
) -> tuple[Draft, str | None]:
    """Return the draft by the profile of the software, and the reason why the index was not read whole."""
    table = layers.profile_table(profile)
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
    site = site_of(layers.read(Path(f"{name}.toml"), table))
    if site.pages.index is None:
        fixed = layers.profile_table(profile).get("forums", ())
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
    threads = [await pages.get(thread.url) for thread in shown.threads if thread.problem is None]
    language, time_zone = customs_of(site_of_draft(draft), threads)
    if language is None and time_zone is None:
        return draft, shown
    changed = msgspec.structs.replace(draft, language=language, time_zone=time_zone)
    again = await preview_of(changed, pages.get)
    return (changed, again) if again.is_read else (draft, shown)
